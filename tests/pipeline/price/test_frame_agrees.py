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
from weighbridge.pipeline.price.amount import Priced, agreed, price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import KEYS, PriceKey, expand, expand_above
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.terms import Terms
from weighbridge.pipeline.price.tier import Tier
from weighbridge.schemas.enumerations import FeeKind, Modality, PriceStatus, TierRule
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


# What counts toward a threshold: all of input, or some classes in some order.
COUNTED = st.one_of(
    st.just(()), st.permutations(INPUT_CLASSES).flatmap(lambda names: st.integers(1, 5).map(lambda n: tuple(names[:n])))
)
FEES = st.dictionaries(st.sampled_from([*FeeKind][:6]), PRICES, max_size=3)


@st.composite
def tiers(draw: Draw, base: dict[PriceKey, Decimal], *, limited: bool) -> tuple[Tier, ...]:
    counted = () if limited else draw(COUNTED)
    rule = TierRule.MARGINAL if counted and draw(st.booleans()) else TierRule.CLIFF
    turns = sorted(draw(st.sets(st.integers(1, 6), max_size=3)))
    found = []
    for turn in turns:
        prices = expand_above(draw(PRICE_LISTS), [], base)
        if rule is TierRule.MARGINAL:
            prices = {cell: price for cell, price in prices.items() if cell[0] in counted}
        found.append(Tier(turn, rule, counted, prices))
    return tuple(found)


@st.composite
def rows(draw: Draw, terms: Terms | None = None) -> PriceRow:
    prices = draw(PRICE_LISTS)
    modalities = draw(st.lists(st.sampled_from([Modality.AUDIO, Modality.IMAGE]), unique=True))
    limit = draw(st.none() | st.none() | st.integers(0, 6))
    base = expand(prices, modalities)
    return PriceRow(
        terms=terms or Terms(),
        above=draw(tiers(base, limited=limit is not None)),
        fees=draw(FEES),
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=base,
        currency="USD",
        origin="test",
        up_to_input_tokens=limit,
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
    used = draw(st.dictionaries(st.sampled_from([*FeeKind][:6]), st.sampled_from([0, 1, 7, 2**40, -1]), max_size=2))
    fees = {"fee_kinds": sorted(used) or None, "fee_counts": [used[kind] for kind in sorted(used)] or None}
    return {"model": model, "verdict": verdict, "child": draw(st.sampled_from([0, 0, 1])), **seen, **fees}


def used_of(each: dict[str, Any]) -> dict[str, int]:
    return dict(zip(each["fee_kinds"] or [], each["fee_counts"] or [], strict=True))


def priced_alone(each: dict[str, Any], row: PriceRow | None) -> Priced:
    counts = {str(name): each[name] for name in REPORTED_CLASSES}
    cells = {name: each[name] for name in CELLS}
    totals = each["input_total"], each["output_total"]
    return price_reading(counts, cells, *totals, each["verdict"], row, used_of(each), whole=each["child"] == 0)


def same(got: dict[str, Any], want: Priced) -> bool:
    told = {name: got[f"amount_{name}"] for name in REPORTED_CLASSES}
    return (got["status"], got["amount"], told, got["amount_fees"], got["price_tier"]) == (
        want.status,
        want.amount,
        want.by_class,
        want.fees,
        want.tier,
    )


FIXED = {"attempt_hi": 0, "day": DAY, "source": "s", "report": 0, "revision": 0, "provider": "p"}


@settings(max_examples=examples(50, 400), deadline=None)
@given(row=rows(), drawn=st.lists(readings(), max_size=12))
def test_every_row_equals_the_scalar_price(row: PriceRow, drawn: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(
        [{**FIXED, "attempt_lo": n, **each} for n, each in enumerate(drawn)], schema=polars_schema("reading")
    )
    priced = price_readings(frame, PriceBook([[row]]))
    assert priced.height == len(drawn)
    for got, each in zip(priced.iter_rows(named=True), drawn, strict=True):
        found = row if each["model"] == "m" else None
        assert same(got, priced_alone(each, found)), (each, got)
        assert got["price_id"] == (found.price_id if found else None)


@settings(max_examples=examples(20, 200), deadline=None)
@given(plain=rows(), flex=rows(Terms(service_tier="flex")), drawn=st.lists(readings(), min_size=1, max_size=6))
def test_a_reading_of_an_unknown_tier_has_a_price_where_every_tier_gives_it_the_same(
    plain: PriceRow, flex: PriceRow, drawn: list[dict[str, Any]]
) -> None:
    frame = pl.DataFrame(
        [{**FIXED, "attempt_lo": n, **each, "model": "m", "service_tier": "auto"} for n, each in enumerate(drawn)],
        schema=polars_schema("reading"),
    )
    priced = price_readings(frame, PriceBook([[plain, flex]]))
    for got, each in zip(priced.iter_rows(named=True), drawn, strict=True):
        want = agreed([priced_alone(each, plain), priced_alone(each, flex)], PriceStatus.TERMS_UNKNOWN)
        assert same(got, want), (each, got)
