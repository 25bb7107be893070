"""What a team bears of a month: the amount, what was divided, what the others bear, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.explain.called import called, same
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.invoice_cell import cell_node
from weighbridge.pipeline.explain.source import SHOWN, group
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.enumerations import ChargedBy, PriceBasis
from weighbridge.schemas.tables import ALLOCATED

_WORD = "allocated"
_SHOWN = tuple(column.name for column in ALLOCATED.columns)
_MONEY = pl.Decimal(38, 18)


def find(asked: Asked) -> Iterator[str]:
    """The part that is called so."""
    if asked.name.startswith(f"{_WORD}/"):
        yield from _named(asked.lake).filter(pl.col("called") == asked.name)["called"].unique().sort()


def node(asked: Asked, held: str) -> Node:
    """The tree behind a part of what was divided."""
    rows = _named(asked.lake)
    row = rows.filter(pl.col("called") == held).row(0, named=True)
    whole = rows.filter(*same(row, "period", "basis", "pool", "provider", "currency"))
    parts = tuple(
        Node(each["called"], each["amount"], leaves(each, ("tokens", "rows")))
        for each in whole.sort("called").iter_rows(named=True)
    )
    known = whole["amount"].null_count() == 0
    tokens = whole["tokens"].cast(pl.Int128).sum() if whole["tokens"].null_count() == 0 else None
    divided = Node("all that was divided", whole["amount"].cast(_MONEY).sum() if known else None, parts)
    told = (Node("tokens divided", tokens),) if tokens is not None else ()
    return Node("allocated", row["amount"], (*leaves(row, _SHOWN), divided, *told, *_cells(asked, row)))


def _named(lake: Lake) -> pl.DataFrame:
    columns = ("period", "basis", "pool", "team", "allocated_as", "provider", "currency")
    return lake.scan("allocated").with_columns(called(_WORD, *columns)).collect()


def _cells(asked: Asked, row: dict[str, object]) -> tuple[Node, ...]:
    """The cells of the provider's bills of the month, the largest first, where bills were divided."""
    if row["provider"] is None or row["basis"] != PriceBasis.INVOICED:
        return ()
    own = asked.lake.scan("invoice_gap").filter(
        *same(row, "period", "provider"), pl.col("against") == str(ChargedBy.INVOICE)
    )
    rows = own.collect().sort(pl.col("charged").abs(), "cell", descending=[True, False], nulls_last=True)
    told = tuple(cell_node(asked, each) for each in rows.head(SHOWN).iter_rows(named=True))
    return group("cells of its bills", told, rows.height)


KIND = Kind("allocated", "allocated/MONTH/BASIS/POOL/TEAM/AS/PROVIDER/CURRENCY, `-` for what is not known", find, node)
