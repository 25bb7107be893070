"""The price book: the shipped files, overridden by the user's own, and the one row that is for a model on a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path

import polars as pl

from weighbridge.pipeline.price.price_file import files_of, read_prices
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.table import tables_of
from weighbridge.pipeline.price.terms import AUTO, FAST, Served, Terms
from weighbridge.schemas.errors import ConfigError

SHIPPED = Path(__file__).parent / "book"


class PriceBook:
    """Layers of price rows. A row of an earlier layer goes before every row of a later one, for what it matches.

    Args:
        layers: rows of one origin each, the most important first.

    Raises:
        ConfigError: inside one layer, two rows for the same model text hold on the same day.
    """

    def __init__(self, layers: Iterable[Sequence[PriceRow]]) -> None:
        """Check the rows of each layer against each other."""
        self._layers = [_by_provider(rows) for rows in layers]
        self._found: dict[tuple[str, str], list[list[PriceRow]]] = {}

    @classmethod
    def load(cls, extra: Sequence[Path] = ()) -> PriceBook:
        """The shipped book under the user's files, of which a later one goes before an earlier one.

        Args:
            extra: price files, or folders whose `*.toml` files are read.

        Raises:
            ConfigError: a file cannot be used as written.
        """
        own = [[row for file in files_of(path) for row in read_prices(file)] for path in reversed(extra)]
        return cls([*own, _shipped()])

    @property
    def rows(self) -> list[PriceRow]:
        """Every row, in the order of the layers; of rows with the same content only the first."""
        every = (row for layer in self._layers for rows in layer.values() for row in rows)
        return list({row.price_id: row for row in reversed(list(every))}.values())[::-1]

    @property
    def layers(self) -> list[list[PriceRow]]:
        """The rows layer by layer, the most important first; with some left out, the others are found as before."""
        return [[row for rows in layer.values() for row in rows] for layer in self._layers]

    def find(self, provider: str | None, model: str | None, day: date, served: Served | None = None) -> PriceRow | None:
        """The row that is for this model on this UTC day and these terms; null where none or several may be.

        Raises:
            ConfigError: two patterns fit equally well.
        """
        possible = self.possible(provider, model, day, served or Served())
        return possible[0] if len(possible) == 1 else None

    def possible(
        self, provider: str | None, model: str | None, day: date, served: Served
    ) -> tuple[PriceRow | None, ...]:
        """The rows that may be for a reading: one, or several where its terms do not tell; none where none is known.

        An earlier layer goes before a later one, then equals before the longest prefix, a prefix before a pattern, a
        row with a known start before one without, and one for some hours before one for any time. A tier that is told
        as `auto` may be any that has a price, but for `fast`, which is asked for by itself; one that has a price
        elsewhere, and none in the region, may be it at a price that is not known: null.

        Raises:
            ConfigError: two patterns fit equally well.
        """
        layers = [[row for row in layer if row.holds_on(day)] for layer in self._candidates(provider, model)]
        tiers: Iterable[str | None] = [served.service_tier]
        if served.service_tier == AUTO:
            named = (row.terms.service_tier for layer in layers for row in layer)
            tiers = dict.fromkeys([None, *(tier for tier in named if tier != FAST)])
        found: dict[PriceRow | None, None] = {}
        for tier in tiers:
            each = _fitting(layers, replace(served, service_tier=tier))
            elsewhere = replace(served, service_tier=tier, region=None)
            if each != [None] or served.service_tier != AUTO or _fitting(layers, elsewhere) != [None]:
                found |= dict.fromkeys(each)
        return () if list(found) == [None] else tuple(found)

    def knows(self, provider: str | None, model: str | None, day: date) -> bool:
        """Whether any row is for this model on this UTC day, on whatever terms."""
        return any(row.holds_on(day) for layer in self._candidates(provider, model) for row in layer)

    def names(self, provider: str | None, model: str | None) -> bool:
        """Whether any row is for this model, on whatever day and terms."""
        return any(self._candidates(provider, model))

    def hangs_on_hours(self, provider: str | None, model: str | None) -> bool:
        """Whether a price of this model holds at some hours only."""
        return any(row.terms.hours is not None for layer in self._candidates(provider, model) for row in layer)

    @property
    def by_the_hour(self) -> bool:
        """Whether any price holds at some hours only."""
        return any(row.terms.hours is not None for row in self.rows)

    def _candidates(self, provider: str | None, model: str | None) -> list[list[PriceRow]]:
        if provider is None or model is None:
            return []
        if (provider, model) not in self._found:
            self._found[provider, model] = [
                [row for row in layer.get(provider, []) if row.serves(model)] for layer in self._layers
            ]
        return self._found[provider, model]

    def frames(self) -> dict[str, pl.DataFrame]:
        """The rows as the tables `price`, `price_tier` and `price_fee`."""
        return tables_of(self.rows)


def _fitting(layers: Sequence[Sequence[PriceRow]], served: Served) -> list[PriceRow | None]:
    """The first row that fits for sure, after those before it that may fit; null in its place where there is none."""
    found: list[PriceRow | None] = []
    for layer in layers:
        # A row for a wider name says nothing of a model that a narrower one is for, on whatever terms.
        most = max((row.specificity for row in layer), default=None)
        left = [row for row in layer if row.specificity == most and row.terms.fit(served) is not False]
        while left:
            best = _best(left, served)
            found.append(best)
            if best.terms.fit(served):
                return found
            left.remove(best)
    return [*found, None]


@cache
def _shipped() -> tuple[PriceRow, ...]:
    """The rows of the shipped files, which do not change while a process runs."""
    return tuple(row for file in files_of(SHIPPED) for row in read_prices(file))


def _by_provider(rows: Sequence[PriceRow]) -> dict[str, list[PriceRow]]:
    layer: defaultdict[str, list[PriceRow]] = defaultdict(list)
    same: defaultdict[tuple[str, str, str, Terms], list[PriceRow]] = defaultdict(list)
    for row in rows:
        layer[row.provider].append(row)
        same[row.provider, row.match, row.model, row.terms].append(row)
    for group in same.values():
        _check_days(group)
    return layer


def _check_days(rows: list[PriceRow]) -> None:
    undated = [row for row in rows if row.valid_from is None]
    # Two rows with an unknown start both hold on every day before the first of their ends.
    pairs = list(pairwise(undated))
    dated = sorted((row for row in rows if row.valid_from), key=lambda row: row.valid_from or date.min)
    pairs += [(one, two) for one, two in pairwise(dated) if two.valid_from and one.holds_on(two.valid_from)]
    if pairs:
        one, two = pairs[0]
        raise ConfigError(
            f"price rows {one.where} and {two.where} both hold for {one.match} {one.model!r} on the same days; "
            "end the earlier one with valid_to, or start the later one with valid_from"
        )


def _rank(row: PriceRow) -> tuple[tuple[int, int], bool, bool]:
    return row.specificity, row.valid_from is not None, row.terms.hours is not None


def _best(rows: Sequence[PriceRow], served: Served) -> PriceRow:
    most = max(map(_rank, rows))
    best = [row for row in rows if _rank(row) == most]
    sure = [row for row in best if row.terms.fit(served)]
    if len(sure) > 1 and sure[0].match is Match.PATTERN:
        raise ConfigError(
            f"the price patterns of {sure[0].where} and {sure[1].where} fit the same model equally well; "
            'make one of them narrower, or add a row with match = "equals"'
        )
    if len(sure) > 1:
        raise ConfigError(
            f"the hours of {sure[0].where} and {sure[1].where} overlap, and both are for {sure[0].model!r}; "
            "end one where the other begins"
        )
    return best[0]
