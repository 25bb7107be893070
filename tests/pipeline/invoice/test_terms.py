"""Contracts, rates, zones and shares: figures worked out by hand, and what cannot be used is told with what can."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.ingest.charges.days import begin_of
from weighbridge.pipeline.invoice.contract import Contract, Credit, load_contract, load_contracts
from weighbridge.pipeline.invoice.rates import Rates
from weighbridge.pipeline.invoice.spans import merged, periods
from weighbridge.pipeline.invoice.teams.shares import CENT, divided
from weighbridge.pipeline.invoice.terms import month_terms, volume
from weighbridge.pipeline.invoice.zones import month_of, span_of
from weighbridge.schemas.enumerations import LineKind
from weighbridge.schemas.errors import ConfigError

APRIL = date(2026, 4, 1)


def test_terms_of_a_month_in_their_order() -> None:
    """2,000 of usage: 5 % of the 1,000 above 1,000 is 50; 1,950 draw on 3,000 at 10 % off, 195; 1,050 are not drawn.

    1,950 - 195 + 1,050 = 2,805; 195 are missing to 3,000; credits of 30 (expires first) and 100 pay 130 of it.
    """
    contract = Contract(
        "p",
        volume=((Decimal(1000), Decimal("0.05")),),
        commitment=(Decimal(3000), Decimal("0.1")),
        minimum=Decimal(3000),
        credits=(Credit("early", Decimal(50), APRIL, date(2026, 5, 1)), Credit("late", Decimal(100), APRIL)),
    )
    told = month_terms(contract, Decimal(2000), APRIL, {"early": Decimal(20)})
    assert told.lines == {
        LineKind.DISCOUNT: Decimal(-245),
        LineKind.COMMITMENT: Decimal(1050),
        LineKind.MINIMUM: Decimal(195),
        LineKind.CREDIT: Decimal(-130),
    }
    assert (told.drawn, told.shortfall, told.total) == (Decimal(1950), Decimal(1050), Decimal(2870))
    assert [(each.name, each.used, each.left) for each in told.credits] == [
        ("early", Decimal(30), Decimal(0)),
        ("late", Decimal(100), Decimal(0)),
    ]


def test_credits_pay_no_more_than_there_is_and_none_after_their_end() -> None:
    credits_ = (Credit("gone", Decimal(9), date(2026, 1, 1), APRIL), Credit("big", Decimal(500), APRIL))
    told = month_terms(Contract("p", credits=credits_), Decimal(20), APRIL, {})
    assert [(each.name, each.used, each.left) for each in told.credits] == [("big", Decimal(20), Decimal(480))]
    assert told.total == 0
    assert month_terms(Contract("p", credits=credits_), Decimal(-5), APRIL, {}).credits[0].used == 0


def test_volume_is_taken_off_the_part_above_each_threshold() -> None:
    bands = ((Decimal(100), Decimal("0.1")), (Decimal(200), Decimal("0.2")))
    assert [volume(bands, Decimal(n)) for n in (100, 150, 200, 300)] == [0, 5, 10, 30]


@given(
    st.decimals("-100000", "100000", places=4),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**6), min_size=1).filter(lambda w: any(w.values())),
)
def test_parts_add_up_to_the_whole_and_are_within_a_unit_of_their_share(
    whole: Decimal, weights: dict[str, int]
) -> None:
    parts = divided(whole, weights)
    assert sum(parts.values()) == whole
    assert parts.keys() == weights.keys()
    total = sum(weights.values())
    assert all(abs(part * total - whole * weights[name]) < 2 * CENT * total for name, part in parts.items())


def test_the_largest_remainders_get_the_cents_that_are_left() -> None:
    assert divided(Decimal(1), {"a": 1, "b": 1, "c": 1}) == {
        "a": Decimal("0.34"),
        "b": Decimal("0.33"),
        "c": Decimal("0.33"),
    }
    assert divided(Decimal("0.05"), {"a": 1, "b": 2}) == {"a": Decimal("0.02"), "b": Decimal("0.03")}
    for weights in ({"a": 0}, {"a": 1, "b": -1}, {}):
        with pytest.raises(ConfigError, match="divide nothing"):
            divided(Decimal(1), weights)


def test_rates_are_those_of_the_day_told_inverse_or_over_another_currency() -> None:
    rates = Rates({("EUR", "USD", APRIL): Decimal("1.25"), ("EUR", "JPY", APRIL): Decimal(160)})
    assert rates.rate("EUR", "USD", APRIL) == Decimal("1.25")
    assert rates.rate("USD", "EUR", APRIL) == Decimal("0.8")
    assert rates.rate("USD", "JPY", APRIL) == Decimal(128)
    assert rates.rate("USD", "USD", date(2020, 1, 1)) == 1
    assert rates.rate("EUR", "USD", APRIL + timedelta(days=1)) is None
    assert rates.rate("EUR", "USD", APRIL + timedelta(days=7), nearest_before=True) == Decimal("1.25")
    assert rates.rate("EUR", "USD", APRIL + timedelta(days=8), nearest_before=True) is None
    assert rates.rate("EUR", "GBP", APRIL, nearest_before=True) is None


@pytest.mark.parametrize(
    ("zone", "day", "begin", "hours"),
    [
        ("UTC", date(2026, 4, 1), "2026-04-01T00:00+00:00", 24),
        ("America/New_York", date(2026, 3, 8), "2026-03-08T05:00+00:00", 23),
        ("America/New_York", date(2026, 11, 1), "2026-11-01T04:00+00:00", 25),
        ("Asia/Kolkata", date(2026, 4, 1), "2026-03-31T18:30+00:00", 24),
        ("Australia/Lord_Howe", date(2026, 4, 5), "2026-04-04T13:00+00:00", 24.5),
        ("America/Santiago", date(2026, 9, 6), "2026-09-06T04:00+00:00", 23),  # midnight does not exist
    ],
)
def test_days_of_a_billing_zone(zone: str, day: date, begin: str, hours: float) -> None:
    assert begin_of(day, zone) == datetime.fromisoformat(begin)
    assert begin_of(day + timedelta(days=1), zone) - begin_of(day, zone) == timedelta(hours=hours)


def test_months_of_a_billing_zone_leave_no_hole() -> None:
    months = [f"2026-{number:02}" for number in range(1, 13)]
    for zone in ("Asia/Tokyo", "America/Los_Angeles", "Asia/Kathmandu"):
        spans = [span_of(month, zone) for month in months]
        assert all(one[1] == two[0] for one, two in itertools.pairwise(spans))
        assert [month_of(start, zone) for start, _ in spans] == months
        assert [month_of(end - timedelta(microseconds=1), zone) for _, end in spans] == months
    assert month_of(datetime(2026, 5, 31, 15, tzinfo=UTC), "Asia/Tokyo") == "2026-06"


def test_periods_of_lines_that_overlap_are_one_and_the_rest_of_the_month_stays_in_days() -> None:
    def hour(day: int, number: int) -> datetime:
        return datetime(2026, 4, day, number, tzinfo=UTC)

    assert merged([(hour(1, 0), hour(2, 0)), (hour(1, 5), hour(1, 6)), (hour(2, 0), hour(3, 0))]) == [
        (hour(1, 0), hour(2, 0)),
        (hour(2, 0), hour(3, 0)),
    ]
    found = periods([(hour(2, 6), hour(2, 7))], "2026-04", "UTC", foreign=[(hour(30, 22), hour(30, 23))])
    assert found[:4] == [
        (hour(1, 0), hour(2, 0)),
        (hour(2, 0), hour(2, 6)),
        (hour(2, 6), hour(2, 7)),
        (hour(2, 7), hour(3, 0)),
    ]
    assert (hour(30, 22), hour(30, 23)) not in found
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(found))
    covered = sum((end - start for start, end in found), start=timedelta())
    assert covered == timedelta(days=30) - timedelta(hours=1)


GOOD = """
provider = "openai"
zone = "America/Los_Angeles"
lateness_hours = 72
[models]
"theirs" = "ours"
[rounding]
places = 2
mode = "up"
[[discounts]]
percent = "12.5"
classes = ["cache_read"]
from = 2026-04-01
[[credits]]
name = "b"
amount = "1"
from = 2026-01-01
[[credits]]
name = "a"
amount = "2"
from = 2026-01-01
to = 2026-06-01
"""


def test_a_contract_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(GOOD, encoding="utf-8")
    told = load_contract(path)
    assert (told.zone, told.lateness_hours, told.models) == ("America/Los_Angeles", 72, {"theirs": "ours"})
    assert (
        (told.rounding.places, told.rounding.mode, told.rounding.per) == (2, "up", "line") if told.rounding else False
    )
    assert (told.discounts[0].fraction, told.discounts[0].first) == (Decimal("0.125"), APRIL)
    assert [credit.name for credit in told.credits] == ["a", "b"]
    assert load_contracts([tmp_path]) == {"openai": told}
    (tmp_path / "d.toml").write_text('provider = "openai"', encoding="utf-8")
    with pytest.raises(ConfigError, match="another contract with openai"):
        load_contracts([tmp_path])


@pytest.mark.parametrize(
    ("was", "becomes", "match"),
    [
        ('provider = "openai"', "", "needs provider"),
        ("lateness_hours", "latness_hours", "did you mean lateness_hours"),
        ("America/Los_Angeles", "Mars", "no IANA time zone"),
        ('"up"', '"upwards"', "allowed are half_even"),
        ('"12.5"', "12.5", "number in quotes"),
        ('"12.5"', '"101"', "at most 100"),
        ('"cache_read"', '"cash_read"', "allowed are input_uncached"),
        ("from = 2026-04-01", 'from = "2026-04-01"', "without quotes"),
        ("places = 2", "places = 19", "0 to 18"),
        ('name = "b"', 'name = "b b"', "name without blanks"),
        ("[models]", "[model]", "did you mean models"),
    ],
)
def test_a_contract_that_cannot_be_used_says_what_is_allowed(
    tmp_path: Path, was: str, becomes: str, match: str
) -> None:
    assert was in GOOD
    path = tmp_path / "c.toml"
    path.write_text(GOOD.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        load_contract(path)
