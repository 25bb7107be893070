"""Bills whose days are those of a zone: the hour that is missing or twice, the day that begins in the month before."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.invoice.world import LATER, World

from weighbridge.pipeline.ingest.charges.days import a_day_after, begin_of
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.invoice.compare import rows
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.reconcile import Books, months_compared
from weighbridge.pipeline.invoice.zones_of_bills import zoned
from weighbridge.pipeline.lake import Lake

MAPPING = """
[source]
name = "acme-reseller"
provider = "openai"
currency = "USD"
[charges]
amount = "net"
start = "day"
sku = "article"
[time]
format = "%d.%m.%Y"
zone = "ZONE"
[skus.IN]
kind = "tokens"
token_class = "input_uncached"
model = "m"
"""


def billed(tmp_path: Path, zone: str, days: dict[str, str], calls: dict[datetime, int]) -> tuple[World, Lake]:
    """A lake with calls of so many million tokens, at 3 dollars a million, and a bill of local days."""
    world = World(tmp_path)
    for when, millions in calls.items():
        world.call(when, input_uncached=millions * 10**6)
    lake = world.lake()
    bill, mapping = tmp_path / "bill.csv", tmp_path / "bill.toml"
    bill.write_text("day,net,article\n" + "".join(f"{day},{paid},IN\n" for day, paid in days.items()), encoding="utf-8")
    mapping.write_text(MAPPING.replace("ZONE", zone), encoding="utf-8")
    taken = ingest([bill], lake, key=b"k" * 16, day=date(2026, 12, 1), mapping=mapping)
    assert taken.files[0].rows_out == len(days)
    return world, lake


def weighed(world: World, lake: Lake, contracts: dict[str, Contract]) -> list[tuple[Any, ...]]:
    """Month, begin, end and status of each cell of money."""
    results = months_compared(lake, Books(zoned(contracts, lake), world.book()), LATER)
    cells = [row for each in results for row in rows(each)[0]]
    told = ((row["period"], row["period_start"], row["period_end"], row["status"]) for row in cells)
    return sorted(told)


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_the_day_the_clock_is_put_forward_and_the_end_of_the_month(tmp_path: Path) -> None:
    """29 March 2026 has 23 hours in Berlin; 1 April begins there two hours before it does in UTC."""
    days = {"28.03.2026": "3", "29.03.2026": "6", "30.03.2026": "12", "31.03.2026": "24", "01.04.2026": "48"}
    moments = (utc(3, 28, 22, 30), utc(3, 28, 23, 30), utc(3, 29, 22, 30), utc(3, 31, 21, 30), utc(3, 31, 22, 30))
    world, lake = billed(tmp_path, "Europe/Berlin", days, dict(zip(moments, (1, 2, 4, 8, 16), strict=True)))
    begins = [utc(3, 27, 23), utc(3, 28, 23), utc(3, 29, 22), utc(3, 30, 22), utc(3, 31, 22), utc(4, 1, 22)]
    months = ["2026-03"] * 4 + ["2026-04"]
    spans = zip(months, begins[:-1], begins[1:], strict=True)
    assert weighed(world, lake, {}) == [(*span, "MATCHED") for span in spans]


def test_the_day_the_clock_is_put_back(tmp_path: Path) -> None:
    """25 October 2026 has 25 hours in Berlin: the call in the last of them is of that day."""
    days = {"25.10.2026": "2", "26.10.2026": "4"}
    world, lake = billed(tmp_path, "Europe/Berlin", days, {utc(10, 25, 22, 30): 1, utc(10, 25, 23, 30): 2})
    assert weighed(world, lake, {}) == [
        ("2026-10", utc(10, 24, 22), utc(10, 25, 23), "MATCHED"),
        ("2026-10", utc(10, 25, 23), utc(10, 26, 23), "MATCHED"),
    ]


def test_a_contract_goes_before_the_bill(tmp_path: Path) -> None:
    """It says that months are those of UTC: the first day of April stands in March."""
    world, lake = billed(tmp_path, "Europe/Berlin", {"01.04.2026": "3"}, {utc(3, 31, 22, 30): 1})
    (told,) = weighed(world, lake, {})
    assert (told[0], told[-1]) == ("2026-04", "MATCHED")
    (told,) = weighed(world, lake, {"openai": Contract("openai", zone_agreed=True)})
    assert (told[0], told[-1]) == ("2026-03", "MATCHED")
    (told,) = weighed(world, lake, {"openai": Contract("openai", lateness_hours=1)})
    assert (told[0], told[-1]) == ("2026-04", "MATCHED")


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/Santiago", date(2026, 9, 6), 23),  # its midnight does not exist
        ("America/Havana", date(2026, 11, 1), 25),  # its midnight is there twice
        ("UTC", date(2026, 3, 29), 24),
    ],
)
def test_a_day_ends_where_the_next_one_begins(zone: str, day: date, hours: int) -> None:
    begin = begin_of(day, zone)
    assert (a_day_after(begin, zone) - begin).total_seconds() == hours * 3600


def test_a_midnight_that_does_not_exist_is_no_unreadable_line(tmp_path: Path) -> None:
    """In Santiago 6 September 2026 begins at one o'clock, 4:00 UTC."""
    _, lake = billed(tmp_path, "America/Santiago", {"06.09.2026": "1"}, {})
    (line,) = lake.scan("invoice_line").collect().iter_rows(named=True)
    assert (line["period_start"], line["period_end"]) == (utc(9, 6, 4), utc(9, 7, 3))
