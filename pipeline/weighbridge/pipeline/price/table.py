"""The table `price` back into rows of a book: what a lake or a close holds prices anything as the book did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import Modality, TokenClass


def rows_of(price: pl.DataFrame, wanted: Collection[str] | None = None) -> dict[str, PriceRow]:
    """Id in the table -> row, from rows of the table `price`; only those whose id is wanted, all where null.

    A row's own `price_id` follows from its content: where it is another one, the table holds what nobody put there.
    """
    cells: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for cell in price.iter_rows(named=True):
        if wanted is None or cell["price_id"] in wanted:
            cells[cell["price_id"]].append(cell)
    return {price_id: _row(found) for price_id, found in cells.items()}


def _row(cells: list[Mapping[str, Any]]) -> PriceRow:
    first = cells[0]
    return PriceRow(
        provider=first["provider"],
        match=Match(first["match"]),
        model=first["model"],
        prices={(TokenClass(c["token_class"]), Modality(c["modality"])): c["per_million"] for c in cells},
        currency=first["currency"],
        origin=first["origin"],
        valid_from=first["valid_from"],
        valid_to=first["valid_to"],
        checked_on=first["checked_on"],
        up_to_input_tokens=first["up_to_input_tokens"],
        where=f"price row {first['price_id'][:8]}",
    )
