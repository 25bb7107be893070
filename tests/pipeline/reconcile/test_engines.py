"""The same functions on another engine give the same rows, every column of every one."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import Core, World, crowd

from weighbridge.pipeline.reconcile.explain.explanation import lessons_of
from weighbridge.pipeline.reconcile.explain.template import learnt
from weighbridge.pipeline.reconcile.frames import collected
from weighbridge.pipeline.reconcile.match.side import side
from weighbridge.schemas.enumerations import Direction


@pytest.mark.parametrize("seed", [1, 2])
def test_duckdb_and_polars_agree_row_by_row(seed: int, world: World, polars_core: Core, duckdb_core: Core) -> None:
    """Four hundred attempts of every kind and fault."""
    crowd(world, 400, seed)
    ours, theirs = polars_core.weighed(world), duckdb_core.weighed(world)
    for mine, other in zip(ours, theirs, strict=True):
        assert_frame_equal(mine, other, check_dtypes=True)
    outcomes, parts = ours
    # The crowd is worth comparing: nothing the two could differ in is absent from it.
    assert set(outcomes["status"]) == {"MATCHED", "EXPLAINED", "UNEXPLAINED", "NOT_COMPARED"}
    assert set(parts["confidence"]) == {"certain", "probable", "ambiguous"}
    assert parts["cause"].n_unique() >= 8


def test_duckdb_learns_the_same_templates(world: World, polars_core: Core, duckdb_core: Core) -> None:
    """Windows, self joins and whole-number division mean the same on both."""
    for number in range(1, 13):
        messages, bare = 1 + number % 4, 10 * number
        model = "m-1" if number < 9 else "m-2"
        world.attempt(number, input_recounted=bare, messages=messages, recount_has_template=False, model_served=model)
        world.reading(number, input_total=bare + 3 + 4 * messages, model=model)
    found = []
    for core in (polars_core, duckdb_core):
        both = core.engine(core.compared(world))
        found.append(collected(learnt(lessons_of(side(both, Direction.INPUT)))).sort(pl.all()))
    assert_frame_equal(*found)
    assert found[0].select("cell_model", "per_request", "per_message", "fitting").rows() == [
        ("m-1", 3, 4, 8),
        ("m-2", 3, 4, 4),
    ]
