"""A line of an invoice: what it charges, in which revision, and the row of the file it came from."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.explain.held import Held
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.tables import INVOICE_LINE

_BARE = frozenset({"segment", "segment_row", "line_id", "flags"})
_SHOWN = tuple(column.name for column in INVOICE_LINE.columns if column.name not in _BARE and not column.personal)


def find(asked: Asked) -> Iterator[str]:
    """Lines that are called so: by the line alone, or as `<invoice>/<line>`. Each by provider, invoice and line."""
    if NAME.fullmatch(asked.name):
        whole = pl.col("line_id").eq(asked.name) | pl.format("{}/{}", "invoice_id", "line_id").eq(asked.name)
        rows = asked.lake.scan("invoice_line", columns=["provider", "invoice_id", "line_id"]).filter(whole)
        for row in rows.unique().sort(pl.all()).collect().iter_rows():
            yield " ".join(row)


def node(asked: Asked, held: str) -> Node:
    """The tree behind a line: its revisions, the last one first."""
    provider, invoice_id, line_id = held.split(" ")
    own = (pl.col("provider") == provider) & (pl.col("invoice_id") == invoice_id) & (pl.col("line_id") == line_id)
    rows = asked.lake.scan("invoice_line").filter(own).sort("revision", descending=True).collect().to_dicts()
    files = Held(asked.lake, [])
    told = tuple(
        Node("revision", row["revision"], (*leaves(row, _SHOWN), files.file(row["segment"], row["segment_row"])))
        for row in rows
    )
    return Node("invoice line", line_id, told)


KIND = Kind("invoice line", "the id of a line, or the invoice's and the line's as INVOICE/LINE", find, node)
