"""A row of prices: what it is for, where it was read and when, its cells, and how many amounts were made with it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.reconcile.tree.node import Node, leaves

_ROW = (
    *(
        "provider",
        "match",
        "model",
        "valid_from",
        "valid_to",
        "up_to_input_tokens",
        "currency",
        "service_tier",
        "batch",
    ),
    *("region", "hours", "origin", "checked_on"),
)


def find(asked: Asked) -> Iterator[str]:
    """Rows of prices whose id begins so."""
    if asked.digits:
        ids = asked.lake.scan("price", columns=["price_id"]).filter(pl.col("price_id").str.starts_with(asked.digits))
        yield from ids.unique().sort("price_id").collect()["price_id"]


def node(asked: Asked, price_id: str) -> Node:
    """The tree behind a row of prices."""
    own = pl.col("price_id") == price_id
    cells = asked.lake.scan("price").filter(own).sort("token_class", "modality").collect().to_dicts()
    told = tuple(Node(f"{each['token_class']} {each['modality']}", each["per_million"]) for each in cells)
    tiers = tuple(
        Node(f"above {each['above_tokens']} tokens: {each['token_class']} {each['modality']}", each["per_million"])
        for each in asked.lake.scan("price_tier")
        .filter(own)
        .sort("above_tokens", "token_class", "modality")
        .collect()
        .iter_rows(named=True)
    )
    fees = tuple(
        Node(f"a thousand of {each['kind']}", each["per_thousand"])
        for each in asked.lake.scan("price_fee").filter(own).sort("kind").collect().iter_rows(named=True)
    )
    used = asked.lake.scan("priced_amount", columns=["price_id"]).filter(own).select(pl.len())
    amounts = Node("amounts made with it", used.collect(engine="streaming").item())
    groups = (("per million tokens", told), ("tiers", tiers), ("fees", fees))
    return Node(
        "price",
        price_id,
        (*leaves(cells[0], _ROW), *(Node(label, len(nodes), nodes) for label, nodes in groups if nodes), amounts),
    )


KIND = Kind("price", "the first digits of the id of a row of prices", find, node)
