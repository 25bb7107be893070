"""The rows about some attempts, each table read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.schemas.identity import AttemptKey

Row = dict[str, Any]
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Held:
    """The rows about some attempts, each table read once, and the names of all files."""

    lake: Lake
    keys: Sequence[AttemptKey]
    _tables: dict[str, dict[AttemptKey, list[Row]]] = field(default_factory=dict)

    def rows(self, table: str, key: AttemptKey, *order: str) -> list[Row]:
        """The rows of a table about one attempt."""
        if table not in self._tables:
            wanted = pl.DataFrame(self.keys, schema=["attempt_hi", "attempt_lo"], orient="row").lazy()
            found = self.lake.scan(table).join(wanted, on=list(KEY), how="semi").collect(engine="streaming")
            by_key: dict[AttemptKey, list[Row]] = {}
            for row in found.sort(order).iter_rows(named=True):
                by_key.setdefault(AttemptKey(row["attempt_hi"], row["attempt_lo"]), []).append(row)
            self._tables[table] = by_key
        return self._tables[table].get(key, [])

    @cached_property
    def names(self) -> dict[str, str]:
        """Digest -> name of every file."""
        return dict(self.lake.scan("segment", columns=["segment", "name"]).collect().iter_rows())

    def file(self, segment: str | None, row: int | None = None) -> Node:
        """The file a row came from, by its name, with its row: stored from 0, told from 1."""
        if segment is None:
            return Node("file", UNKNOWN)
        place = () if row is None else (Node("row", row + 1),)
        return Node("file", self.names.get(segment, UNKNOWN), (Node("digest", segment), *place))

    @cached_property
    def prices(self) -> dict[str, list[Row]]:
        """Id -> the cells of every row of prices, by class and modality."""
        rows = self.lake.scan("price").sort("price_id", "token_class", "modality").collect()
        found: dict[str, list[Row]] = {}
        for row in rows.iter_rows(named=True):
            found.setdefault(row["price_id"], []).append(row)
        return found
