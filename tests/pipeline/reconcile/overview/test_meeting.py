"""Both sides put beside each other: the same pairs and numbers as a join gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview import beside, meeting, pairs
from weighbridge.pipeline.reconcile.overview.joined import _on_engine
from weighbridge.pipeline.reconcile.overview.keys import LEAD
from weighbridge.pipeline.reconcile.overview.meeting import Meeting
from weighbridge.pipeline.reconcile.overview.names import WHO
from weighbridge.pipeline.reconcile.overview.numbers import dealt
from weighbridge.pipeline.reconcile.overview.numbers.columns import Column

FIGURE = st.one_of(st.none(), st.integers(0, 2), st.integers(0, 2))
LO = st.one_of(st.integers(-4, 8), st.sampled_from([-(2**63), 2**63 - 1]))
HI = st.one_of(st.none(), st.just(1), st.integers(1, 2))
ATTEMPT = st.tuples(LO, HI, st.one_of(st.none(), st.integers(0, 3)), FIGURE, FIGURE)
REPORT = st.tuples(LO, HI, st.booleans(), FIGURE, FIGURE)
SEEN = {LEAD: pl.Int64, "attempt_hi": pl.Int64, WHO: pl.Int64, "input": pl.Int64, "output": pl.Int64}
TOLD = {"r_lo": pl.Int64, "r_hi": pl.Int64, "readable": pl.Boolean, "r_input": pl.Int64, "r_output": pl.Int64}


def table(rows: list[tuple[Any, ...]], schema: Mapping[str, type[pl.DataType]], cuts: Iterable[int]) -> pl.DataFrame:
    """Rows that lie in several pieces."""
    whole = pl.DataFrame(rows, schema=schema, orient="row")
    ends = sorted({0, *(min(cut, whole.height) for cut in cuts), whole.height})
    parts = [whole.slice(start, end - start) for start, end in pairwise(ends)]
    return pl.concat([whole.clear(), *parts], rechunk=False)


def joined(attempts: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    """What a join makes of rows whose keys are told once on each side."""
    both = pairs.paired(nw.from_native(attempts.lazy()), nw.from_native(reports.lazy()), (WHO,))
    rows: pl.DataFrame = pairs.numbered(both, WHO).to_native().collect()
    return rows


@pytest.mark.parametrize("engine", [False, True])
@given(
    attempts=st.lists(ATTEMPT, max_size=14),
    reports=st.lists(REPORT, max_size=14),
    cuts=st.sets(st.integers(0, 14), max_size=3),
    lie=st.sampled_from(["as they come", "in order", "in order, each once"]),
    near=st.sampled_from([1, 2, 100]),
)
def test_pairs_and_numbers_are_those_of_a_join(
    attempts: list[tuple[Any, ...]],
    reports: list[tuple[Any, ...]],
    cuts: set[int],
    lie: str,
    near: int,
    engine: bool,
) -> None:
    """In any order and in any pieces, with keys that a side has twice, and figures and names that are unknown."""
    if lie != "as they come":
        attempts, reports = (sorted(rows, key=lambda row: row[0]) for rows in (attempts, reports))
    if lie.endswith("once"):
        attempts, reports = (list({row[0]: row for row in rows}.values()) for rows in (attempts, reports))
    seen, told = table(attempts, SEEN, cuts), table(reports, TOLD, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meeting, "_NEAR", near)
        patch.setattr(dealt, "_NEAR", near)
        both = Meeting(seen, told, _on_engine if engine else None)
        found = list(both.pieces())
    own, other = ([row[0] for row in rows] for rows in (attempts, reports))
    again = {key for side in (own, other) for key in side if side.count(key) > 1}
    assert [key for piece in both.each for key in piece.tolist()] == sorted(set(own))
    assert set(both.again.tolist()) == again
    assert both.crowded == tuple(sum(key in again for key in side) for side in (own, other))
    crowded = pl.Series(sorted(again), dtype=pl.Int64).implode()
    expected = joined(seen.filter(~pl.col(LEAD).is_in(crowded)), told.filter(~pl.col("r_lo").is_in(crowded)))
    rows = [piece.plain.frame() for piece in found] + [each.partly for each in found if each.partly is not None]
    plain = pl.concat([expected.select("group", *pairs.FIGURES).clear(), *rows])
    assert sorted(plain.rows(), key=str) == sorted(expected.drop_nulls("group").select(plain.columns).rows(), key=str)
    for side, lead, name in ((seen, LEAD, "alone"), (told, "r_lo", "told")):
        places = np.concatenate([np.zeros(0, np.int64), *(getattr(piece, name) for piece in found)])
        assert sorted(side[lead].gather(places).to_list()) == sorted(expected[f"aside_{lead}"].drop_nulls().to_list())


def test_pairs_that_are_left_out_keep_the_places_of_the_others() -> None:
    """Of four pairs the second is left out, then the third of what is left."""
    none = np.zeros(0, np.int64)
    values = Column(np.array([10, 11, 12, 13, 14]), None)
    mask = np.array([True, True, False, True, True])
    lying = beside.Lying(((100, {"own": values}, mask), (200, {"other": values}, mask)), none, none)
    at = np.array([0, 1, 3, 4])
    taken = {"own": Column(values.values[at], None), "other": Column(values.values[at], None)}
    fetched = beside.Fetched(taken, at + 100, at + 200, none, none)
    for pair in (lying, fetched):
        left = pair.without(np.array([1])).without(np.array([2]))
        assert left.column("own").values.tolist() == [10, 13]
        assert [side.tolist() for side in left.places(np.array([0, 1]))] == [[100, 103], [200, 203]]
