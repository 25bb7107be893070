"""A period is a month or a range of days in a zone; anything else is refused with the way to put it right."""

from __future__ import annotations

from datetime import date

import pytest

from weighbridge.pipeline.report.period import Period, period_of
from weighbridge.schemas.errors import ConfigError

HELD = [date(2026, 2, 27), date(2026, 3, 4)]


def test_a_month_has_its_first_and_last_day() -> None:
    found = period_of(month="2028-02", first=None, last=None, zone="UTC", held=[])
    assert found == Period(date(2028, 2, 1), date(2028, 2, 29), "UTC", "2028-02")
    assert (found.label, found.name, found.months, found.read) == (
        "February 2028",
        "2028-02",
        ["2028-02"],
        (date(2028, 2, 1), date(2028, 2, 29)),
    )


def test_another_zone_reads_one_day_more_on_either_side() -> None:
    found = period_of(month="2026-03", first=None, last=None, zone="Asia/Shanghai", held=[])
    assert found.read == (date(2026, 2, 28), date(2026, 4, 1))


@pytest.mark.parametrize(
    ("first", "last", "name", "label"),
    [
        (None, None, "2026-02-27_2026-03-04", "27 February 2026 to 4 March 2026"),
        (date(2026, 3, 1), None, "2026-03-01_2026-03-04", "1 March 2026 to 4 March 2026"),
        (None, date(2026, 2, 27), "2026-02-27_2026-02-27", "27 February 2026"),
        (date(2026, 4, 1), date(2026, 4, 30), "2026-04", "April 2026"),
    ],
)
def test_days_that_are_not_named_are_those_of_the_lake(
    first: date | None, last: date | None, name: str, label: str
) -> None:
    found = period_of(month=None, first=first, last=last, zone="UTC", held=HELD)
    assert (found.name, found.label) == (name, label)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"month": "2026-13"}, "write it as YYYY-MM"),
        ({"month": "march"}, "write it as YYYY-MM"),
        ({"month": "0000-01"}, "from 0001 to 9999"),
        ({"month": "2026-03", "first": date(2026, 3, 1)}, "give one or the other"),
        ({"first": date(2026, 3, 2), "last": date(2026, 3, 1)}, "give them in order"),
        ({"zone": "Mars/Olympus"}, "name one such as UTC"),
        ({"zone": "../etc"}, "name one such as UTC"),
        ({"held": []}, "name a month"),
    ],
)
def test_what_cannot_be_a_period_is_refused_with_the_next_step(asked: dict[str, object], said: str) -> None:
    usual: dict[str, object] = {"month": None, "first": None, "last": None, "zone": "UTC", "held": HELD}
    with pytest.raises(ConfigError, match=said):
        period_of(**{**usual, **asked})  # type: ignore[arg-type]
