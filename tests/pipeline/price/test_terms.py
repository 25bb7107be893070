"""Terms: service tiers, batch jobs, regions and hours; thresholds, token by token; and what is charged by use."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.amount import Priced, price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.fee import fees_of
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.table import rows_of, tables_of
from weighbridge.pipeline.price.terms import Hours, Served
from weighbridge.schemas.enumerations import FeeKind, PriceStatus
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, REPORTED_CLASSES

DAY = date(2026, 5, 1)
HEAD = 'provider = "acme"\ncurrency = "USD"\nsource = "a list"\n'
PLAIN = '[[rows]]\nmodels = ["m"]\nprices = { input = "2", output = "8" }\n'


def rows(folder: Path, text: str) -> list[PriceRow]:
    path = folder / "acme.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return read_prices(path)


def book(folder: Path, text: str) -> PriceBook:
    return PriceBook([rows(folder, text)])


def told(found: tuple[PriceRow | None, ...]) -> list[str | None]:
    return [None if row is None else str(row.terms) for row in found]


def cost(row: PriceRow, used: dict[str, int] | None = None, **counts: int) -> Priced:
    held = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | counts
    total = sum(held[name] for name in INPUT_CLASSES)
    output = held["output_visible"] + held["reasoning"]
    return price_reading(held, {cell.name: 0 for cell in CROSSED_CELLS}, total, output, "PROVED", row, used)


VARIANTS = """variants = [
  { when = { service_tier = "flex" }, times = "0.5" },
  { when = { batch = true }, prices = { input = "1", output = "4" } },
  { when = { region = "us" }, times = "1.1" },
  { when = { service_tier = "flex", batch = true }, times = "0.25" },
]
"""


@pytest.mark.parametrize(
    ("served", "price"),
    [
        (Served(), "2"),
        (Served("default"), "2"),
        (Served(region="global"), "2"),
        (Served(batch=False), "2"),
        (Served("flex"), "1"),
        (Served(batch=True), "1"),
        (Served(region="us"), "2.2"),
        (Served("flex", batch=True), "0.5"),
    ],
    ids=str,
)
def test_a_reading_is_priced_on_the_terms_it_was_served_on(tmp_path: Path, served: Served, price: str) -> None:
    found = book(tmp_path, PLAIN + VARIANTS).find("acme", "m", DAY, served)
    assert found is not None
    assert cost(found, input_uncached=1_000_000).amount == Decimal(price)


@pytest.mark.parametrize("served", [Served("priority"), Served(region="eu"), Served("flex", region="us")], ids=str)
def test_terms_that_no_row_names_have_no_price(tmp_path: Path, served: Served) -> None:
    priced = book(tmp_path, PLAIN + VARIANTS)
    assert priced.possible("acme", "m", DAY, served) == ()
    assert priced.knows("acme", "m", DAY)
    assert not priced.knows("acme", "other", DAY)


def test_an_unknown_tier_may_be_any_that_has_a_price(tmp_path: Path) -> None:
    found = book(tmp_path, PLAIN + VARIANTS).possible("acme", "m", DAY, Served("auto"))
    assert told(found) == ["", "tier=flex"]


def test_an_unknown_tier_is_never_the_fast_one_which_is_asked_for_by_itself(tmp_path: Path) -> None:
    fast = 'variants = [{ when = { service_tier = "fast" }, times = "2" }]\n'
    assert told(book(tmp_path, PLAIN + fast).possible("acme", "m", DAY, Served("auto"))) == [""]


def test_an_unknown_tier_that_has_no_price_in_the_region_leaves_the_price_unknown(tmp_path: Path) -> None:
    """In `us` flex has no price that is told, so `auto` may be the default one at 2.2, or flex at nobody knows what."""
    priced = book(tmp_path, PLAIN + VARIANTS)
    assert told(priced.possible("acme", "m", DAY, Served("auto", region="us"))) == ["region=us", None]
    assert priced.find("acme", "m", DAY, Served("auto", region="us")) is None
    assert priced.possible("acme", "m", DAY, Served("auto", region="eu")) == ()


HOURS = PLAIN + (
    'variants = [{ when = { hours = "16:30-00:30 UTC" }, times = "0.5" },'
    ' { when = { hours = "02:00-03:00 Europe/Berlin" }, times = "0.25" }]\n'
)


def at(month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "terms"),
    [
        (at(5, 1, 16, 29), ""),
        (at(5, 1, 16, 30), "hours=16:30-00:30 UTC"),
        (at(1, 15, 0, 29), "hours=16:30-00:30 UTC"),  # the night belongs to the evening before
        (at(5, 1, 0, 30), "hours=02:00-03:00 Europe/Berlin"),  # 02:30 in summer
        (at(1, 15, 0, 30), ""),  # 01:30 in winter
        (at(1, 15, 1, 30), "hours=02:00-03:00 Europe/Berlin"),
        (at(3, 29, 0, 59), ""),  # 01:59; the hour from two to three is left out that night
        (at(3, 29, 1, 0), ""),  # 03:00
        (at(10, 25, 0, 30), "hours=02:00-03:00 Europe/Berlin"),  # 02:30, and an hour later again
        (at(10, 25, 1, 30), "hours=02:00-03:00 Europe/Berlin"),
        (at(10, 25, 2, 0), ""),  # 03:00
    ],
    ids=str,
)
def test_hours_are_those_of_the_zone_on_that_day(tmp_path: Path, moment: datetime, terms: str) -> None:
    found = book(tmp_path, HOURS).possible("acme", "m", moment.date(), Served(at=moment))
    assert told(found) == [terms]


def test_a_reading_without_a_time_may_be_of_any_hour(tmp_path: Path) -> None:
    found = book(tmp_path, HOURS).possible("acme", "m", DAY, Served())
    assert told(found) == ["hours=16:30-00:30 UTC", "hours=02:00-03:00 Europe/Berlin", ""]


def test_hours_that_overlap_are_refused_where_both_hold(tmp_path: Path) -> None:
    text = PLAIN + 'variants = [{ when = { hours = "01:00-04:00 UTC" }, times = "0.5" },'
    text += ' { when = { hours = "03:00-05:00 UTC" }, times = "0.25" }]\n'
    overlapping = book(tmp_path, text)
    assert told(overlapping.possible("acme", "m", DAY, Served(at=at(5, 1, 4, 30)))) == ["hours=03:00-05:00 UTC"]
    with pytest.raises(ConfigError, match="overlap, and both are for 'm'; end one where the other begins"):
        overlapping.possible("acme", "m", DAY, Served(at=at(5, 1, 3, 30)))


CLIFF = PLAIN + (
    'above = [{ input_tokens = 200000, rule = "cliff", prices = { input = "4", output = "12" } },'
    ' { input_tokens = 500000, rule = "cliff", prices = { input = "6" } }]\n'
)


@pytest.mark.parametrize(
    ("tokens", "amount", "tier"),
    [
        # tokens x the one price that all of them pay, and 10 of output
        (200_000, "0.40008", 0),
        (200_001, "0.800124", 200_000),
        (500_000, "2.00012", 200_000),
        (500_001, "3.000126", 500_000),
    ],
)
def test_above_a_cliff_every_token_pays_the_higher_price(tmp_path: Path, tokens: int, amount: str, tier: int) -> None:
    (row,) = rows(tmp_path, CLIFF)
    found = cost(row, input_uncached=tokens, output_visible=10)
    assert (found.amount, found.tier) == (Decimal(amount), tier)


MARGINAL = (
    '[[rows]]\nmodels = ["m"]\nprices = { input = "2", cache_read = "1", output = "8" }\n'
    'above = [{ input_tokens = 100, rule = "marginal", counts = ["cache_read", "input_uncached"],'
    ' prices = { input = "3", cache_read = "1.5" } },'
    ' { input_tokens = 200, rule = "marginal", counts = ["cache_read", "input_uncached"],'
    ' prices = { input = "5", cache_read = "2" } }]\n'
)


@pytest.mark.parametrize(
    ("read", "fresh", "millionths", "tier"),
    [
        (0, 100, 200, 0),
        (0, 101, 203, 100),  # 100 x 2 + 1 x 3
        (40, 60, 160, 0),  # 40 x 1 + 60 x 2
        (40, 61, 163, 100),  # and 1 x 3
        (150, 100, 100 + 75 + 150 + 250, 200),  # 100 x 1 + 50 x 1.5, then 50 x 3 and 50 x 5
        (250, 10, 100 + 150 + 100 + 50, 200),  # 100 x 1 + 100 x 1.5 + 50 x 2, then 10 x 5
    ],
)
def test_only_the_tokens_beyond_a_marginal_threshold_pay_the_higher_price(
    tmp_path: Path, read: int, fresh: int, millionths: int, tier: int
) -> None:
    (row,) = rows(tmp_path, MARGINAL)
    found = cost(row, input_uncached=fresh, cache_read=read, output_visible=1)
    assert (found.amount, found.tier) == (Decimal(millionths + 8) / 10**6, tier)


def test_what_does_not_count_does_not_reach_the_threshold(tmp_path: Path) -> None:
    text = PLAIN.replace('input = "2"', 'input = "2", cache_read = "0.2"')
    text += 'above = [{ input_tokens = 100, rule = "cliff", counts = ["input_uncached"], prices = { input = "4" } }]\n'
    (row,) = rows(tmp_path, text)
    assert cost(row, input_uncached=100, cache_read=500).amount == Decimal("0.0003")  # 100 x 2 + 500 x 0.2
    assert cost(row, input_uncached=101, cache_read=500).amount == Decimal("0.000504")  # 101 x 4 + 500 x 0.2


def test_beyond_the_limit_only_what_is_priced_above_has_a_price(tmp_path: Path) -> None:
    text = (
        PLAIN + 'up_to_input_tokens = 100\nabove = [{ input_tokens = 100, rule = "cliff", prices = { input = "4" } }]\n'
    )
    (row,) = rows(tmp_path, text)
    assert cost(row, input_uncached=101).amount == Decimal("0.000404")
    assert cost(row, input_uncached=101, output_visible=1).status is PriceStatus.CLASS_UNPRICED


FEES = {FeeKind.WEB_SEARCH: Decimal(10), FeeKind.REQUEST: Decimal(5)}
SIZED = {FeeKind.REQUEST_LOW: Decimal(5), FeeKind.REQUEST_MEDIUM: Decimal(8), FeeKind.REQUEST_HIGH: Decimal(12)}


@pytest.mark.parametrize(
    ("fees", "used", "whole", "amount"),
    [
        ({}, {}, True, "0"),
        (FEES, {}, True, "0.005"),
        (FEES, {}, False, "0"),  # a call inside an answer is no request of its own
        (FEES, {"web_search": 3}, True, "0.035"),
        (FEES, {"web_search": 0, "code_execution": 0}, True, "0.005"),
        (FEES, {"code_execution": 1}, True, PriceStatus.FEE_UNPRICED),
        (FEES, {"web_search": -1}, True, PriceStatus.CONTRADICTORY),
        (SIZED, {"request_high": 1}, True, "0.012"),
        (SIZED, {}, True, PriceStatus.FEE_UNPRICED),
        (dict.fromkeys(SIZED, Decimal(6)), {}, True, "0.006"),
    ],
)
def test_uses_are_charged_by_the_thousand(
    fees: dict[FeeKind, Decimal], used: dict[str, int], whole: bool, amount: str
) -> None:
    wanted = amount if isinstance(amount, PriceStatus) else Decimal(amount)
    assert fees_of(fees, used, whole=whole) == wanted


def test_rows_come_back_from_their_tables_with_the_same_ids(tmp_path: Path) -> None:
    text = CLIFF.replace('["m"]', '["c"]') + 'fees = { web_search = "10", source = "25" }\n' + MARGINAL
    before = rows(tmp_path, text + HOURS.replace('["m"]', '["h"]') + PLAIN.replace('["m"]', '["v"]') + VARIANTS)
    after = rows_of(tables_of(before))
    assert {row.price_id for row in before} == set(after)
    assert all(row.price_id == price_id for price_id, row in after.items())
    assert {row.price_id: row.terms for row in before} == {price_id: row.terms for price_id, row in after.items()}


def reading(**own: Any) -> dict[str, Any]:
    counts = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | {cell.name: 0 for cell in CROSSED_CELLS}
    key = {"attempt_hi": 0, "attempt_lo": 1, "source": "s", "child": 0, "report": 0, "revision": 0}
    named = {"provider": "acme", "model": "m", "verdict": "PROVED", "day": DAY}
    totals = {"input_uncached": 1_000_000, "input_total": 1_000_000, "output_total": 0}
    return {**counts, **key, **named, **totals, **own}


def test_the_hour_is_that_of_the_attempts_arrival(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        [reading(attempt_lo=1), reading(attempt_lo=2), reading(attempt_lo=3)], schema=polars_schema("reading")
    )
    told = [(1, "s", at(5, 1, 17, 0)), (1, "t", at(5, 1, 12, 0)), (2, "t", at(5, 1, 12, 0))]
    arrivals = pl.DataFrame(
        [
            {"attempt_hi": 0, "attempt_lo": lo, "source": source, "revision": 0, "arrived_at": moment}
            | {"tier_requested": None}
            for lo, source, moment in told
        ],
        schema_overrides={"arrived_at": pl.Datetime("us", "UTC")},
    )
    priced = price_readings(frame, book(tmp_path, HOURS), arrivals)
    assert priced.select("attempt_lo", "amount", "status").rows() == [
        (1, Decimal(1), "priced"),  # the source that reported goes before another
        (2, Decimal(2), "priced"),
        (3, None, "terms_unknown"),
    ]


def test_what_the_terms_were_stands_beside_the_amount(tmp_path: Path) -> None:
    uses = {"fee_kinds": ["web_search"], "fee_counts": [2]}
    given = [
        reading(service_tier="flex", attempt_lo=1),
        reading(service_tier="priority", attempt_lo=2),
        reading(model="other", attempt_lo=3),
        reading(attempt_lo=4, **uses),
    ]
    text = CLIFF + 'variants = [{ when = { service_tier = "flex" }, times = "0.5" }]\nfees = { web_search = "10" }\n'
    priced = price_readings(pl.DataFrame(given, schema=polars_schema("reading")), book(tmp_path, text))
    assert priced.select("service_tier", "price_tier", "amount_fees", "amount", "status").rows() == [
        ("flex", 500_000, Decimal(0), Decimal(3), "priced"),
        ("priority", None, None, None, "terms_unpriced"),
        (None, None, None, None, "no_price"),
        (None, 500_000, Decimal("0.02"), Decimal("6.02"), "priced"),
    ]


def test_hours_are_written_as_they_are_read() -> None:
    for text in ("16:30-00:30 UTC", "Mon-Fri 10:00-24:00 UTC", "Sat-Sun 00:00-24:00 Asia/Tokyo", "Sun 22:00-02:00 UTC"):
        assert str(Hours.of(text)) == text
    for text in ("Mon-Fri 10:00-24:30 UTC", "Mo 10:00-11:00 UTC", "24:00-10:00 UTC", "Mon-Fri 10:00-10:00 UTC"):
        with pytest.raises(ValueError, match=r"span of hours|ends when it begins"):
            Hours.of(text)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Mon-Fri 10:00-24:00 UTC", "Fri 10:00, Fri 23:59, Mon 10:00"),
        ("Sat-Sun 00:00-24:00 UTC", "Sat 00:00, Sat 10:00, Sat 15:30, Sun 21:59, Sun 23:00, Sun 23:59"),
        ("Sun 22:00-02:00 UTC", "Sun 23:00, Sun 23:59, Mon 01:59"),
        ("Sat-Mon 09:00-11:00 UTC", "Sat 10:00, Mon 10:00"),
        ("Sat 23:00-24:00 Asia/Shanghai", "Sat 15:30"),
    ],
)
def test_hours_of_some_days_of_the_week_begin_on_these(text: str, held: str) -> None:
    """4 December 2026 is a Friday."""
    days = {"Fri": 4, "Sat": 5, "Sun": 6, "Mon": 7}
    asked = ("Fri 01:00", "Fri 09:59", "Fri 10:00", "Fri 23:59", "Sat 00:00", "Sat 10:00", "Sat 15:30", "Sun 21:59",
             "Sun 23:00", "Sun 23:59", "Mon 01:59", "Mon 02:00", "Mon 10:00")  # fmt: skip
    moments = {at: datetime(2026, 12, days[at[:3]], int(at[4:6]), int(at[7:]), tzinfo=UTC) for at in asked}
    assert [name for name, at in moments.items() if Hours.of(text).hold_at(at)] == held.split(", ")


def test_the_tier_asked_for_counts_where_the_report_names_none(tmp_path: Path) -> None:
    given = [reading(attempt_lo=1), reading(attempt_lo=2, service_tier="default"), reading(attempt_lo=3)]
    asked = [(1, "flex"), (2, "flex"), (3, None)]
    arrivals = pl.DataFrame(
        [
            {
                "attempt_hi": 0,
                "attempt_lo": lo,
                "source": "s",
                "revision": 0,
                "arrived_at": None,
                "tier_requested": tier,
            }
            for lo, tier in asked
        ],
        schema_overrides={"arrived_at": pl.Datetime("us", "UTC"), "tier_requested": pl.String},
    )
    frame = pl.DataFrame(given, schema=polars_schema("reading"))
    priced = price_readings(frame, book(tmp_path, PLAIN + VARIANTS), arrivals)
    assert priced.select("service_tier", "amount").rows() == [
        ("flex", Decimal(1)),
        ("default", Decimal(2)),  # downgraded: the tier it was served on is the one that is charged
        (None, Decimal(2)),
    ]
