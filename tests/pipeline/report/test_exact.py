"""Sums do not wrap around, know what they do not know, and percentiles are sizes of real attempts."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest

from weighbridge.pipeline.report.exact import added, amount, percentile, ratio, tokens


def test_a_sum_may_exceed_64_bits() -> None:
    frame = pl.DataFrame({"n": [2**63 - 1] * 3})
    assert frame.select(tokens("n")).item() == 3 * (2**63 - 1)


@pytest.mark.parametrize(("values", "total"), [([], 0), ([None, None], None), ([None, 0], 0), ([None, 4, 5], 9)])
def test_absent_is_not_zero(values: list[int | None], total: int | None) -> None:
    assert pl.DataFrame({"n": values}, schema={"n": pl.Int64}).select(tokens("n")).item() == total


def test_money_adds_up_to_the_last_place() -> None:
    small = [Decimal("0.000000000000000001")] * 3 + [Decimal(10) ** 19]
    frame = pl.DataFrame({"m": small}, schema={"m": pl.Decimal(38, 18)})
    assert frame.select(amount(pl.col("m"))).item() == Decimal("10000000000000000000.000000000000000003")


@pytest.mark.parametrize(
    ("values", "p50", "p95"),
    [
        ([], None, None),
        ([None], None, None),
        ([7], 7, 7),
        ([4, 1, 3, 2], 2, 4),
        ([None, *range(1, 21)], 10, 19),
        ([*range(1, 22)], 11, 20),
        ([*range(100, 0, -1)], 50, 95),
    ],
)
def test_percentiles_are_nearest_rank(values: list[int | None], p50: int | None, p95: int | None) -> None:
    frame = pl.DataFrame({"n": values}, schema={"n": pl.Int64})
    assert frame.select(percentile("n", 50)).item() == p50
    assert frame.select(percentile("n", 95)).item() == p95


def test_a_share_of_nothing_is_unknown() -> None:
    assert ratio(1, 3) == Decimal("0.33333333")
    assert ratio(Decimal("0.5"), Decimal("0.8")) == Decimal("0.62500000")
    assert [ratio(1, 0), ratio(None, 5), ratio(5, None)] == [None, None, None]


def test_exact_sums_in_python() -> None:
    assert added([]) == 0
    assert added([None]) is None
    assert added([1, None, 2]) == 3
    assert added([Decimal("1e-18"), 10**25]) == Decimal("10000000000000000000000000.000000000000000001")
