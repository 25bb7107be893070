"""The vectorised prices equal the scalar ones, row by row, whatever the row prices and the reading knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import KEYS, expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import Modality
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, OUTPUT_CLASSES, REPORTED_CLASSES

DAY = date(2026, 5, 1)
CELLS = [cell.name for cell in CROSSED_CELLS]
# Few prices, so that equal ones are common; and the extremes.
PRICES = st.sampled_from([Decimal(text) for text in ("1", "1", "2.5", "0", "0.000000000001", "99999.999999999999")])
PLAIN = ["input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown"]
# Any keys; or all of the plain ones but a few; or every key there is.
PRICE_LISTS = st.one_of(
    st.dictionaries(st.sampled_from(sorted(KEYS)), PRICES, min_size=1),
    st.fixed_dictionaries({}, optional=dict.fromkeys(PLAIN, PRICES)).filter(bool),
    st.fixed_dictionaries(
        dict.fromkeys(PLAIN, st.just(Decimal(1))), optional=dict.fromkeys(sorted({*KEYS} - {*PLAIN}), PRICES)
    ),
    st.fixed_dictionaries(dict.fromkeys(sorted(KEYS), PRICES)),
)
# Mostly zero, so that one class or modality alone is in the way of a price.
COUNTS = st.sampled_from([0, 0, 0, 0, 1, 2, 3, 2**63 - 1])
DIRECTIONS = (("input_total", INPUT_CLASSES), ("output_total", OUTPUT_CLASSES))
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def rows(draw: Draw) -> PriceRow:
    prices = draw(PRICE_LISTS)
    modalities = draw(st.lists(st.sampled_from([Modality.AUDIO, Modality.IMAGE]), unique=True))
    return PriceRow(
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=expand(prices, modalities),
        currency="USD",
        origin="test",
        up_to_input_tokens=draw(st.none() | st.none() | st.integers(0, 6)),
    )


@st.composite
def readings(draw: Draw) -> dict[str, Any]:
    """Counts that add up, some of which are then hidden; or, one time in eight, counts that need not add up."""
    counts = {str(name): draw(COUNTS) for name in REPORTED_CLASSES}
    cells = {cell.name: draw(st.sampled_from([0, 0, 0, 0, 1, 2])) for cell in CROSSED_CELLS}
    totals = {total: min(sum(counts[name] for name in classes), 2**63 - 1) for total, classes in DIRECTIONS}
    if draw(st.integers(0, 7)):
        for cell in CROSSED_CELLS:
            counts[cell.token_class] = min(counts[cell.token_class] + cells[cell.name], 2**63 - 1)
        totals = {total: min(sum(counts[name] for name in classes), 2**63 - 1) for total, classes in DIRECTIONS}
    drawn: dict[str, Any] = {**counts, **cells, **totals}
    hidden = draw(st.lists(st.sampled_from(sorted(drawn)), max_size=6))
    seen = {name: None if name in hidden else count for name, count in drawn.items()}
    model = draw(st.sampled_from(["m", "m", "m", "m", "other", None]))
    verdict = draw(st.sampled_from(["PROVED", "PROVED", "PROVED", "ASSUMED", "UNKNOWN", "CONTRADICTORY"]))
    return {"model": model, "verdict": verdict, **seen}


@settings(max_examples=examples(75, 300), deadline=None)
@given(row=rows(), drawn=st.lists(readings(), max_size=12))
def test_every_row_equals_the_scalar_price(row: PriceRow, drawn: list[dict[str, Any]]) -> None:
    fixed = {"attempt_hi": 0, "day": DAY, "source": "s", "child": 0, "report": 0, "revision": 0, "provider": "p"}
    frame = pl.DataFrame(
        [{**fixed, "attempt_lo": n, **each} for n, each in enumerate(drawn)], schema=polars_schema("reading")
    )
    priced = price_readings(frame, PriceBook([[row]]))
    assert priced.height == len(drawn)
    for got, each in zip(priced.iter_rows(named=True), drawn, strict=True):
        counts = {str(name): each[name] for name in REPORTED_CLASSES}
        cells = {name: each[name] for name in CELLS}
        found = row if each["model"] == "m" else None
        want = price_reading(counts, cells, each["input_total"], each["output_total"], each["verdict"], found)
        assert got["status"] == want.status, each
        assert got["amount"] == want.amount, each
        assert {name: got[f"amount_{name}"] for name in counts} == want.by_class, each
        assert got["price_id"] == (found.price_id if found else None)
