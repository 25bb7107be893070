"""An attempt that was finished is in the journal, with its numbers and without its words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weighbridge.capture import layout, reader, seal
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Ended, FinishReason, ReportPart
from weighbridge.schemas.segment import read_table, verify_segment

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED, FinishReason.STOP, 200, part=ReportPart.WHOLE)
COUNTS = ("input_computed", "output_computed", "total_us")
CONTEXT = Context(provider="openai", api="openai_chat", model_requested="gpt-4o", tenant="acme", task="chat")
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
}


def sealed(recorder: Recorder, out: Path) -> list[Path]:
    """Close the recorder and seal its journals."""
    recorder.close()
    return [seal.seal(path, out) for path in reader.journals(recorder.spool)]


def test_a_finished_attempt_becomes_an_attempt_and_a_usage_report(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT, counts=COUNTS, parameters=Parameters(temperature=0.5, n=1))
    attempt = binding.begin()
    assert attempt.finish(DONE, (100, 21, 5_000), USAGE) is True
    (segment,) = sealed(recorder, tmp_path / "sealed")
    manifest, _ = verify_segment(segment)
    assert manifest.end is Ended.COMPLETE
    (row,) = read_table(segment, "attempt").to_pylist()
    wanted = {
        "attempt_hi": attempt.hi,
        "attempt_lo": attempt.lo,
        "source": "test-1",
        "status": "succeeded",
        "finish_reason": "stop",
        "http_status": 200,
        "input_computed": 100,
        "output_computed": 21,
        "total_us": 5_000,
        "output_delivered": None,
        "temperature": 0.5,
        "n": 1,
        "model_requested": "gpt-4o",
        "task": "chat",
        "route": "unassigned",
    }
    assert {name: row[name] for name in wanted} == wanted
    assert row["tenant"].startswith("t_")
    (report,) = read_table(segment, "usage_report").to_pylist()
    assert dict(zip(report["leaf_shape"].split(), report["leaf_integers"], strict=True)) == {
        "usage.completion_tokens": 20,
        "usage.prompt_tokens": 100,
        "usage.prompt_tokens_details.cached_tokens": 64,
        "usage.total_tokens": 120,
    }


def test_shapes_are_learnt_once_and_each_is_stored_as_it_came(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT, counts=COUNTS)
    bodies: list[object] = [
        USAGE,
        {"prompt_tokens": 1, "service_tier": "default", "cost": 0.00123, "an unknown key": 7},
        {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}]},
        {"prompt_tokens": 1.0},
        {"prompt_tokens": True},
        None,
        {"prompt_tokens": None, "comment": "CANARY"},
    ]
    for _ in range(3):
        for body in bodies:
            assert binding.begin().finish(DONE, (1, 2, 3), body)
    slow = recorder.written_slow
    assert binding.begin().finish(DONE, (1, 2, 3), USAGE)
    assert binding.begin().finish(DONE, (1, 2, 3), USAGE)
    assert recorder.written_slow <= slow + 1
    (segment,) = sealed(recorder, tmp_path / "sealed")
    shapes = [
        (row["leaf_shape"], tuple(row["leaf_integers"]), row["leaf_texts"])
        for row in read_table(segment, "usage_report").to_pylist()
    ]
    assert shapes.count(("usage.promptTokensDetails[TEXT].tokenCount", (5,), None)) == 3
    assert shapes.count(("usage.prompt_tokens", (1,), None)) == 3
    assert sum(texts is not None and "0.00123" in texts for _, _, texts in shapes) == 3
    assert [row["reason"] for row in read_table(segment, "quarantine").to_pylist()] == ["type"] * 3
    assert read_table(segment, "attempt").num_rows == 23
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"CANARY" in path.read_bytes() or b"unknown key" in path.read_bytes() for path in written)


def test_a_full_file_is_followed_by_the_next_one_and_nothing_is_lost(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT, counts=COUNTS)
    for number in range(20_000):
        assert binding.begin().finish(DONE, (number, 2, 3), USAGE)
    segments = sealed(recorder, tmp_path / "sealed")
    assert len(segments) == 3
    seen = [value for s in segments for value in read_table(s, "attempt").column("input_computed").to_pylist()]
    assert sorted(seen) == list(range(20_000))
    assert recorder.losses.total == 0


def test_a_forked_child_writes_a_file_of_its_own(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT, counts=COUNTS)
    binding.begin().finish(DONE, (1, 2, 3), USAGE)
    child = os.fork()
    if child == 0:
        kept = binding.begin().finish(DONE, (7, 2, 3), USAGE)
        recorder.close()
        os._exit(0 if kept else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    binding.begin().finish(DONE, (9, 2, 3), USAGE)
    segments = sealed(recorder, tmp_path / "sealed")
    assert sorted(read_table(s, "attempt").column("input_computed").to_pylist() for s in segments) == [[1, 9], [7]]


def test_a_second_finish_of_one_attempt_stores_nothing(recorder: Recorder, tmp_path: Path) -> None:
    attempt = recorder.bind(CONTEXT, counts=COUNTS).begin()
    assert attempt.finish(DONE, (1, 2, 3), USAGE) is True
    assert attempt.finish(DONE, (1, 2, 3), USAGE) is False
    (segment,) = sealed(recorder, tmp_path / "sealed")
    assert read_table(segment, "attempt").num_rows == 1


def test_a_count_that_is_unknown_is_null_and_not_zero(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT, counts=COUNTS)
    assert binding.begin().finish(DONE, (-1, 0, -1), USAGE)
    (segment,) = sealed(recorder, tmp_path / "sealed")
    (row,) = read_table(segment, "attempt").to_pylist()
    assert (row["input_computed"], row["output_computed"], row["total_us"]) == (None, 0, None)


@pytest.mark.parametrize("name", ["with blank", "", "x" * 200])
def test_a_name_that_could_be_text_is_refused_when_binding(recorder: Recorder, name: str) -> None:
    with pytest.raises(Exception, match="task"):
        recorder.bind(Context(task=name or " "), counts=COUNTS)
