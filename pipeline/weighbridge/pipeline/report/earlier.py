"""Months that were closed, for the report of another one: what it needs of a close, wherever that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Protocol


class Place(StrEnum):
    """Which month it is, seen from the reported one."""

    THIS = "this_month"
    MONTH = "previous_month"
    YEAR = "previous_year"


class State(StrEnum):
    """What can be said of the close of a month."""

    CLOSED = "closed"
    OPEN = "not_closed"
    NONE = "nothing_recorded"
    GONE = "pack_gone"
    DAMAGED = "pack_damaged"


class Entry(Protocol):
    """One group of closed figures."""

    @property
    def values(self) -> Mapping[str, int | Decimal | None]:
        """Name -> exact value; null is unknown."""
        ...

    def about(self, name: str) -> str | None:
        """One thing it is about, null where it is about no such thing."""
        ...


@dataclass(frozen=True, slots=True)
class Earlier:
    """A month and its close.

    Attributes:
        period: `YYYY-MM`, a UTC month.
        state: whether it is closed, and its pack whole.
        root: of the close, as it stands in the lake; null where it is not closed.
        figures: section -> entries; empty unless it is closed.
    """

    period: str
    state: State
    root: str | None = None
    figures: Mapping[str, Sequence[Entry]] = field(default_factory=dict)


Closes = Mapping[Place, Earlier]
