"""A model in several processes: what all count alike is told once, what each did to its own heads is put together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.capture import rank
from tests.capture.adapters.conftest import needs_models
from tests.capture.recording import rows
from tests.conftest import ROOT

from weighbridge.capture import reader
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.content.traces import open_traces, state_events
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import (
    AttemptStatus,
    Axis,
    ChildKind,
    ForeignIdKind,
    HeadKind,
    Operation,
    Phase,
    PositionSpace,
)
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.parts import Parallel, Part, installation_of, united
from weighbridge.schemas.segment import read_manifest
from weighbridge.schemas.trace import StateEvent, Trace, fold, row_of

KEY = bytes(range(32))
DONE = outcome_word(AttemptStatus.SUCCEEDED)
COUNTS = ("input_computed", "output_computed")


def part(rank: int = 0, kind: Parallel = Parallel.TENSOR, **more: Any) -> Part:
    return Part(kind=kind, rank=rank, world=4, group="start-1", **more)


def started(folder: Path, own: Part | None, **more: Any) -> Recorder:
    limits = Limits(keeper_s=3600.0)
    return Recorder.start(folder, installation="gpu-1", key=KEY, limits=limits, part=own, **more)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rank": 4}, "rank 4 of 4"), ({"rank": -1}, "ranks are numbered from 0"), ({"group": "a b"}, "group must"),
        ({"first_head": -1}, "numbers in the whole model"),
    ],
)  # fmt: skip
def test_a_process_that_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Part(**{"kind": Parallel.TENSOR, "rank": 0, "world": 4, "group": "g", **fields})


@pytest.mark.parametrize("kind", Parallel)
def test_who_counts_and_under_which_name(kind: Parallel) -> None:
    parts = [part(rank, kind) for rank in range(3)]
    assert [each.counts for each in parts] == [True, kind is Parallel.DATA, kind is Parallel.DATA]
    sources = [each.source("gpu-1") for each in parts]
    assert sources == ["gpu-1", f"gpu-1/{kind}_rank:1", f"gpu-1/{kind}_rank:2"]
    assert {installation_of(source) for source in sources} == {"gpu-1"}
    keys = {each.key(KEY, 7) for each in parts}
    assert len(keys) == (3 if kind is Parallel.DATA else 1), "replicas answer calls of their own"
    assert not keys & {each.key(KEY, 8) for each in parts}


@pytest.mark.parametrize("source", ["gpu-1", "a/b", "gpu-1/tensor_rank:x", "gpu-1/engine-steps", "/tensor_rank:1"])
def test_other_sources_are_their_own(source: str) -> None:
    assert installation_of(source) == source


def test_a_rank_that_follows_writes_no_counts_and_its_own_events(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", part(1, first_head=2, first_layer=8))
    offered: list[StateEvent] = []

    class Traces:
        def offer(self, attempt: Any, events: Any, *_: Any) -> bool:
            offered.extend(events())
            return True

        def drain(self, _: Any) -> None:
            """Nothing waits."""

    recorder.traces = Traces()  # type: ignore[assignment]
    binding = recorder.bind(Context(), counts=COUNTS)
    attempt = binding.begin()
    assert attempt.key == part(0).key(KEY, 0)
    trace = Trace()
    trace.add(
        Axis.STORE, Operation.EVICT, [row_of([1]), row_of([2])], width=4, phase=Phase.DECODE, layers=(0, 1),
        heads=(1, 1), head_kind=HeadKind.KEY_VALUE, pos_space=PositionSpace.SEQUENCE,
    )  # fmt: skip
    assert attempt.offer_trace(trace.events)
    assert attempt.offer([1], [2]) == -1
    assert recorder.finish_child(attempt, 1, ChildKind.CHOICE, DONE, (1, 1))
    recorder.put_foreign_id(attempt, ForeignIdKind.CLIENT_REQUEST_ID, "x")
    assert attempt.finish(DONE, (9, 5))
    (event,) = offered
    assert (event.layer_lo, event.layer_hi, event.head_lo, event.head_hi) == (8, 9, 3, 3)
    for table in ("attempt", "child", "foreign_id", "gap"):
        assert rows(recorder, tmp_path / "out", table) == []


def test_header_and_segment_say_which_process_it_was(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", part(2, Parallel.PIPELINE, first_layer=16))
    recorder.close()
    (path,) = reader.journals(recorder.spool)
    header = reader.read_journal(path).header
    told = {name: header[name] for name in ("installation", "role", "rank", "world", "group", "first_layer")}
    assert told == {
        "installation": "gpu-1/pipeline_rank:2", "role": "pipeline", "rank": 2, "world": 4, "group": "start-1",
        "first_layer": 16,
    }  # fmt: skip
    assert spool(["seal", str(recorder.spool)]) == 0
    (segment,) = recorder.spool.glob("*.segment")
    labels = read_manifest(segment)[0].labels
    assert labels is not None
    assert (labels["role"], labels["rank"], labels["world"]) == ("pipeline", "2", "4")


def test_a_hook_nothing_ever_ran_through_is_a_gap(tmp_path: Path) -> None:
    for name, begun in (("idle", False), ("used", True)):
        recorder = started(tmp_path / name, None)
        recorder.hooks.add("toy")
        if begun:
            recorder.bind(Context(), counts=COUNTS).begin().finish(DONE, (1, 1))
        told = [(row["reason"], row["attempts"]) for row in rows(recorder, tmp_path / f"{name}-out", "gap")]
        assert told == ([] if begun else [("never_called", 0)])


def test_shards_are_put_together_in_the_order_of_steps_and_refer_to_themselves() -> None:
    shards = []
    for head in range(2):
        trace = Trace()
        for step in range(3):
            trace.add(
                Axis.STORE, Operation.KEEP_ONLY, [row_of(range(head, 4000, 2))], width=4000, step=step,
                layers=(0, 0), heads=(head, head), head_kind=HeadKind.KEY_VALUE,
            )  # fmt: skip
        assert trace.events[2].base_seq is not None
        shards.append(trace.events)
    whole = united(shards)
    assert [event.seq for event in whole] == list(range(6))
    assert [event.step for event in whole] == [0, 0, 1, 1, 2, 2]
    assert fold(whole) == {**fold(shards[0]), **fold(shards[1])}


def test_an_event_of_an_earlier_step_stays_behind_what_it_refers_to() -> None:
    shards = []
    for head in range(2):
        trace = Trace()
        scope: dict[str, Any] = {"layers": (0, 0), "heads": (head, head), "head_kind": HeadKind.KEY_VALUE}
        for step in (0, 5):
            trace.add(Axis.STORE, Operation.KEEP_ONLY, [row_of(range(head, 4000, 2))], width=4000, step=step, **scope)
        trace.add(Axis.ATTEND, Operation.MASK, [row_of(range(head, 4000, 2))], width=4000, **scope)
        assert trace.events[-1].base_seq is not None
        shards.append(trace.events)
    assert [event.step for event in united(shards)] == [0, 0, 5, 0, 5, 0]


def test_what_all_ranks_do_alike_stands_there_once() -> None:
    """Drafts are of no layer, and where experts are spread every rank computes all of the attention."""
    shards = []
    for own in range(2):
        trace = Trace()
        scope: dict[str, Any] = {"heads": (0, 0), "head_kind": HeadKind.KEY_VALUE}
        for step in (0, 1):
            trace.add(Axis.EMIT, Operation.DRAFT, [row_of([0, 1])], width=2, step=step)
            trace.add(Axis.EMIT, Operation.DRAFT, [row_of([0, 1])], width=2, step=step)  # a second one, just as it was
            trace.add(Axis.STORE, Operation.KEEP_ONLY, [row_of(range(0, 4000, 2))], width=4000, step=step,
                      layers=(0, 0), **scope)  # fmt: skip
            trace.add(Axis.STORE, Operation.KEEP_ONLY, [row_of(range(own, 4000, 3))], width=4000, step=step,
                      layers=(1 + own, 1 + own), **scope)  # fmt: skip
        shards.append(trace.events)
    assert any(event.base_seq is not None for events in shards for event in events)
    whole = united(shards)
    assert [event.seq for event in whole] == list(range(len(whole)))
    assert len(whole) == 2 * (2 + 1 + 2), "of each step two drafts, the layer of both, and one of each rank's own"
    assert fold(whole) == {**fold(shards[0]), **fold(shards[1])}


@pytest.mark.system
def test_two_ranks_count_once_and_their_heads_are_united(tmp_path: Path) -> None:
    """Two processes with gloo: the whole model's trace is what one process would have told."""
    torch, _ = needs_models()
    cell = {"tenant": None, "route": None, "strategy": None, "level": 3, "purpose": "sparsity_check"}
    policy = {"version": 1, "cells": [{**cell, "expires": "2999-12-31"}]}
    (tmp_path / "policy.json").write_text(json.dumps(policy), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(ROOT)))}
    command = [sys.executable, "-m", "tests.capture.rank", str(tmp_path)]
    ranks = [subprocess.Popen([*command, str(own), "2", str(port)], env=environment) for own in range(2)]
    assert [process.wait(120) for process in ranks] == [0, 0]
    assert spool(["seal", str(tmp_path / "spool")]) == 0
    lake = Lake.create(tmp_path / "lake")
    ingest([tmp_path / "spool"], lake, key=KEY, day=datetime.now(tz=UTC).date())
    attempts = lake.scan("attempt").collect()
    assert attempts["source"].to_list() == ["gpu-1"] * rank.CALLS, "both ranks made every call"
    assert attempts["input_computed"].sum() == rank.CALLS * rank.PROMPT
    assert lake.scan("gap").collect().is_empty()
    keys = KeyFolder(tmp_path / "keys")
    first = Part(kind=Parallel.TENSOR, rank=0, world=2, group="start-1")
    for call in range(rank.CALLS):
        key: AttemptKey = first.key(KEY, call)
        assert len(open_traces(lake, keys, key)) == 2
        live = fold(state_events(lake, keys, key))
        assert live == {(0, head): tuple(rank.kept(torch, call, head)) for head in range(rank.HEADS)}
