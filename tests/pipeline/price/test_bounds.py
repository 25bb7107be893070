"""What no column holds stops with a cure, one reading at a time and for a whole frame alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.bounds import summable
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import FeeKind
from weighbridge.schemas.errors import SumError
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

MOST = 2**63 - 1
ZEROS = dict.fromkeys([*map(str, REPORTED_CLASSES), *(cell.name for cell in CROSSED_CELLS)], 0)


def row(**fees: str) -> PriceRow:
    return PriceRow(
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=expand({"input": Decimal(1)}),
        currency="USD",
        origin="made up",
        fees={FeeKind(kind): Decimal(price) for kind, price in fees.items()},
    )


def alone(priced: PriceRow, used: Mapping[str, int], verdict: str = "PROVED") -> tuple[Decimal | None, str]:
    found = price_reading(ZEROS, ZEROS, 0, 0, verdict, priced, used)
    return found.amount, str(found.status)


def framed(priced: PriceRow, used: Mapping[str, int], verdict: str = "PROVED") -> tuple[Decimal | None, str]:
    told: dict[str, Any] = {
        "attempt_hi": 0,
        "attempt_lo": 1,
        "day": date(2026, 5, 1),
        "source": "s",
        "child": 0,
        "report": 0,
        "revision": 0,
        "provider": "p",
        "model": "m",
        "verdict": verdict,
        "input_total": 0,
        "output_total": 0,
        "fee_kinds": list(used),
        "fee_counts": list(used.values()),
        **ZEROS,
    }
    (found,) = price_readings(pl.DataFrame([told], schema=polars_schema("reading")), PriceBook([[priced]])).to_dicts()
    return found["amount"], found["status"]


@pytest.mark.parametrize("of", [alone, framed])
def test_the_largest_count_has_a_price_as_long_as_the_amount_fits(of: Any) -> None:
    amount = Decimal("92233720368547758.07")
    assert of(row(web_search="10"), {"web_search": MOST}) == (amount, "priced")


@pytest.mark.parametrize("of", [alone, framed])
@pytest.mark.parametrize(
    "used",
    [{"web_search": MOST}, {"web_search": 2 * 10**18}, {"web_search": 10**18, "x_search": 10**18}],
)
def test_fees_that_no_column_holds_stop_with_a_cure(of: Any, used: dict[str, int]) -> None:
    """A use at 99 costs 0.099 a piece times a thousand: 2 x 10**18 uses are 1.98 x 10**20."""
    with pytest.raises(SumError, match=r"10\*\*20 or more.*mend it and run again"):
        of(row(web_search="99000", x_search="99000"), used)


def test_a_count_beyond_64_bits_stops_with_a_cure() -> None:
    with pytest.raises(SumError, match=r"9223372036854775808 uses.*2\*\*63"):
        alone(row(web_search="0"), {"web_search": MOST + 1})


@pytest.mark.parametrize("of", [alone, framed])
@pytest.mark.parametrize(
    ("used", "verdict", "status"),
    [
        ({"web_search": MOST, "x_search": -1}, "PROVED", "contradictory"),
        ({"web_search": -MOST}, "PROVED", "contradictory"),
        ({"web_search": MOST, "mcp": 1}, "PROVED", "fee_unpriced"),
        ({"web_search": MOST}, "CONTRADICTORY", "contradictory"),
    ],
)
def test_what_is_not_priced_anyway_stops_nothing(of: Any, used: dict[str, int], verdict: str, status: str) -> None:
    assert of(row(web_search="99000", x_search="1"), used, verdict) == (None, status)


def test_sums_that_would_wrap_are_refused_before_they_are_made() -> None:
    """In groups, 3 x 9 x 10**19 would come out as a negative amount."""
    rows = pl.DataFrame({"a": [Decimal(9) * 10**19] * 3}, schema={"a": pl.Decimal(38, 18)})
    assert summable(rows.head(1), ["a"], "amounts").height == 1
    with pytest.raises(SumError, match=r"amounts come to a of 2\.700e"):
        summable(rows, ["a"], "amounts")
