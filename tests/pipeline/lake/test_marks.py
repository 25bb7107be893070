"""The mark of a day changes when its rows do, and at no other time."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.lake import Lake, empty

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)


def rows(*days: date, observed: int = 5) -> pl.DataFrame:
    """A row of `reconciled` for each of these days."""
    return pl.DataFrame(
        [
            {
                "attempt_hi": 1,
                "attempt_lo": number,
                "day": day,
                "direction": "input",
                "tenant": "unassigned",
                "task": "unassigned",
                "route": "unassigned",
                "observed": observed,
                "status": "MATCHED",
                "reports": 1,
            }
            for number, day in enumerate(days)
        ],
        schema_overrides={"reports": pl.Int32},
    )


def test_a_mark_changes_with_its_day_and_with_no_other(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    assert lake.marks("reconciled") == {}
    lake.append("reconciled", rows(FIRST, SECOND))
    before = lake.marks("reconciled")
    assert set(before) == {FIRST, SECOND}
    assert before[FIRST] != before[SECOND]
    lake.replace("reconciled", rows(FIRST, SECOND), days=[FIRST, SECOND])
    assert lake.marks("reconciled") == before, "the same rows are not written again"
    lake.replace("reconciled", rows(FIRST, observed=6), days=[FIRST])
    after = lake.marks("reconciled")
    assert after[FIRST] != before[FIRST]
    assert after[SECOND] == before[SECOND]
    lake.replace("reconciled", empty("reconciled"), days=[SECOND])
    assert set(lake.marks("reconciled")) == {FIRST}


def test_a_table_that_is_not_kept_by_day_has_one_mark(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    strategy = {"strategy_id": "0" * 32, "name": "dense", "family": "dense", "token_events": False, "parameters": "{}"}
    lake.append("strategy", pl.DataFrame([strategy]))
    assert set(lake.marks("strategy")) == {None}
