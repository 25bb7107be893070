"""The path of the tokens of one attempt on the command line: who looks is written down first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from weighbridge.capture import layout
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Recorder
from weighbridge.pipeline.run.home import read_key
from weighbridge.schemas.enumerations import AttemptStatus, Axis, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.identity import erased
from weighbridge.schemas.trace import StateEvent, Strategy, Trace, row_of

Call = Callable[..., Any]
DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
PRESS = Strategy("KnormPress", "score", {"compression_ratio": 0.5})
COUNTS = ("input_computed", "output_computed", "kv_appended", "kv_evicted", "kv_merged", "kv_kept")
PROMPT, OUTPUT = [101, 102, 103, 104, 105, 106, 107, 108], [201, 202]


@dataclass(frozen=True)
class Sent:
    """An installation that took in one attempt of level 1, 2 and 3 each."""

    home: Path
    attempts: dict[int, str]


def events() -> list[StateEvent]:
    trace = Trace(PRESS.strategy_id)
    trace.add(Axis.INPUT, Operation.KEEP, [row_of(range(30))], width=50, pos_space=PositionSpace.CHARS)
    for layers, kept in (((0, 1), [0b11111001, 0b11110101]), ((2, 2), [0b11111111, 0b11111111])):
        scope: dict[str, Any] = {"layers": layers, "heads": (0, 1), "head_kind": HeadKind.KEY_VALUE}
        trace.add(Axis.STORE, Operation.APPEND, [0xFF], width=8, **scope)
        trace.add(Axis.STORE, Operation.KEEP_ONLY, kept * (layers[1] - layers[0] + 1), width=8, **scope)
    trace.add(
        Axis.STORE, Operation.MERGE, [0b100, 0b100], width=8, layers=(2, 2), heads=(0, 1),
        head_kind=HeadKind.KEY_VALUE, destinations=[{2: 3}, {2: 4}],
    )  # fmt: skip
    trace.count(Axis.COMPUTE, Operation.SKIP, 5, 8, layers=(2, 2))
    for step, accepted in enumerate((3, 1)):
        at: dict[str, Any] = {"step": step, "phase": Phase.VERIFY, "pos_space": PositionSpace.DRAFT_NODE}
        trace.add(Axis.EMIT, Operation.DRAFT, [0b111], width=3, **at)
        trace.add(Axis.EMIT, Operation.ACCEPT, [row_of(range(accepted))], width=3, **at)
        if accepted < 3:
            trace.add(Axis.EMIT, Operation.REJECT, [row_of(range(accepted, 3))], width=3, **at)
    return trace.events


@pytest.fixture
def sent(weighbridge: Call, tmp_path: Path) -> Sent:
    home = tmp_path / "home"
    weighbridge("init", home)
    recorder = Recorder.start(
        tmp_path / "spool",
        installation="gpu-1",
        key=read_key(home / "keys" / "pseudonym.key"),
        keys=KeyFolder(home / "ids"),
    )
    binding = recorder.bind(Context(tenant="acme", subject_bucket=5, strategy_id=PRESS.strategy_id), counts=COUNTS)
    attempts = {}
    for level in (1, 2, 3):
        attempt = binding.begin(level=level)
        expected = attempt.offer(PROMPT, OUTPUT) if level > 1 else -1
        attempt.offer_trace(events(), PRESS)
        attempt.finish(DONE, (8, 2, 48, 10, 2, 36), None, expected)
        attempts[level] = attempt.key.to_hex()
    recorder.close()
    from weighbridge.capture.spool import main as spool  # noqa: PLC0415

    assert spool(["seal", str(tmp_path / "spool")]) == 0
    weighbridge("--config", home, "ingest", tmp_path / "spool")
    return Sent(home, attempts)


def test_the_whole_path(weighbridge: Call, sent: Sent) -> None:
    keys = ("--content-keys", sent.home / "ids")
    ran = weighbridge("--config", sent.home, "trace", sent.attempts[3], *keys, "--json")
    assert ran.code == 0
    told = ran.json
    assert [(run["stream"], run["ids"]) for run in told["ids"]] == [("prompt", PROMPT), ("output", OUTPUT)]
    (trace,) = told["traces"]
    assert trace["strategies"] == [{"name": "KnormPress", "compression_ratio": 0.5}]
    assert trace["dropped"] == [["chars", 20, 50]]
    first, last = trace["groups"]
    assert (first["first"], first["last"], first["written"], first["kept"], first["evicted"]) == (0, 1, 32, 24, 8)
    assert (first["evicted_everywhere"], first["evicted_somewhere"]) == ([[1, 1]], [[1, 3]])
    assert (last["merged"], last["merged_from"], last["merged_into"], last["evicted"]) == (2, [[2, 2]], [[3, 4]], 0)
    assert (last["kept"], last["skipped"], first["skipped"]) == (14, 5, None)
    assert [(step["drafted"], step["accepted"], step["rejected"]) for step in trace["steps"]] == [(3, 3, 0), (3, 1, 2)]
    for text in ("layers 0-1, evicted in every head: 1 (1 positions)", "merged into (no token id): 3-4", "101 102 103"):
        assert text in weighbridge("--config", sent.home, "trace", sent.attempts[3][:20], *keys).out
    accesses = weighbridge("--config", sent.home, "changes", "--kind", "access", "--json").json
    assert [(row["file"], row["key"]) for row in accesses] == [("trace", erased(sent.attempts[3]))] * 4
    assert weighbridge("--config", sent.home, "changes", "--kind", "settings", "--json").code == 0
    counted = weighbridge("--config", sent.home, "trace", sent.attempts[2], *keys, "--json").json["traces"][0]
    assert all(group["unknown"] for group in counted["groups"])
    assert counted["counted"][1]["survivals"] == [4, 0, 2, 2, 4, 4, 4, 4]


def test_counts_need_no_key_and_are_no_access(weighbridge: Call, sent: Sent) -> None:
    ran = weighbridge("--config", sent.home, "trace", sent.attempts[3], "--counts", "--json")
    (row,) = ran.json["sources"]
    assert (row["kv_appended"], row["kv_evicted"], row["kv_kept"], row["level"]) == (48, 10, 36, 3)
    assert "ids" not in ran.json
    assert "101" not in ran.out
    assert weighbridge("--config", sent.home, "changes", "--kind", "access", "--json").json == []
    nothing = weighbridge("--config", sent.home, "trace", sent.attempts[1], "--content-keys", sent.home / "ids")
    assert nothing.code == 0
    assert "no ids: its level was below 2" in nothing.out
    assert "no trace: its level was below 2" in nothing.out


def test_what_does_not_open_is_said_and_ends_in_1(weighbridge: Call, sent: Sent, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir(mode=0o700)
    ran = weighbridge("--config", sent.home, "trace", sent.attempts[3], "--content-keys", tmp_path / "others")
    assert ran.code == 1
    assert "shut (no_key)" in ran.out
    assert "101" not in ran.out


def test_an_attempt_that_cannot_be_told_is_refused_with_the_cure(weighbridge: Call, sent: Sent) -> None:
    for asked, cure in (
        ("xyz", "8 to 32 hexadecimal digits"),
        ("0" * 32, "0 attempts"),
        (sent.attempts[1][:8], "3 attempts"),
    ):
        ran = weighbridge("--config", sent.home, "trace", asked, "--counts")
        assert ran.code == 2
        assert cure in ran.err
    assert weighbridge("--config", sent.home, "trace", sent.attempts[1]).code == 2, "no keys are named"
