"""Packed numbers: exact percentiles and sums of any number of rows, in memory or from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from weighbridge.pipeline.reconcile.overview.pairs import FIGURES
from weighbridge.pipeline.reconcile.overview.totals.packed import Packed
from weighbridge.schemas.errors import LakeError, SumError

ROW = st.tuples(
    st.integers(0, 3),
    *[st.one_of(st.none(), st.integers(-(2**40), 2**40)) for _ in FIGURES],
)


def frame(rows: Sequence[tuple[int | None, ...]]) -> pl.DataFrame:
    """Rows as `Packed.add` takes them."""
    return pl.DataFrame(rows, schema={"group": pl.Int64, **dict.fromkeys(FIGURES, pl.Int64)}, orient="row")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, max_size=40), pieces=st.integers(1, 5), at_once=st.sampled_from([3, 7, 1000]))
def test_sums_and_percentiles_are_those_of_plain_arithmetic(
    rows: list[tuple[int, ...]], pieces: int, at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever pieces the rows come in, and whether they are held or put away."""
    packed = Packed(tmp_path_factory.mktemp("runs"), at_once)
    for piece in range(pieces):
        packed.add(frame(rows[piece::pieces]))
    found = {row["group"]: row for row in packed.groups().iter_rows(named=True)}
    assert set(found) == {row[0] for row in rows}
    for group, told in found.items():
        mine = [row[1:] for row in rows if row[0] == group]
        assert told["attempts"] == len(mine)
        for place, name in enumerate(FIGURES):
            known = [row[place] for row in mine if row[place] is not None]
            assert told[name] == (sum(known) if known else None)
        outputs = sorted(row[FIGURES.index("output")] for row in mine if row[FIGURES.index("output")] is not None)
        assert told["p95"] == (hundredths(outputs) if outputs else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, max_size=40), kept=st.integers(0, 40), at_once=st.sampled_from([3, 1000]))
def test_what_is_taken_back_was_never_added(
    rows: list[tuple[int, ...]], kept: int, at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Equal figures are taken back as often as they are told, whatever runs they lie in."""
    packed, plain = (Packed(tmp_path_factory.mktemp("runs"), at_once) for _ in range(2))
    for piece in range(3):
        packed.add(frame(rows[piece::3]))
    packed.take_back(frame(rows[kept:]))
    plain.add(frame(rows[:kept]))
    assert_frame_equal(packed.groups(), plain.groups())


def test_taking_back_what_was_never_added_is_an_error(tmp_path: Path) -> None:
    """No figure next to it is taken in its place."""
    packed = Packed(tmp_path)
    packed.add(frame([(0, 1, 5, 0, 0), (0, 1, 7, 0, 0)]))
    packed.take_back(frame([(0, 1, 6, 0, 0)]))
    with pytest.raises(LakeError, match="never added"):
        packed.groups()


def hundredths(values: list[int]) -> int:
    """The linear 95th percentile of sorted values, by its definition."""
    place = 95 * (len(values) - 1)
    below, above = values[place // 100], values[min(place // 100 + 1, len(values) - 1)]
    return below * 100 + (above - below) * (place % 100)


def test_a_sum_beyond_64_bits_is_an_error_with_a_cure(tmp_path: Path) -> None:
    """Eight million times 2^40 is 2^63: one too many. One less is a sum."""
    packed = Packed(tmp_path)
    size = 2**20
    full = pl.DataFrame({name: np.full(size, 2**40 if name == "input" else 0) for name in ("group", *FIGURES)})
    for _ in range(7):
        packed.add(full)
    packed.add(full.with_columns(input=pl.when(pl.int_range(pl.len()) == 0).then(2**40 - 1).otherwise("input")))
    assert packed.groups()["input"].to_list() == [2**63 - 1]
    packed.add(frame([(0, 1, None, None, None)]))
    with pytest.raises(SumError, match=r"beyond 2\^63.*weighbridge validate"):
        packed.groups()


def test_a_figure_too_large_to_be_packed_is_refused(tmp_path: Path) -> None:
    """Nothing is cut off to make it fit."""
    with pytest.raises(SumError):
        Packed(tmp_path).add(frame([(0, 0, -(2**41), 0, 0)]))


@pytest.mark.parametrize("unknown", [None, 3])
def test_rows_without_a_group_are_no_rows(unknown: int | None, tmp_path: Path) -> None:
    """What they have in their figures, or have not, adds nothing; neither does a whole stretch of them."""
    packed = Packed(tmp_path)
    packed.add(frame([(None, 9, unknown, 9, 9), (2, 1, 4, 0, -1), (None, unknown, 9, 9, 9), (2, 2, 6, 0, 0)]))
    packed.add(frame([(None, 1, 1, 1, 1)]))
    assert packed.groups().row(0) == (2, 2, 3, 10, 0, -1, 590)
    assert packed.groups().height == 1


def test_nothing_added_is_no_group(tmp_path: Path) -> None:
    """And no error either."""
    assert Packed(tmp_path).groups().is_empty()
