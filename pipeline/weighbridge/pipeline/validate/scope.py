"""What a validation looked at: all of the lake, or some days and tables of it. A page must not say more than that."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from weighbridge.schemas.tables import TABLES

PAGE = "data-quality.html"  # of everything
LAST_RUN_PAGE = "data-quality-last-run.html"  # of the days a scheduled run came by
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Scope:
    """What was asked for.

    Attributes:
        first, last: the UTC days it begins and ends with; null with `days` where all days were looked at, or none is.
        days: how many; null where all of them.
        tables: the tables; null where all of them.
    """

    first: date | None = None
    last: date | None = None
    days: int | None = None
    tables: tuple[str, ...] | None = None

    @classmethod
    def of(cls, days: Collection[date] | None, tables: Collection[str] | None) -> Scope:
        """The scope of a run over these days and tables; null is all."""
        chosen = None if tables is None or set(tables) >= set(TABLES) else tuple(n for n in TABLES if n in tables)
        if days is None:
            return cls(tables=chosen)
        return cls(min(days, default=None), max(days, default=None), len(set(days)), chosen)

    @property
    def whole(self) -> bool:
        """Whether all of the lake was looked at."""
        return self.days is None and self.tables is None

    @property
    def page(self) -> str:
        """The name of the page: a run over a part of the lake leaves that of the whole where it is."""
        if self.whole:
            return PAGE
        days = "all-days" if self.days is None else "no-days" if self.first is None else f"{self.first}"
        if self.last != self.first:
            days += f"_{self.last}"
        tables = self.tables or ()
        of = [*tables] if len(tables) <= _NAMED else [f"{len(tables)}-tables"]
        return f"data-quality-{'-'.join([days, *of])}.html"

    @property
    def says(self) -> str:
        """The part in words, as in `only 1 UTC day (2026-01-01), and of 29 tables only attempt, reading`."""
        if self.whole:
            return "everything the lake has"
        told = "all days" if self.days is None else f"only {self.days:,} UTC day{'' if self.days == 1 else 's'}"
        if self.first is not None:
            told += f" ({self.first})" if self.first == self.last else f" ({self.first} to {self.last})"
        if self.tables is None:
            return told
        return f"{told}, and of {len(TABLES)} tables only {', '.join(self.tables)}"
