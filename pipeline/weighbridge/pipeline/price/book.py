"""The price book: the shipped files, overridden by the user's own, and the one row that is for a model on a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

import polars as pl

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.pipeline.price.row import PriceRow
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
        own = [[row for file in _files(path) for row in read_prices(file)] for path in reversed(extra)]
        return cls([*own, [row for file in _files(SHIPPED) for row in read_prices(file)]])

    @property
    def rows(self) -> list[PriceRow]:
        """Every row, in the order of the layers; of rows with the same content only the first."""
        every = (row for layer in self._layers for rows in layer.values() for row in rows)
        return list({row.price_id: row for row in reversed(list(every))}.values())[::-1]

    @property
    def layers(self) -> list[list[PriceRow]]:
        """The rows layer by layer, the most important first; with some left out, the others are found as before."""
        return [[row for rows in layer.values() for row in rows] for layer in self._layers]

    def find(self, provider: str | None, model: str | None, day: date) -> PriceRow | None:
        """The row that is for this model on this UTC day, or null where none is known.

        Equals goes before the longest prefix, a prefix before a pattern, a row with a known start before one without.

        Raises:
            ConfigError: two patterns fit equally well.
        """
        if provider is None or model is None:
            return None
        if (provider, model) not in self._found:
            self._found[provider, model] = [
                [row for row in layer.get(provider, []) if row.serves(model)] for layer in self._layers
            ]
        for candidates in self._found[provider, model]:
            holding = [row for row in candidates if row.holds_on(day)]
            if holding:
                return _best(holding)
        return None

    def frame(self) -> pl.DataFrame:
        """The rows as the table `price`: one for each cell that has a price."""
        records = [
            {
                "price_id": row.price_id,
                "provider": row.provider,
                "match": str(row.match),
                "model": row.model,
                "valid_from": row.valid_from,
                "valid_to": row.valid_to,
                "token_class": str(token_class),
                "modality": str(modality),
                "per_million": value,
                "up_to_input_tokens": row.up_to_input_tokens,
                "currency": row.currency,
                "origin": row.origin,
                "checked_on": row.checked_on,
            }
            for row in self.rows
            for (token_class, modality), value in row.prices.items()
        ]
        return pl.DataFrame(records, schema=polars_schema("price"))


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.toml")) if path.is_dir() else [path]


def _by_provider(rows: Sequence[PriceRow]) -> dict[str, list[PriceRow]]:
    layer: defaultdict[str, list[PriceRow]] = defaultdict(list)
    same: defaultdict[tuple[str, str, str], list[PriceRow]] = defaultdict(list)
    for row in rows:
        layer[row.provider].append(row)
        same[row.provider, row.match, row.model].append(row)
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


def _best(rows: list[PriceRow]) -> PriceRow:
    most = max(row.specificity for row in rows)
    best = [row for row in rows if row.specificity == most]
    best = [row for row in best if row.valid_from is not None] or best
    if len(best) > 1:
        raise ConfigError(
            f"the price patterns of {best[0].where} and {best[1].where} fit the same model equally well; "
            'make one of them narrower, or add a row with match = "equals"'
        )
    return best[0]
