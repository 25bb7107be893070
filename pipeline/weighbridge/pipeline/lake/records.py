"""What a room needs of a lake, so that a pure function runs on a lake, a close pack or rows in memory alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Protocol

import polars as pl


class Records(Protocol):
    """Tables that can be read."""

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table, or of some UTC days of it; see `Lake.scan`."""
        ...

    def days(self, table: str) -> list[date]:
        """The UTC days a table has rows of, in order."""
        ...


class Tables(Records, Protocol):
    """Tables whose days can be overwritten too."""

    def replace(self, table: str, frame: pl.DataFrame, *, days: Collection[date] | None) -> None:
        """Make `frame` the whole content of those days; see `Lake.replace`."""
        ...
