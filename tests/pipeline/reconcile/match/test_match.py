"""Who is compared with whom: several sources, revisions, reports that are due, reports nobody saw."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, Core, World, key

from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match.attempts import OUTPUT as ATTEMPT_OUTPUT
from weighbridge.pipeline.reconcile.match.attempts import _merged, _shaped


def only(frame: pl.DataFrame, *names: str) -> tuple[Any, ...]:
    """These columns of the only row."""
    (row,) = frame.select(names).rows()
    return row


def outcome(core: Core, world: World, number: int = 1, direction: str = "input") -> tuple[Any, ...]:
    """observed, reported, gap, status of one attempt."""
    rows = core.weighed(world)[0]
    mine = rows.filter((pl.col("attempt_lo") == number) & (pl.col("direction") == direction))
    return only(mine, "observed", "reported", "gap", "status")


def test_engine_figures_and_recounts_of_two_sources_are_one_attempt(world: World, polars_core: Core) -> None:
    """The engine's agent and the client's recount write about the same key; the engine goes first."""
    world.attempt(1, source="client", input_recounted=95, recount_special=2, output_recounted=40, tenant="unassigned")
    world.attempt(1, source="engine", input_computed=100, provider=None, task="unassigned", messages=3)
    merged = polars_core.attempts(world)
    assert only(merged, "input_computed", "input_computed_by", "input_recounted", "input_recounted_by") == (
        *(100, "engine"),
        *(95, "client"),
    )
    assert only(merged, "output_computed", "output_recounted", "recount_special") == (None, 40, 2)
    assert only(merged, "provider", "tenant", "task", "messages") == ("openai", "t_00000000000000aa", "chat", 3)


def test_a_figure_and_its_evidence_come_from_one_source(world: World, polars_core: Core) -> None:
    """Where two engines count the same attempt, the first in alphabetical order is believed as a whole."""
    world.attempt(1, source="b", input_computed=100, cached_local=40)
    world.attempt(1, source="a", input_computed=90)
    assert only(polars_core.attempts(world), "input_computed", "cached_engine") == (90, None)


def test_the_day_of_an_attempt_is_the_earliest_any_source_has(world: World, polars_core: Core) -> None:
    """A clock that is a second ahead does not move an attempt into the next day."""
    world.attempt(1, source="a", input_computed=100, day=date(2026, 3, 3))
    world.attempt(1, source="b", day=DAY)
    assert only(polars_core.attempts(world), "day", "input_computed") == (DAY, 100)


def test_the_cheap_road_of_lone_rows_leads_to_the_same_place(world: World) -> None:
    """Attempts of one source are not grouped; if they were, nothing would change."""
    world.attempt(1, input_computed=100, cached_local=10, cached_external=3, usage_expected=None)
    world.attempt(2, input_recounted=90, recount_has_special=False, status="unknown", tenant="unassigned", n=2)
    world.attempt(3, output_computed=7, withheld_end_token=1, model_served=None, model_requested="m-2")
    rows = _shaped(frame_of(world.frame("attempt")))
    alone, grouped = collected(rows.select(*ATTEMPT_OUTPUT)), collected(_merged(rows))
    assert alone.sort("attempt_lo").equals(grouped.sort("attempt_lo"))


def test_the_last_revision_counts_of_attempts_and_of_readings(world: World, polars_core: Core) -> None:
    """Earlier ones stay in the lake as evidence."""
    world.attempt(1, input_computed=90)
    world.attempt(1, input_computed=100, revision=2)
    world.attempt(1, input_computed=95, revision=1)
    world.reading(1, input_total=80, revision=0)
    world.reading(1, input_total=100, revision=1)
    assert outcome(polars_core, world) == (100, 100, 0, "MATCHED")


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({"usage_expected": True}, "EXPLAINED"),
        ({"usage_expected": None}, "EXPLAINED"),  # the API reports attempt 2
        ({"usage_expected": None, "api": "another_api"}, "NOT_COMPARED"),  # and no other does
        ({"usage_expected": None, "status": "aborted"}, "EXPLAINED"),  # its engine had worked for it
        ({"usage_expected": True, "status": "aborted"}, "EXPLAINED"),
        ({"usage_expected": False}, "NOT_COMPARED"),
        ({"usage_expected": False, "status": "failed"}, "EXPLAINED"),
        ({"usage_expected": True, "status": "rejected"}, "EXPLAINED"),
        *(
            ({"usage_expected": None, "status": status, "input_computed": None, "input_recounted": 100}, "NOT_COMPARED")
            for status in ("aborted", "failed", "rejected")
        ),
    ],
)
def test_a_report_is_missing_only_where_one_is_due(
    columns: dict[str, Any], status: str, world: World, polars_core: Core
) -> None:
    """The recorder says so, or the same API reports other attempts that succeeded, or an engine worked for nothing.

    A failed attempt owes nothing by itself: what a caller counted of its prompt need not have been computed.
    """
    world.attempt(1, **{"input_computed": 100, **columns})
    world.attempt(2, input_computed=50)
    world.reading(2, input_total=50)
    gap = -100 if status == "EXPLAINED" else None
    assert outcome(polars_core, world) == (100, None, gap, status)


def test_a_report_without_counts_is_a_missing_one(world: World, polars_core: Core) -> None:
    """The answer came without usage: read as UNKNOWN and flagged."""
    world.attempt(1, input_computed=100, output_computed=0)
    world.reading(1, verdict="UNKNOWN", flags=["usage_missing"], dialect=None)
    assert outcome(polars_core, world) == (100, None, -100, "EXPLAINED")
    assert outcome(polars_core, world, direction="output") == (0, None, 0, "EXPLAINED")


def test_missing_usage_of_an_attempt_nobody_observed_is_no_gap_but_is_counted(world: World, polars_core: Core) -> None:
    """There is no figure to speak of, yet the report is owed."""
    world.attempt(1)
    assert outcome(polars_core, world) == (None, None, None, "NOT_COMPARED")
    parts = polars_core.weighed(world)[1]
    assert parts.select("cause", "tokens", "compared").unique().rows() == [("usage_missing", None, False)]


@pytest.mark.parametrize("verdict", ["CONTRADICTORY", "UNKNOWN"])
def test_a_report_that_cannot_be_read_is_not_compared(verdict: str, world: World, polars_core: Core) -> None:
    """Counts that mean nothing are neither a match nor a gap; nor is the rest, where another report can be read."""
    world.attempt(1, input_computed=100)
    world.reading(1, verdict=verdict)
    assert outcome(polars_core, world) == (100, None, None, "NOT_COMPARED")
    world.reading(1, source="other", input_total=100)
    assert outcome(polars_core, world) == (100, 100, None, "NOT_COMPARED")


def test_a_report_without_an_observed_figure_is_not_compared(world: World, polars_core: Core) -> None:
    """An API customer without a recount has one side only."""
    world.attempt(1)
    world.reading(1, input_total=100)
    assert outcome(polars_core, world) == (None, 100, None, "NOT_COMPARED")


def test_children_add_up_and_repetitions_are_told_apart(world: World, polars_core: Core) -> None:
    """Two iterations of one attempt are two reports; a second report of one of them is a repetition."""
    world.reading(1, input_total=100, output_total=10, cache_read=60, model="m-1")
    world.reading(1, child=1, input_total=40, output_total=4, cache_read=20, model="m-0")
    world.reading(1, child=1, report=1, input_total=40, output_total=4, cache_read=20, model="m-0")
    row = polars_core.reports(world)
    assert only(row, "reports", "reported_input", "repeated_input", "cache_read") == (3, 180, 40, 80)
    assert only(row, "reported_output", "repeated_output", "r_model") == (18, 4, "m-1")


def test_the_same_counts_from_another_source_are_a_repetition_other_counts_are_not(
    world: World, polars_core: Core
) -> None:
    """A gateway's log beside the client's: the totals of the lake would hold the attempt twice."""
    world.reading(1, source="a", input_total=100, output_total=10)
    world.reading(1, source="b", input_total=100, output_total=10)
    world.reading(2, source="a", input_total=100, output_total=10)
    world.reading(2, source="b", input_total=100, output_total=11)
    rows = polars_core.reports(world).sort("r_lo")
    assert rows.select("reported_input", "repeated_input", "reporter").rows() == [(200, 100, "a"), (200, 0, "a")]


@pytest.mark.parametrize("engine", ["polars_core", "duckdb_core"])
@pytest.mark.parametrize(
    ("first", "second", "repeated"),
    [
        ([(0, 100, 20)], [(1, 60, 15), (2, 40, 5)], (100, 20)),
        ([(0, 0, 0), (1, 60, 15), (2, 40, 5)], [(0, 100, 20)], (100, 20)),
        ([(0, 100, None)], [(1, 60, None), (2, 40, None)], (100, 0)),
        ([(1, 10, 5)], [(2, 10, 5)], (0, 0)),
        ([(1, 60, 15), (2, 40, 5)], [(3, 100, 20)], (0, 0)),
        ([(0, 100, None)], [(0, 100, 0)], (0, 0)),
        ([(0, 100, None)], [(1, 100, 0)], (0, 0)),
        ([(1, 60, None), (2, 40, 20)], [(0, 100, 20)], (0, 0)),
        ([(0, 100, None)], [(1, 60, None), (2, 40, 20)], (0, 0)),
    ],
    ids=[
        *("calls after the whole", "calls before the whole", "neither tells output"),
        *("two single calls", "three single calls", "zero is told", "zero of a call is told"),
        *("a call lacks output", "the whole lacks output"),
    ],
)
def test_the_same_in_all_is_a_repetition_where_a_whole_is_told_and_nothing_lacks(
    first: list[tuple[int, int, int | None]],
    second: list[tuple[int, int, int | None]],
    repeated: tuple[int, int],
    engine: str,
    world: World,
    request: pytest.FixtureRequest,
) -> None:
    for source, calls in (("a", first), ("b", second)):
        for child, given, made in calls:
            world.reading(1, source=source, child=child, input_total=given, output_total=made)
    core: Core = request.getfixturevalue(engine)
    assert only(core.reports(world), "repeated_input", "repeated_output") == repeated


def test_a_repetition_is_certain_even_where_nobody_observed_the_attempt(world: World, polars_core: Core) -> None:
    """There is no gap to explain, so it is no row of gap_cause, but it will be a finding."""
    world.attempt(1)
    world.reading(1, input_total=100)
    world.reading(1, input_total=100, report=1)
    outcomes, parts = polars_core.weighed(world)
    assert only(outcomes.filter(pl.col("direction") == "input"), "gap", "status") == (None, "NOT_COMPARED")
    assert only(parts, "cause", "tokens", "compared") == ("duplicate_report", 100, False)


def test_reports_nobody_saw_fit_into_a_known_loss(world: World, polars_core: Core) -> None:
    """Two reports, two attempts lost that day: certain."""
    world.reading(1, input_total=100)
    world.reading(2, input_total=70)
    world.lost(2)
    assert outcome(polars_core, world, 1) == (None, 100, 100, "EXPLAINED")
    assert outcome(polars_core, world, 2) == (None, 70, 70, "EXPLAINED")


def test_more_reports_than_losses_explain_nothing(world: World, polars_core: Core) -> None:
    """It cannot be said which of the two is the one that was lost."""
    world.reading(1, input_total=100)
    world.reading(2, input_total=70)
    world.lost(1)
    assert outcome(polars_core, world, 1) == (None, 100, 100, "UNEXPLAINED")
    outcomes, parts = polars_core.weighed(world)
    assert outcomes.filter(pl.col("direction") == "input")["confidence"].to_list() == ["ambiguous"] * 2
    assert parts.is_empty()


def test_a_loss_that_names_its_attempt_covers_it_and_nothing_else(world: World, polars_core: Core) -> None:
    """The named one is certain; the other has no loss left to fit into."""
    world.reading(1, input_total=100)
    world.reading(2, input_total=70)
    hi, lo = key(1)
    world.lost(1, attempt_hi=hi, attempt_lo=lo)
    assert outcome(polars_core, world, 1) == (None, 100, 100, "EXPLAINED")
    assert outcome(polars_core, world, 2) == (None, 70, None, "NOT_COMPARED")


@pytest.mark.parametrize("reason", ["no_key", "ids_missing"])
def test_lost_token_ids_are_no_lost_attempts(reason: str, world: World, polars_core: Core) -> None:
    """The counts of those attempts were recorded."""
    world.reading(1, input_total=100)
    world.lost(5, reason=reason)
    assert outcome(polars_core, world, 1) == (None, 100, None, "NOT_COMPARED")
