"""What a reading costs, alone and in a frame: every amount here is worked out by hand in the comment beside it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.amount import Priced, price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import Modality, PriceStatus, Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, OUTPUT_CLASSES, REPORTED_CLASSES

Counts = dict[str, int | None]
NO_CELLS: Counts = dict.fromkeys(cell.name for cell in CROSSED_CELLS)
ZERO_CELLS: Counts = dict.fromkeys(NO_CELLS, 0)


def row(limit: int | None = None, modalities: tuple[Modality, ...] = (), **prices: str) -> PriceRow:
    return PriceRow(
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=expand({key: Decimal(text) for key, text in prices.items()}, modalities),
        currency="USD",
        origin="test",
        up_to_input_tokens=limit,
    )


def both(
    counts: Counts, cells: Counts, totals: tuple[int | None, int | None], verdict: Verdict, prices: PriceRow | None
) -> Priced:
    """The price of the reading alone, after checking that it is the same in a frame."""
    alone = price_reading(counts, cells, *totals, verdict, prices)
    known = {"day": date(2026, 5, 1), "provider": "p", "model": "m", "verdict": str(verdict), "source": "s"}
    keys = dict.fromkeys(("attempt_hi", "attempt_lo", "child", "report", "revision"), 0)
    record = {**keys, **known, **counts, **cells, "input_total": totals[0], "output_total": totals[1]}
    frame = pl.DataFrame([record], schema=polars_schema("reading"))
    (row,) = price_readings(frame, PriceBook([[] if prices is None else [prices]])).iter_rows(named=True)
    assert (row["amount"], row["status"]) == (alone.amount, str(alone.status))
    assert {name: row[f"amount_{name}"] for name in REPORTED_CLASSES} == alone.by_class
    return alone


def priced(
    prices: PriceRow | None,
    cells: Counts | None = None,
    verdict: Verdict = Verdict.PROVED,
    totals: tuple[int | None, int | None] | None = None,
    split: Counts | None = None,
    **counts: int | None,
) -> Priced:
    """A reading whose classes are 0 where not named; the totals are their sums where not given."""
    every: Counts = {**dict.fromkeys(map(str, REPORTED_CLASSES), 0), **(split or {}), **counts}
    sums = [[every[name] for name in classes] for classes in (INPUT_CLASSES, OUTPUT_CLASSES)]
    if totals is None:
        totals = (sum(n or 0 for n in sums[0]), sum(n or 0 for n in sums[1]))
    return both(every, ZERO_CELLS | (cells or {}), totals, verdict, prices)


def test_every_class_pays_its_own_price() -> None:
    prices = row(input="3", output="15", cache_read="0.3", cache_write_5m="3.75", cache_write_1h="6", reasoning="20")
    out = priced(
        prices,
        input_uncached=10,
        cache_read=1000,
        cache_write_5m=100,
        cache_write_1h=7,
        output_visible=5,
        reasoning=2,
    )
    # 10 x 3 + 1000 x 0.3 + 100 x 3.75 + 7 x 6 + 5 x 15 + 2 x 20 = 30 + 300 + 375 + 42 + 75 + 40 = 862 per million
    assert out.amount == Decimal("0.000862")
    assert out.status is PriceStatus.PRICED
    assert out.by_class == {
        "input_uncached": Decimal("0.00003"),
        "cache_read": Decimal("0.0003"),
        "cache_write_5m": Decimal("0.000375"),
        "cache_write_1h": Decimal("0.000042"),
        "cache_write_unknown": Decimal(0),
        "output_visible": Decimal("0.000075"),
        "reasoning": Decimal("0.00004"),
    }


def test_nothing_is_rounded_at_either_end() -> None:
    assert priced(row(input="0.000000000001"), input_uncached=1).amount == Decimal("0.000000000000000001")
    out = priced(row(input="99999.999999999999"), input_uncached=2**63 - 1)
    # (2**63 - 1) x (10**17 - 1) = 922337203685477580700000000000000000 - 9223372036854775807, with 18 places
    assert out.amount == Decimal("922337203685477571.476627963145224193")


def test_a_class_with_tokens_and_no_price_leaves_the_whole_unknown() -> None:
    out = priced(row(input="3", output="15"), input_uncached=10, cache_read=1, output_visible=5)
    assert out.status is PriceStatus.CLASS_UNPRICED
    assert out.amount is None
    assert out.by_class["cache_read"] is None
    assert out.by_class["input_uncached"] == Decimal("0.00003")  # what is known stays known


def test_a_price_of_zero_is_a_price() -> None:
    out = priced(row(input="0", output="0"), input_uncached=10, output_visible=5)
    assert (out.amount, out.status) == (Decimal(0), PriceStatus.PRICED)


def test_a_class_without_tokens_needs_no_price() -> None:
    out = priced(row(input="3"), input_uncached=2)
    assert (out.amount, out.by_class["cache_read"]) == (Decimal("0.000006"), Decimal(0))


def test_no_row_no_price() -> None:
    out = priced(None, input_uncached=2)
    assert (out.amount, out.status) == (None, PriceStatus.NO_PRICE)
    assert set(out.by_class.values()) == {None}


def test_a_contradictory_reading_is_not_priced() -> None:
    out = priced(row(input="3", output="15"), verdict=Verdict.CONTRADICTORY, input_uncached=2)
    assert (out.amount, out.status) == (None, PriceStatus.CONTRADICTORY)
    assert set(out.by_class.values()) == {None}


def test_no_counts_are_not_zero_counts() -> None:
    unknown: Counts = dict.fromkeys(REPORTED_CLASSES)
    for prices in (row(input="3", output="15"), None):
        out = both(unknown, NO_CELLS, (None, None), Verdict.UNKNOWN, prices)
        assert (out.amount, out.status) == (None, PriceStatus.NO_COUNTS)


def test_a_direction_without_counts_leaves_the_other_one_priced() -> None:
    out = priced(row(input="3", output="15"), totals=(25, None), input_uncached=25, output_visible=None, reasoning=None)
    assert (out.amount, out.status) == (None, PriceStatus.NO_COUNTS)
    assert out.by_class["input_uncached"] == Decimal("0.000075")
    assert out.by_class["output_visible"] is None


def test_an_unknown_split_has_no_price_where_its_classes_differ() -> None:
    split: Counts = {"input_uncached": None, "cache_read": None}
    out = priced(row(input="3", cache_read="0.3"), totals=(24, 0), split=split)
    assert (out.amount, out.status) == (None, PriceStatus.SPLIT_UNKNOWN)


def test_an_unknown_split_has_a_price_where_no_split_could_cost_anything_else() -> None:
    same: Counts = {"output_visible": None, "reasoning": None}
    out = priced(row(input="3", output="15"), totals=(10, 8), input_uncached=10, split=same)
    assert (out.amount, out.status) == (Decimal("0.00015"), PriceStatus.PRICED)  # 10 x 3 + 8 x 15 = 150
    assert out.by_class["output_visible"] is None  # the sum is known, its parts are not
    dearer = priced(row(input="3", output="15", reasoning="20"), totals=(10, 8), input_uncached=10, split=same)
    assert dearer.status is PriceStatus.SPLIT_UNKNOWN


def test_an_unknown_split_has_a_price_where_the_row_prices_one_class_only() -> None:
    unknown: Counts = dict.fromkeys(map(str, INPUT_CLASSES))
    out = priced(row(input="3", output="15"), totals=(24, 0), split=unknown)
    assert (out.amount, out.status) == (Decimal("0.000072"), PriceStatus.PRICED)
    two = priced(row(input="3", cache_read="3", output="15"), totals=(24, 0), split=unknown)
    assert two.status is PriceStatus.SPLIT_UNKNOWN  # a write could be among them, and has no price
    none = priced(row(output="15"), totals=(24, 0), split=unknown)
    assert none.status is PriceStatus.CLASS_UNPRICED


def test_only_what_the_known_classes_leave_has_to_be_split() -> None:
    out = priced(row(input="3", cache_read="0.3"), totals=(100, 0), input_uncached=None, cache_read=90)
    assert out.amount == Decimal("0.000057")  # 90 x 0.3 + 10 x 3 = 57
    nothing_left = priced(row(input="3"), totals=(100, 0), input_uncached=100, cache_read=None)
    assert (nothing_left.amount, nothing_left.status) == (Decimal("0.0003"), PriceStatus.PRICED)


def test_known_classes_above_their_total_are_a_contradiction() -> None:
    out = priced(row(input="3", cache_read="0.3"), totals=(80, 0), input_uncached=None, cache_read=90)
    assert (out.amount, out.status) == (None, PriceStatus.CONTRADICTORY)


def test_a_write_of_unknown_lifetime_has_a_price_where_both_lifetimes_cost_the_same() -> None:
    assert priced(row(cache_write_5m="6", cache_write_1h="6"), cache_write_unknown=1).amount == Decimal("0.000006")
    differ = priced(row(cache_write_5m="3.75", cache_write_1h="6"), cache_write_unknown=1)
    assert differ.status is PriceStatus.SPLIT_UNKNOWN
    one = priced(row(cache_write_5m="3.75"), cache_write_unknown=1)
    assert one.status is PriceStatus.CLASS_UNPRICED
    own = priced(row(cache_write_5m="3.75", cache_write_1h="6", cache_write_unknown="5"), cache_write_unknown=1)
    assert own.amount == Decimal("0.000005")


def test_modalities_are_inside_their_class_and_pay_their_own_price() -> None:
    prices = row(input="0.6", output="2.4", audio_in="10", audio_out="20", cache_read="0.1", cache_read_audio="0.3")
    out = priced(
        prices,
        {"input_uncached_audio": 4, "cache_read_audio": 2, "output_visible_audio": 34},
        input_uncached=15,
        cache_read=5,
        output_visible=47,
    )
    # input 11 x 0.6 + 4 x 10 = 46.6; read 3 x 0.1 + 2 x 0.3 = 0.9; output 13 x 2.4 + 34 x 20 = 711.2; sum 758.7
    assert out.amount == Decimal("0.0007587")
    assert out.by_class["output_visible"] == Decimal("0.0007112")
    assert out.by_cell["output_visible"] == Decimal("0.0000312")
    assert out.by_cell["output_visible_audio"] == Decimal("0.00068")


def test_a_modality_without_a_price_does_not_fall_back_to_text() -> None:
    out = priced(row(input="1"), {"input_uncached_image": 3}, input_uncached=10)
    assert out.status is PriceStatus.CLASS_UNPRICED
    named = priced(row(input="1", modalities=(Modality.IMAGE,)), {"input_uncached_image": 3}, input_uncached=10)
    assert named.amount == Decimal("0.00001")


def test_a_modality_that_was_not_reported_matters_where_it_has_another_price() -> None:
    counts: Counts = {**dict.fromkeys(map(str, REPORTED_CLASSES), 0), "input_uncached": 10}
    hidden = both(counts, NO_CELLS, (10, 0), Verdict.PROVED, row(input="1", audio_in="10"))
    assert (hidden.amount, hidden.status) == (None, PriceStatus.SPLIT_UNKNOWN)
    same = both(counts, NO_CELLS, (10, 0), Verdict.PROVED, row(input="1", audio_in="1"))
    assert same.amount == Decimal("0.00001")
    text = both(counts, NO_CELLS, (10, 0), Verdict.PROVED, row(input="1"))
    assert text.amount == Decimal("0.00001")


def test_a_modality_above_its_class_is_a_contradiction() -> None:
    out = priced(row(input="1", audio_in="10"), {"input_uncached_audio": 11}, input_uncached=10)
    assert out.status is PriceStatus.CONTRADICTORY


@pytest.mark.parametrize(("tokens", "amount"), [(200_000, Decimal("0.4")), (200_001, None)])
def test_above_its_limit_a_row_knows_no_price(tokens: int, amount: Decimal | None) -> None:
    out = priced(row(limit=200_000, input="2"), input_uncached=tokens)
    assert out.amount == amount
    assert out.status is (PriceStatus.CLASS_UNPRICED if amount is None else PriceStatus.PRICED)


def test_with_a_limit_an_unknown_input_leaves_even_the_output_unpriced() -> None:
    out = priced(row(limit=5, input="2", output="3"), totals=(None, 4), input_uncached=None, output_visible=4)
    assert (out.status, out.by_class["output_visible"]) == (PriceStatus.NO_COUNTS, None)
