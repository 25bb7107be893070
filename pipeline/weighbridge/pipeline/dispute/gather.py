"""The rows behind a finding: those of its attempts, from the pack of a closed month with proofs, else the lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.dispute.layout import COMPARISON, FOREIGN, OF_ATTEMPTS, PRICES, WITHHELD
from weighbridge.pipeline.dispute.path import path
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.table import Table
from weighbridge.schemas.tables import TABLES

Proof = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table.

    Attributes:
        table: with the columns that are there.
        rows: the rows.
        proofs: of each row its part, place in it, salt, and path; null where the table is not proved.
    """

    table: Table
    rows: pl.DataFrame
    proofs: Sequence[Proof] | None = None


def gathered(records: Records, pack: Pack | None, evidence: Sequence[str], *, foreign: bool) -> Iterator[Rows]:
    """The rows of the attempts behind a finding, table by table; tables without any are left out.

    Args:
        records: the lake.
        pack: the close of the month, where it is closed and its pack is there.
        evidence: ids of the attempts.
        foreign: also the identifiers that other systems gave them.
    """
    keys = pl.DataFrame([AttemptKey.from_hex(each) for each in evidence], schema=list(KEY_SCHEMA), orient="row")
    used: list[str] = []
    for name in OF_ATTEMPTS:
        found = _of_attempts(records, pack, name, keys)
        if name == "priced_amount":
            used = found.rows["price_id"].drop_nulls().unique().to_list()
        if found.rows.height:
            yield found
    for name in PRICES:
        own = pl.col("price_id").is_in(used)
        if pack is not None and name in pack.manifest.tables:
            found = _closed(pack, name, own)
        else:
            found = Rows(TABLES[name], records.scan(name).filter(own).sort(TABLES[name].key).collect())
        if found.rows.height:
            yield found
    for name, left_out in ((COMPARISON, WITHHELD), *(((FOREIGN, frozenset()),) if foreign else ())):
        table = _without(TABLES[name], left_out)
        rows = records.scan(name).join(keys.lazy(), on=list(KEY), how="semi").sort(table.key).collect()
        if rows.height:
            yield Rows(table, rows.select(table.names))


KEY_SCHEMA = tuple((name, pl.Int64()) for name in ("attempt_hi", "attempt_lo"))


def _of_attempts(records: Records, pack: Pack | None, name: str, keys: pl.DataFrame) -> Rows:
    if pack is not None and name in pack.manifest.tables:
        own = pl.struct(KEY).is_in(keys.select(pl.struct(KEY)).to_series().implode())
        return _closed(pack, name, own)
    rows = records.scan(name).join(keys.lazy(), on=list(KEY), how="semi").sort(TABLES[name].key)
    return Rows(TABLES[name], rows.collect(engine="streaming"))


def _closed(pack: Pack, name: str, own: pl.Expr) -> Rows:
    """Rows of a close pack, each with what leads it to the root of its part."""
    entry = pack.manifest.tables[name]
    table = entry.declared()
    parts: list[pl.DataFrame] = []
    proofs: list[Proof] = []
    for part in entry.parts:
        place = (name, part.name.part)
        rows = pl.read_parquet(pack.folder / pack.present[place].rows).with_row_index("_at").filter(own)
        if rows.is_empty():
            continue
        gone = set(pack.erased.get(place, ()))
        kept = [at for at in range(part.rows) if at not in gone]
        leaves = merkle.split(pack.read(part.name.leaves))
        salts = pack.salts(place)
        for at in rows["_at"].to_list():
            number = kept[at]
            partners = [each.hex() for each in path(leaves, number)]
            proofs.append({"part": part.name.part, "place": number, "salt": salts[number].hex(), "path": partners})
        parts.append(rows.select(table.names))
    empty = pl.from_arrow(table.schema().empty_table())
    assert isinstance(empty, pl.DataFrame)
    return Rows(table, pl.concat(parts) if parts else empty, proofs)


def _without(table: Table, left_out: frozenset[str]) -> Table:
    columns = tuple(column for column in table.columns if column.name not in left_out)
    return Table(table.name, table.domain, table.doc, columns, table.key, table.daily, table.since)
