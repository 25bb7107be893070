"""A file or a sealed segment: what came of its rows, and the findings it is evidence of."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.reconcile.tree.node import Node, leaves

_SEGMENT = (
    *("segment", "importer", "writer", "end", "bytes", "schema_version"),
    *("rows_in", "rows_out", "rows_quarantined", "rows_duplicate"),
)


def find(asked: Asked) -> Iterator[str]:
    """Files whose digest begins so."""
    if asked.digits:
        ids = asked.lake.scan("segment", columns=["segment"]).filter(pl.col("segment").str.starts_with(asked.digits))
        yield from ids.collect()["segment"]


def node(asked: Asked, segment: str) -> Node:
    """The tree behind a file."""
    lake = asked.lake
    row = lake.scan("segment").filter(pl.col("segment") == segment).collect().row(0, named=True)
    counts = []
    for table in ("attempt", "usage_report", "quarantine", "gap"):
        own = lake.scan(table, columns=["segment"]).filter(pl.col("segment") == segment)
        counts.append(Node(f"rows of {table}", own.select(pl.len()).collect(engine="streaming").item()))
    named = (
        Node("finding", found["finding_id"], (Node("code", found["code"]), Node("subject", found["subject"])))
        for found in lake.scan("finding").collect().sort("code", "finding_id").iter_rows(named=True)
        if segment in (found["segments"] or ())
    )
    return Node("file", row["name"], (*leaves(row, _SEGMENT), *counts, *named))


KIND = Kind("segment", "the first digits of the digest of a file", find, node)
