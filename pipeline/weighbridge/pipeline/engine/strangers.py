"""Attempts of a model of which nothing says that a certain engine served them: how many ran while a window lasted.

A client that speaks to a server of one's own by the API of somebody else may have told the name of that API. Its calls
then look like another provider's, and those the engine counted like nobody's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import datetime

import polars as pl


@dataclass(frozen=True, slots=True)
class Strangers:
    """When such attempts began and when they ended, each sorted by itself."""

    begun: tuple[datetime, ...] = ()
    ended: tuple[datetime, ...] = ()

    @classmethod
    def of(cls, lives: pl.DataFrame) -> Strangers:
        """Those of some lives (`lives.lives`)."""
        begun = lives["begin"].drop_nulls().sort()
        return cls(tuple(begun), tuple(lives.select(pl.max_horizontal("begin", "end")).to_series().drop_nulls().sort()))

    def during(self, since: datetime, until: datetime) -> int:
        """How many had begun by the end of a stretch, less those that were done before it began."""
        return bisect_right(self.begun, until) - bisect_left(self.ended, since)
