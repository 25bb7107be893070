"""Traces reach the lake encrypted or not at all; what waits is bounded; what never came is a gap."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weighbridge.capture import layout
from weighbridge.capture.content import read_content
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.pipeline.content.blocks import Shut
from weighbridge.pipeline.content.traces import open_traces, state_events, strategies, trace_counts
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.block import BlockError
from weighbridge.schemas.enumerations import AttemptStatus, Axis, Encoding, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import read_table
from weighbridge.schemas.trace import StateEvent, Strategy, Trace, fold, row_of, survivals
from weighbridge.schemas.trace_block import open_events

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
PRESS = Strategy("CanaryPress", "score", {"compression_ratio": 0.5}, library="kvpress", layers=2, kv_heads=2)
# A bitmap of it does not get smaller: it would be found in any file that held it in clear.
KEPT = [row_of(random.Random(head).sample(range(512), 256)) for head in range(4)]


def events() -> list[StateEvent]:
    trace = Trace(PRESS.strategy_id)
    trace.add(
        Axis.STORE, Operation.KEEP_ONLY, KEPT, width=512, layers=(0, 1), heads=(0, 1), head_kind=HeadKind.KEY_VALUE
    )
    for step, accepted in enumerate((3, 0, 2)):
        trace.add(
            Axis.EMIT, Operation.ACCEPT, [row_of(range(accepted))], width=4, step=step, phase=Phase.VERIFY,
            pos_space=PositionSpace.DRAFT_NODE,
        )  # fmt: skip
    return trace.events


def started(spool: Path, keys: KeyFolder | None, **limits: int) -> Recorder:
    held = Limits(keeper_s=3600.0, **limits)  # type: ignore[arg-type]
    return Recorder.start(spool, installation="test-1", key=bytes(32), keys=keys, limits=held)


def lake_of(recorder: Recorder, folder: Path) -> Lake:
    recorder.close()
    assert seal_spool(recorder.spool).failed == []
    lake = Lake.create(folder / "lake")
    ingest([recorder.spool], lake, key=bytes(32), day=datetime.now(tz=UTC).date())
    return lake


def gaps(spool: Path) -> list[tuple[str, int, int | None]]:
    seal_spool(spool)
    found = [
        (row["reason"], row["attempts"], row["tokens"])
        for segment in sorted(spool.glob("*.segment"))
        if (segment / "gap.parquet").exists()
        for row in read_table(segment, "gap").to_pylist()
    ]
    return sorted(found, key=str)


def test_from_the_serving_process_to_the_room_that_decrypts(tmp_path: Path, keys: KeyFolder) -> None:
    recorder = started(tmp_path / "spool", keys)
    binding = recorder.bind(
        Context(tenant="acme", subject_bucket=5, strategy_id=PRESS.strategy_id), counts=("kv_kept",)
    )
    offered: dict[int, AttemptKey] = {}
    for level in (1, 2, 3):
        attempt = binding.begin(level=level)
        made: Sequence[StateEvent] = events()
        assert attempt.offer_trace(lambda made=made: made, PRESS, held_bytes=100) is (level > 1)  # type: ignore[misc]
        attempt.finish(DONE, (200,), None)
        offered[level] = attempt.key
    empty = binding.begin(level=3)
    assert empty.offer_trace([], PRESS)
    lake = lake_of(recorder, tmp_path)
    assert gaps(recorder.spool) == []
    assert state_events(lake, keys, empty.key) == []
    assert state_events(lake, keys, offered[3]) == events()
    assert fold(state_events(lake, keys, offered[3])) == fold(events())
    counted = state_events(lake, keys, offered[2])
    assert [event.enc for event in counted] == [Encoding.COUNT] * 4
    whole = {event.seq: event for event in events()}
    assert survivals(counted[0], {}) == survivals(whole[0], whole)
    assert state_events(lake, keys, offered[1]) == []
    assert strategies(lake) == {PRESS.strategy_id: PRESS}
    shown = trace_counts(lake, offered[3]).select("op", "n_members", "n_universe").rows()
    assert shown == [("KEEP_ONLY", sum(row.bit_count() for row in KEPT), 2048), ("ACCEPT", 5, 12)]
    assert keys.names() == [f"{binding.facts[0]}.5.{datetime.now(tz=UTC):%Y-%m}.traces.1"]


def test_no_set_of_positions_stands_in_clear(tmp_path: Path, keys: KeyFolder) -> None:
    recorder = started(tmp_path / "spool", keys)
    attempt = recorder.bind(Context(tenant="acme")).begin(level=3)
    attempt.offer_trace(events(), PRESS)
    attempt.finish(DONE)
    canary = events()[0].payload
    assert canary is not None
    assert len(canary) > 200
    recorder.drain_content(all_=True)
    held = [path.read_bytes() for path in recorder.spool.iterdir()]
    recorder.close()
    seal_spool(recorder.spool)
    held += [path.read_bytes() for path in recorder.spool.rglob("*") if path.is_file()]
    assert not any(canary[at : at + 24] in raw for raw in held for at in (0, len(canary) // 2))


def test_a_destroyed_key_leaves_the_counts_and_nothing_else(tmp_path: Path, keys: KeyFolder) -> None:
    recorder = started(tmp_path / "spool", keys)
    attempt = recorder.bind(Context(tenant="acme")).begin(level=3)
    attempt.offer_trace(events(), PRESS)
    attempt.finish(DONE)
    lake = lake_of(recorder, tmp_path)
    for name in keys.names():
        keys.destroy(name)
    assert state_events(lake, keys, attempt.key) == []
    assert [trace.shut for trace in open_traces(lake, keys, attempt.key)] == [Shut.NO_KEY]
    assert trace_counts(lake, attempt.key).height == 2


def test_a_trace_that_was_changed_does_not_open(tmp_path: Path, keys: KeyFolder) -> None:
    recorder = started(tmp_path / "spool", keys)
    attempt = recorder.bind(Context(tenant="acme")).begin(level=3)
    attempt.offer_trace(events(), PRESS)
    recorder.drain_content(all_=True)
    (path,) = recorder.spool.glob("*.content")
    ((about, block),) = read_content(path).blocks
    recorder.close()
    whole = bytes.fromhex(about["block"]) + block
    key = keys.get(about["key"])
    assert open_events(about["key"], key, whole) == events()
    for changed in (bytes(16) + block, whole[:-1] + bytes([whole[-1] ^ 1]), whole[:40]):
        with pytest.raises(BlockError):
            open_events(about["key"], key, changed)
    with pytest.raises(BlockError):
        open_events(about["key"].replace(".0.", ".1."), key, whole)


def test_without_a_key_a_trace_is_counted_and_not_kept(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", None)
    attempt = recorder.bind(Context()).begin(level=3)
    assert not attempt.offer_trace(events(), PRESS)
    attempt.finish(DONE)
    recorder.close()
    assert gaps(recorder.spool) == [("no_key", 1, None)]


def test_what_waits_is_bounded_and_what_found_no_room_is_a_gap(tmp_path: Path, keys: KeyFolder) -> None:
    recorder = started(tmp_path / "spool", keys, buffer_bytes=100_000)
    binding = recorder.bind(Context())
    taken = 0
    for _ in range(10):
        attempt = binding.begin(level=3)
        taken += attempt.offer_trace(events, PRESS, held_bytes=30_000)
        attempt.finish(DONE)
        assert recorder.content.held <= 100_000
    assert taken == 3
    recorder.drain_content(all_=True)
    assert recorder.content.held == 0
    recorder.close()
    assert gaps(recorder.spool) == [("buffer_full", 0, None), ("ids_missing", 7, None)]


def test_a_call_that_fails_costs_its_own_trace_only(
    tmp_path: Path, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEIGHBRIDGE_CAPTURE_RAISE", raising=False)
    recorder = started(tmp_path / "spool", keys)
    binding = recorder.bind(Context())
    for make in (lambda: events()[1:], lambda: 1 // 0, events):
        attempt = binding.begin(level=3)
        assert attempt.offer_trace(make, PRESS)  # type: ignore[arg-type]
        attempt.finish(DONE)
    lake = lake_of(recorder, tmp_path)
    assert gaps(recorder.spool) == [("ids_missing", 2, None), ("serialise", 0, None)]
    assert state_events(lake, keys, attempt.key) == events()


def test_of_a_killed_process_what_was_written_is_there_and_what_waited_is_a_gap(
    tmp_path: Path, keys: KeyFolder
) -> None:
    spool = tmp_path / "spool"
    child = os.fork()
    if not child:
        recorder = started(spool, keys)
        binding = recorder.bind(Context(tenant="acme"))
        for number in range(5):
            attempt = binding.begin(level=3)
            attempt.offer_trace(events(), PRESS)
            attempt.finish(DONE)
            if number == 2:
                recorder.drain_content()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert gaps(spool) == [("ids_missing", 2, None)]
    lake = Lake.create(tmp_path / "lake")
    ingest([spool], lake, key=bytes(32), day=datetime.now(tz=UTC).date())
    attempts = [AttemptKey(*row) for row in lake.scan("attempt").select("attempt_hi", "attempt_lo").collect().rows()]
    assert sorted(len(state_events(lake, keys, key)) for key in attempts) == [0, 0, 4, 4, 4]
