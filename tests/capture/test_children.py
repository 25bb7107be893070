"""Children of an attempt reach the table of children with their own counts and outcome."""

from __future__ import annotations

from pathlib import Path

from weighbridge.capture import layout, reader, seal
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, FinishReason
from weighbridge.schemas.segment import read_table


def test_children_are_written_beside_their_attempt(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(Context(), counts=("input_computed", "output_computed", "withheld_end_token"))
    attempt = binding.begin()
    stop = layout.outcome_word(AttemptStatus.SUCCEEDED, FinishReason.STOP)
    length = layout.outcome_word(AttemptStatus.SUCCEEDED, FinishReason.LENGTH)
    assert recorder.finish_child(attempt, 1, ChildKind.CHOICE, stop, (7, 5, 1)) is True
    assert recorder.finish_child(attempt, 2, ChildKind.BEAM, length, (7, 9, -1)) is True
    assert attempt.finish(stop, (7, 14, 1)) is True
    recorder.close()
    (segment,) = [seal.seal(path, tmp_path / "sealed") for path in reader.journals(recorder.spool)]
    rows = read_table(segment, "child").to_pylist()
    names = (
        "child",
        "kind",
        "finish_reason",
        "input_computed",
        "output_computed",
        "output_withheld",
        "withheld_reason",
    )
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, "choice", "stop", 7, 5, 1, "end_token"),
        (2, "beam", "length", 7, 9, None, None),
    ]
    (whole,) = read_table(segment, "attempt").to_pylist()
    assert (whole["attempt_hi"], whole["attempt_lo"]) == (rows[0]["attempt_hi"], rows[0]["attempt_lo"])
    assert whole["output_computed"] == 14
