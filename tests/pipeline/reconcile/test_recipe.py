"""What a function does to frames is noted once and done again: to other rows, and never where rows could decide it."""

from __future__ import annotations

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import World, crowd, on_duckdb, weighed

from weighbridge.pipeline.reconcile import recipe
from weighbridge.pipeline.reconcile.frames import Frame, collected, frame_of
from weighbridge.pipeline.reconcile.match.attempts import one_per_attempt
from weighbridge.pipeline.reconcile.match.reports import per_attempt
from weighbridge.pipeline.reconcile.recipe import by_recipe, stacked

FEW = pl.DataFrame({"a": [1, 2, 2], "b": [5, 6, 7]})
MORE = pl.DataFrame({"a": [3, 3, 4], "b": [1, 1, 9]})


def sums(frame: Frame, other: Frame, least: int) -> Frame:
    """Sums by `a` of the rows of both with `b` of at least so much."""
    both = stacked([frame, other]).filter(nw.col("b") >= least)
    counted = both.group_by("a").agg(rows=nw.len().cast(nw.Int64), b=nw.col("b").sum())
    return counted.join(frame.select("a").unique(), on="a", how="semi").rename({"b": "sum"})


def shown(frame: Frame) -> list[tuple[int, ...]]:
    """The rows in order."""
    return sorted(collected(frame).rows())


def test_the_steps_of_a_function_are_done_again_on_other_rows() -> None:
    """Of 1: 5; of 2: 6 + 7. The other way round of 3: 1 + 1; of 4: 9. What is least is part of the recipe."""
    assert shown(by_recipe(sums, frame_of(FEW), frame_of(MORE), 0)) == [(1, 1, 5), (2, 2, 13)]
    assert shown(by_recipe(sums, frame_of(MORE), frame_of(FEW), 0)) == [(3, 2, 2), (4, 1, 9)]
    assert shown(by_recipe(sums, frame_of(FEW), frame_of(MORE), 6)) == [(2, 2, 13)]


def test_a_function_is_asked_once_for_all_its_calls() -> None:
    """It does not run for the second one."""
    asked = []

    def doubled(frame: Frame) -> Frame:
        asked.append(1)
        return frame.with_columns(b=nw.col("b") * 2)

    assert [shown(by_recipe(doubled, frame_of(rows)))[0] for rows in (FEW, MORE)] == [(1, 10), (3, 2)]
    assert asked == [1]


def by_columns(frame: Frame) -> Frame:
    """What it does depends on the frame."""
    return frame.select(max(frame.collect_schema().names()))


def with_own_rows(frame: Frame) -> Frame:
    """It brings rows that nobody gave it."""
    return frame.join(frame_of(FEW), on="a", how="semi")


@pytest.mark.parametrize("function", [by_columns, with_own_rows])
def test_what_looks_at_a_frame_or_brings_its_own_is_called_as_it_is(function: object) -> None:
    """Twice, with frames of other columns and rows."""
    assert callable(function)
    for rows in (FEW, FEW.rename({"b": "c"}), FEW.head(1)):
        assert shown(by_recipe(function, frame_of(rows))) == shown(function(frame_of(rows)))


def test_frames_of_other_engines_go_past() -> None:
    """DuckDB computes what the function says."""
    pytest.importorskip("duckdb")
    made = by_recipe(sums, on_duckdb(FEW), on_duckdb(MORE), 0)
    assert not isinstance(made.to_native(), pl.LazyFrame)
    assert shown(made) == [(1, 1, 5), (2, 2, 13)]


def test_recipes_give_what_the_functions_give(world: World) -> None:
    """A crowd of faults, after the recipe was noted on other rows."""
    crowd(world, 60, 7)
    for function, table in ((one_per_attempt, "attempt"), (per_attempt, "reading")):
        rows = world.frame(table)
        by_recipe(function, frame_of(rows.head(1)))
        by_notes, by_itself = (
            collected(frame).sort(pl.all().exclude(pl.List))
            for frame in (by_recipe(function, frame_of(rows)), function(frame_of(rows)))
        )
        assert_frame_equal(by_notes, by_itself)


def test_all_that_a_month_takes_can_be_noted(world: World) -> None:
    """Nothing of it is built anew for every month."""
    crowd(world, 20, 3)
    weighed(world)
    assert len(recipe._RECIPES) > 15
    ours = {known: made for known, made in recipe._RECIPES.items() if known[0].__module__.startswith("weighbridge")}  # type: ignore[index]
    assert [known for known, made in ours.items() if made is None] == []
