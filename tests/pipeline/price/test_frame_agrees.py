"""The vectorised prices equal the scalar ones, row by row, whatever the row prices and the reading knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import KEYS, expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import Modality, Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

DAY = date(2026, 5, 1)
CELLS = [cell.name for cell in CROSSED_CELLS]
# Few prices and small counts, so that equal prices, full classes and exact sums are common; and the extremes.
PRICES = st.sampled_from([Decimal(text) for text in ("0", "1", "2.5", "0.000000000001", "99999.999999999999")])
TOKENS = st.none() | st.integers(0, 4) | st.sampled_from([2**63 - 1])


@st.composite
def rows(draw: Callable[[st.SearchStrategy[object]], object]) -> PriceRow:
    prices = draw(st.dictionaries(st.sampled_from(sorted(KEYS)), PRICES, min_size=1))
    modalities = draw(st.lists(st.sampled_from([Modality.AUDIO, Modality.IMAGE]), unique=True))
    limit = draw(st.none() | st.integers(0, 6))
    return PriceRow(
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=expand(prices, modalities),  # type: ignore[arg-type]
        currency="USD",
        origin="test",
        up_to_input_tokens=limit,  # type: ignore[arg-type]
    )


@st.composite
def readings(draw: Callable[[st.SearchStrategy[object]], object]) -> dict[str, object]:
    counts = {name: draw(TOKENS) for name in REPORTED_CLASSES}
    cells = {name: draw(st.none() | st.integers(0, 2)) for name in CELLS}
    totals = {name: draw(TOKENS) for name in ("input_total", "output_total")}
    model = draw(st.sampled_from(["m", "m", "m", "other", None]))
    verdict = draw(st.sampled_from(sorted(Verdict)))
    return {"model": model, "verdict": str(verdict), **counts, **cells, **totals}


@settings(max_examples=300, deadline=None)
@given(row=rows(), drawn=st.lists(readings(), max_size=6))
def test_every_row_equals_the_scalar_price(row: PriceRow, drawn: list[dict[str, object]]) -> None:
    fixed = {"attempt_hi": 0, "day": DAY, "source": "s", "child": 0, "report": 0, "revision": 0, "provider": "p"}
    frame = pl.DataFrame(
        [{**fixed, "attempt_lo": n, **each} for n, each in enumerate(drawn)], schema=polars_schema("reading")
    )
    priced = price_readings(frame, PriceBook([[row]]))
    assert priced.height == len(drawn)
    for got, each in zip(priced.iter_rows(named=True), drawn, strict=True):
        counts = {name: each[name] for name in REPORTED_CLASSES}
        cells = {name: each[name] for name in CELLS}
        found = row if each["model"] == "m" else None
        want = price_reading(
            counts,  # type: ignore[arg-type]
            cells,  # type: ignore[arg-type]
            each["input_total"],  # type: ignore[arg-type]
            each["output_total"],  # type: ignore[arg-type]
            str(each["verdict"]),
            found,
        )
        assert got["status"] == want.status, each
        assert got["amount"] == want.amount, each
        assert {name: got[f"amount_{name}"] for name in REPORTED_CLASSES} == want.by_class, each
        assert got["price_id"] == (found.price_id if found else None)
