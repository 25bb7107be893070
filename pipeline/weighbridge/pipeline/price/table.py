"""The tables of prices, from rows of a book and back: what a lake or a close holds prices anything as the book did.

price       one for each cell that has a price, with the terms of its row
price_tier  one for each cell that has another price above a length of input
price_fee   one for each kind of use that is charged
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import polars as pl

from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.terms import Hours, Terms
from weighbridge.pipeline.price.tier import ALL_INPUT, Tier
from weighbridge.schemas.enumerations import FeeKind, Modality, TierRule, TokenClass

TABLES = ("price", "price_tier", "price_fee")


def tables_of(rows: Iterable[PriceRow]) -> dict[str, pl.DataFrame]:
    """Table name -> the rows of it that these price rows are."""
    records: dict[str, list[dict[str, object]]] = {name: [] for name in TABLES}
    for row in rows:
        records["price"] += _prices(row)
        records["price_tier"] += _tiers(row)
        records["price_fee"] += [
            {"price_id": row.price_id, "kind": str(kind), "per_thousand": each} for kind, each in row.fees.items()
        ]
    return {name: pl.DataFrame(held, schema=polars_schema(name)) for name, held in records.items()}


def price_rows(records: Records, wanted: Collection[str] | None = None) -> dict[str, PriceRow]:
    """Id in the tables -> row; only those whose id is wanted, all where null.

    A row's own `price_id` follows from its content: where it is another one, the tables hold what nobody put there.
    """
    return rows_of({name: records.scan(name).collect() for name in TABLES}, wanted)


def rows_of(tables: Mapping[str, pl.DataFrame], wanted: Collection[str] | None = None) -> dict[str, PriceRow]:
    """As `price_rows`, from the rows of the tables; one that is not there has none."""
    found: dict[str, defaultdict[str, list[Mapping[str, Any]]]] = {}
    for name in TABLES:
        found[name] = defaultdict(list)
        if name not in tables:
            continue
        rows = tables[name] if wanted is None else tables[name].filter(pl.col("price_id").is_in(list(wanted)))
        for held in rows.iter_rows(named=True):
            found[name][held["price_id"]].append(held)
    return {
        price_id: _row(cells, found["price_tier"].get(price_id, []), found["price_fee"].get(price_id, []))
        for price_id, cells in found["price"].items()
    }


def _prices(row: PriceRow) -> list[dict[str, object]]:
    shared = {
        "price_id": row.price_id,
        "provider": row.provider,
        "match": str(row.match),
        "model": row.model,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "up_to_input_tokens": row.up_to_input_tokens,
        "currency": row.currency,
        "origin": row.origin,
        "checked_on": row.checked_on,
        "service_tier": row.terms.service_tier,
        "batch": row.terms.batch or None,
        "region": row.terms.region,
        "hours": None if row.terms.hours is None else str(row.terms.hours),
    }
    return [
        {**shared, "token_class": str(token_class), "modality": str(modality), "per_million": value}
        for (token_class, modality), value in row.prices.items()
    ]


def _tiers(row: PriceRow) -> list[dict[str, object]]:
    return [
        {
            "price_id": row.price_id,
            "above_tokens": tier.above,
            "rule": str(tier.rule),
            "counted": tier.counts,
            "token_class": str(token_class),
            "modality": str(modality),
            "per_million": value,
        }
        for tier in row.above
        for (token_class, modality), value in tier.prices.items()
    ]


def _row(cells: list[Mapping[str, Any]], tiers: list[Mapping[str, Any]], fees: list[Mapping[str, Any]]) -> PriceRow:
    first = cells[0]
    return PriceRow(
        provider=first["provider"],
        match=Match(first["match"]),
        model=first["model"],
        prices=_by_cell(cells),
        currency=first["currency"],
        origin=first["origin"],
        valid_from=first["valid_from"],
        valid_to=first["valid_to"],
        checked_on=first["checked_on"],
        up_to_input_tokens=first["up_to_input_tokens"],
        terms=_terms(first),
        above=tuple(_tier(above, tiers) for above in sorted({tier["above_tokens"] for tier in tiers})),
        fees={FeeKind(fee["kind"]): fee["per_thousand"] for fee in fees},
        where=f"price row {first['price_id'][:8]}",
    )


def _by_cell(cells: Iterable[Mapping[str, Any]]) -> dict[tuple[TokenClass, Modality], Any]:
    return {(TokenClass(cell["token_class"]), Modality(cell["modality"])): cell["per_million"] for cell in cells}


def _terms(first: Mapping[str, Any]) -> Terms:
    hours = first.get("hours")
    return Terms(
        first.get("service_tier"),
        bool(first.get("batch")),
        first.get("region"),
        None if hours is None else Hours.of(hours),
    )


def _tier(above: int, tiers: list[Mapping[str, Any]]) -> Tier:
    own = [tier for tier in tiers if tier["above_tokens"] == above]
    counts = own[0]["counted"]
    counted = () if counts == ALL_INPUT else tuple(TokenClass(name) for name in counts.split("+"))
    return Tier(above, TierRule(own[0]["rule"]), counted, _by_cell(own))
