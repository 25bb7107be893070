"""Which answers are weighed, at which grade, and which tell nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.audit.rows import answers_of
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema, shaped

DAY = date(2026, 3, 2)
PLACE = {"day": DAY, "provider": "openai", "api": "openai_chat"}


def put(lake: Lake, table: str, row: dict[str, Any]) -> None:
    kinds = polars_schema(table)
    lake.append(table, shaped(table, pl.DataFrame([row], schema={name: kinds[name] for name in row})))


def answer(lake: Lake, number: int, observed: int, reported: int | None, reasoning: int | None, **attempt: Any) -> None:
    """A recounted answer with its report and what reconciliation says of its output."""
    key = {"attempt_hi": 1, "attempt_lo": number}
    blank = {"tenant": "unassigned", "task": "unassigned", "route": "unassigned"}
    own = {"source": "agent", "status": "succeeded", "revision": 0, "max_tokens": 100, **blank, **attempt}
    put(lake, "attempt", {**key, **PLACE, **own, "output_recounted": observed})
    if reported is not None:
        told = {"source": "log", "child": 0, "report": 0, "verdict": "PROVED", "ended": "complete", "revision": 0}
        put(lake, "reading", {**key, **PLACE, **told, "reasoning": reasoning, "output_total": reported})
    weighed = {
        "direction": "output",
        "observer": "agent",
        "reporter": None if reported is None else "log",
        "grade": "G3",
    }
    gap = (reported or 0) - observed
    figures = {"observed": observed, "reported": reported, "gap": gap, "residual": gap, "explained": 0, "reports": 1}
    put(lake, "reconciled", {**key, **PLACE, **blank, **weighed, **figures, "model": "m-1", "status": "UNEXPLAINED"})


def test_answers_have_a_grade_and_those_that_tell_nothing_are_counted(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    late = datetime(2026, 3, 2, 12, tzinfo=UTC)
    answer(lake, 1, 40, 45, 0)  # no time: after those that have one
    answer(lake, 2, 30, 62, 30, arrived_at=late)  # 2 more than visible and reasoning together
    answer(lake, 3, 98, 100, 0)  # billed at exactly its limit
    answer(lake, 4, 20, 25, None)  # nobody tells the reasoning
    answer(lake, 5, 20, 25, 0, status="aborted")
    answer(lake, 6, 20, 25, 0, n=2)
    found = answers_of(lake, [DAY])
    output = found.rows.filter(pl.col("measure") == "output")
    assert output.select("attempt_lo", "grade", "gap", "size").rows() == [(2, "G2", 2, 30), (1, "G3", 5, 40)]
    hidden = found.rows.filter(pl.col("measure") == "hidden_reasoning")
    assert hidden.select("attempt_lo", "grade", "gap", "size").rows() == [(2, "G4", 30, 30)]
    left = found.left_out.filter(pl.col("measure") == "output").sort("grade")
    assert left.select("grade", "pinned", "incomplete").rows() == [("G2", 0, 0), ("G3", 1, 3)]


def test_answers_in_another_script_are_a_cell_of_their_own_unless_an_engine_counted(tmp_path: Path) -> None:
    """How far a recount misses depends on the language; what an engine computed does not."""
    lake = Lake.create(str(tmp_path / "lake"))
    answer(lake, 1, 40, 45, 0, script="latin")
    answer(lake, 2, 40, 45, 0, script="han")
    answer(lake, 3, 40, 45, 0)
    rows = answers_of(lake, [DAY]).rows.filter(pl.col("measure") == "output")
    assert rows.select("attempt_lo", "script").rows() == [(1, "latin"), (2, "han"), (3, None)]
    compared = lake.scan("reconciled").with_columns(grade=pl.lit("G1")).collect()
    lake.replace("reconciled", compared, days=[DAY])
    rows = answers_of(lake, [DAY]).rows.filter(pl.col("measure") == "output")
    assert rows["script"].to_list() == [None, None, None]


def test_a_day_without_rows_has_no_answers(tmp_path: Path) -> None:
    found = answers_of(Lake.create(str(tmp_path / "lake")), [DAY])
    assert (found.rows.height, found.left_out.height) == (0, 0)
