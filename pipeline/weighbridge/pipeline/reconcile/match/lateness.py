"""Until when the other side may still come: what is open is provisional, and no usage is missing yet.

    attempt of 10 March, reports come up to 2 days late     as_of 12 March  provisional, open until 12 March
                                                            as_of 13 March  final: usage_missing

Nothing is open where nobody says which day it is: what was closed, and what is computed again, is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import polars as pl

SCHEMA = {"asked": pl.String(), "w_day": pl.Date(), "w_seen": pl.Boolean(), "open_until": pl.Date()}


@dataclass(frozen=True, slots=True)
class Lateness:
    """How many days after the day of an attempt the missing side may still come.

    Attributes:
        reports, attempts: usage reports of attempts that were seen, and attempts to reports that nobody saw.
        providers: provider -> its own days, by the same two names; what it leaves out is as for all.
    """

    reports: int = 2
    attempts: int = 2
    providers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Lateness:
        """From the table `lateness` of the settings."""
        own = {name: {k: v for k, v in days.items() if v is not None} for name, days in table["providers"].items()}
        return cls(table["reports"], table["attempts"], own)

    def days(self, provider: str | None, *, seen: bool) -> int:
        """The days for a provider: of its reports where the attempt was seen, else of attempts."""
        name, default = ("reports", self.reports) if seen else ("attempts", self.attempts)
        return self.providers.get(provider or "", {}).get(name, default)

    @property
    def distinct(self) -> tuple[int, ...]:
        """Every number of days that matters to anybody, in order."""
        own = (days for table in self.providers.values() for days in table.values())
        return tuple(sorted({self.reports, self.attempts, *own}))

    def longest_open(self, as_of: date) -> date:
        """The earliest day of which anything may still be open."""
        return _moved(as_of, -max(self.distinct))

    def waiting(self, as_of: date | None, providers: Iterable[str | None], days: Iterable[date]) -> pl.DataFrame | None:
        """`SCHEMA`: the open days of each provider, `asked` being its name or empty; null where nothing is open.

        Args:
            as_of: the day it is; null where nothing can come any more.
            providers: the ones in question.
            days: days of attempts, or of reports without one.
        """
        if as_of is None:
            return None
        near = sorted(day for day in set(days) if day >= self.longest_open(as_of))
        rows = [
            (provider, day, seen, until)
            for provider in sorted({name or "" for name in providers})
            for day in near
            for seen in (True, False)
            if (until := _moved(day, self.days(provider, seen=seen))) >= as_of
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row") if rows else None


def settled(days: Iterable[date], as_of: date, lateness: Lateness) -> list[tuple[int, date]]:
    """Per number of days that matters those days of which nothing can come so late any more."""
    held = sorted(days)
    return [(late, day) for late in lateness.distinct for day in held if _moved(day, late) < as_of]


def _moved(day: date, by: int) -> date:
    try:
        return day + timedelta(days=by)
    except OverflowError:
        return date.max if by > 0 else date.min
