"""What a report has beside its month comes from closes: not from the lake, nor from a pack that cannot be trusted."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.close.conftest import Office
from tests.pipeline.close.test_closed import changed_later

from weighbridge.pipeline.report.earlier import Place, State
from weighbridge.pipeline.report.report import write_report
from weighbridge.pipeline.run.rooms import closes_for

ALL_TOKENS = "All tokens, reported"


def home_of(office: Office) -> Any:
    """As much of an installation as is looked at."""
    return SimpleNamespace(lake=lambda: office.lake, settings=SimpleNamespace(closes=office.packs))


def tokens(folder: Path) -> dict[str, str]:
    """The row of all tokens in the table of a report."""
    with (folder / "usage_compared.csv").open(encoding="utf-8", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["measure"] == ALL_TOKENS)


def test_the_month_before_is_the_one_that_was_closed_whatever_the_lake_says_now(closed: Office, tmp_path: Path) -> None:
    """March was closed with 826 tokens; 1,100 more came later. April has 360, and 120 of an attempt of March."""
    changed_later(closed)
    made = write_report(closed.lake, month="2026-04", out=tmp_path, closes=closes_for(home_of(closed), "2026-04"))
    row = tokens(made.csv_dir)
    assert (row["this_month"], row["previous_month"], row["previous_month_change"]) == ("480", "826", "-346")
    assert (row["previous_year"], row["previous_year_change_share"]) == ("", "")


def test_a_closed_month_stands_with_the_figures_of_its_close(closed: Office) -> None:
    changed_later(closed)
    found = closes_for(home_of(closed), "2026-03")
    assert [each.state for each in found.values()] == [State.CLOSED, State.NONE, State.NONE]
    assert found[Place.THIS].figures["usage"][0].values["tokens"] == 826


def test_a_year_later_the_same_month_stands_beside_it(closed: Office) -> None:
    found = closes_for(home_of(closed), "2027-03")
    assert (found[Place.MONTH].state, found[Place.MONTH].period) == (State.NONE, "2027-02")
    assert (found[Place.YEAR].state, found[Place.YEAR].period) == (State.CLOSED, "2026-03")


def test_a_month_that_has_rows_and_no_close_is_open(closed: Office) -> None:
    assert closes_for(home_of(closed), "2026-05")[Place.MONTH].state is State.OPEN


@pytest.mark.parametrize("how", [State.GONE, State.DAMAGED])
def test_a_pack_that_is_not_there_or_not_the_one_that_was_closed_is_not_used(closed: Office, how: State) -> None:
    if how is State.GONE:
        shutil.rmtree(closed.pack())
    else:
        manifest = closed.pack() / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"2026-03"', '"2026-04"'))
    found = closes_for(home_of(closed), "2027-03")[Place.YEAR]
    assert (found.state, found.figures) == (how, {})
    assert found.root is not None
