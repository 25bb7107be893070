"""Erase rows from close packs: the rows and their salts go, their leaves stay, the root still commits to the totals.

    new files of the parts are written        nothing has changed yet
    erasures/<n>.json is renamed into place   from here on the rows are erased, with receipts
    the old files are removed                 a process that was killed before this leaves `verify` to say so
    the receipts are put into the lake        likewise

Run again, it finishes what was cut short and erases nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.draft import arrow, sync, write_file, write_rows
from weighbridge.pipeline.close.erasure_record import Erasure
from weighbridge.pipeline.close.layout import ERASURES, PartName, erasure_file
from weighbridge.pipeline.close.pack import Pack, is_pack
from weighbridge.pipeline.close.plain import sha256
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.receipt import receipt_id, receipt_text
from weighbridge.schemas.table import Table

KEY = ("attempt_hi", "attempt_lo")
# What names somebody and is no count that a bill rests on.
NAMES = ("alias", "foreign_id", "finding")
Which = Callable[[Table], pl.Expr | None]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was erased from one pack.

    Attributes:
        period: its month.
        rows: table -> rows.
        receipts: ids of the receipts.
    """

    period: str
    rows: Mapping[str, int]
    receipts: tuple[str, ...]


def forget(
    packs: Path,
    lake: Lake,
    *,
    attempts: pl.DataFrame,
    tenant: str | None = None,
    counts: bool = False,
    through: str | None = None,
    rule: str,
    by: str,
    now: datetime,
) -> list[Forgotten]:
    """Erase attempts, and a tenant, from every close pack.

    Args:
        packs: folder of the close packs.
        lake: where the receipts go.
        attempts: columns attempt_hi, attempt_lo.
        tenant: a pseudonym; where given, rows that name it and its name in the figures are meant too.
        counts: whether the counts a bill rests on are erased as well, and with them the name of the tenant; if not,
            only identifiers of other systems, and findings that list the attempts as evidence.
        through: only packs of months up to this one, `YYYY-MM`; null: all.
        rule: the rule or request behind it, for the receipts.
        by, now: who and when, for the receipts.

    Returns:
        One entry per pack of which rows were erased; and receipts that an earlier run did not get into the lake are
        put there.

    Raises:
        DamagedError: a pack cannot be read; verify it, and restore it.
        LakeError: something cannot be written; running it again finishes it.
    """
    evidence = [AttemptKey(*key).to_hex() for key in attempts.select(KEY).unique().iter_rows()]
    which = _which(attempts, evidence, tenant, None if counts else NAMES)
    done = []
    with lake.lock():
        for folder in sorted(packs.iterdir()) if packs.is_dir() else ():
            if is_pack(folder) and not folder.name.startswith(".") and (through is None or folder.name[:7] <= through):
                with told("erasing from the close pack", str(folder)):
                    if found := _forget(Pack(folder), which, rule=rule, by=by, now=now):
                        done.append(found)
                    _finish(Pack(folder), lake)
    return done


def _which(attempts: pl.DataFrame, evidence: Sequence[str], tenant: str | None, tables: Sequence[str] | None) -> Which:
    """Which rows of a table go; null where none can."""
    keys = attempts.select(pl.struct(KEY).alias("_key"))["_key"].unique()

    def which(table: Table) -> pl.Expr | None:
        if tables is not None and table.name not in tables:
            return None
        hits = []
        if set(KEY) <= set(table.names) and len(keys):
            hits.append(pl.struct(KEY).is_in(keys.implode()))
        if "evidence" in table.names and evidence:
            hits.append(pl.col("evidence").list.set_intersection(list(evidence)).list.len() > 0)
        if "tenant" in table.names and tenant is not None:
            hits.append(pl.col("tenant") == tenant)
        return pl.any_horizontal(hits).fill_null(value=False) if hits else None

    return which


def _forget(pack: Pack, which: Which, *, rule: str, by: str, now: datetime) -> Forgotten | None:
    number = len(pack.erasures) + 1
    rows: dict[tuple[str, str], list[int]] = {}
    files: dict[str, tuple[int, str]] = {}
    days: dict[str, tuple[date | None, date | None]] = {}
    gone: dict[str, list[bytes]] = {}
    for place, entry in pack.manifest.parts.items():
        table = pack.manifest.tables[entry.name.table].declared()
        condition = which(table)
        if condition is None:
            continue
        name = pack.present[place]
        frame = pl.read_parquet(pack.folder / name.rows)
        hit = frame.select(condition.alias("hit"))["hit"]
        if not hit.any():
            continue
        held = _places(pack, place, entry.rows)
        rows[place] = [held[number] for number in hit.arg_true().to_list()]
        kept = [held[number] for number in (~hit).arg_true().to_list()]
        files.update(_rewrite(pack, PartName(*place, number), table, frame.filter(~hit), kept, entry.rows))
        hashes = merkle.split(pack.read(name.leaves))
        gone.setdefault(table.name, []).extend(hashes[each] for each in rows[place])
        days[table.name] = _span(days.get(table.name), frame.filter(hit), table)
    if not rows:
        return None
    before = pack.erasures[-1].digest if pack.erasures else pack.manifest.root()
    record = Erasure(number, pack.manifest.period, before, rows, files)
    receipts = [
        _receipt(record, table, hashes, days[table], rule=rule, by=by, now=now)
        for table, hashes in sorted(gone.items())
    ]
    _enter(pack, Erasure(number, record.period, before, rows, files, receipts))
    counted = {table: len(hashes) for table, hashes in sorted(gone.items())}
    return Forgotten(record.period, counted, tuple(str(receipt["receipt_id"]) for receipt in receipts))


def _places(pack: Pack, place: tuple[str, str], rows: int) -> list[int]:
    """The place each row of a part had when it was closed."""
    gone = set(pack.erased.get(place, ()))
    return [number for number in range(rows) if number not in gone]


def _rewrite(
    pack: Pack, name: PartName, table: Table, kept: pl.DataFrame, places: Sequence[int], rows: int
) -> Iterator[tuple[str, tuple[int, str]]]:
    """Write the rows that stay, and the salts of each of them; the salts of the others are nothing."""
    salts = pack.salts((name.table, name.part))
    staying = set(places)
    blank = bytes(merkle.SALT_BYTES)
    raw = b"".join(salts[place] if place in staying else blank for place in range(rows))
    yield name.rows, write_rows(pack.folder / name.rows, arrow(table, kept))
    yield name.salts, write_file(pack.folder / name.salts, raw)


def _span(
    known: tuple[date | None, date | None] | None, gone: pl.DataFrame, table: Table
) -> tuple[date | None, date | None]:
    if not table.daily:
        return None, None
    ends = [*(known or ()), *gone.select(pl.col("day").min().alias("first"), pl.col("day").max().alias("last")).row(0)]
    return min(ends), max(ends)


def _receipt(
    record: Erasure,
    table: str,
    hashes: Sequence[bytes],
    days: tuple[date | None, date | None],
    *,
    rule: str,
    by: str,
    now: datetime,
) -> dict[str, Any]:
    """A receipt; its scope names the pack and the record, its digest the leaves of the rows that went."""
    row: dict[str, Any] = {
        "rule": rule,
        "scope": f"close={record.period}; erasure={record.number}; record={record.digest}",
        "table_name": table,
        "first_day": days[0],
        "last_day": days[1],
        "rows": len(hashes),
        "digest_before": sha256(b"".join(hashes)),
        "method": str(ReceiptMethod.DELETED),
        "key_ids": [],
        "table_version": None,
        "erased_at": now.astimezone(UTC),
        "erased_by": by,
    }
    return receipt_text({"receipt_id": receipt_id(row), **row})


def _enter(pack: Pack, record: Erasure) -> None:
    """Rename the record into place: from here on the rows are erased."""
    path = pack.folder / erasure_file(record.number)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    write_file(draft, record.to_json())
    draft.rename(path)
    sync(path.parent)
    sync(pack.folder)


def _finish(pack: Pack, lake: Lake) -> None:
    """Remove files that hold what was erased or never became part of the pack; put receipts into the lake."""
    expected = {*pack.files, *(erasure_file(record.number) for record in pack.erasures)}
    for folder in ("rows", "proof", ERASURES):
        for path in sorted((pack.folder / folder).rglob("*")):
            if path.is_file() and path.relative_to(pack.folder).as_posix() not in expected:
                path.unlink()
    known = set(lake.scan("receipt", columns=["receipt_id"]).collect()["receipt_id"])
    missing = [
        _lake_row(receipt)
        for record in pack.erasures
        for receipt in record.receipts
        if receipt["receipt_id"] not in known
    ]
    if missing:
        lake.append("receipt", pl.DataFrame(missing, schema=polars_schema("receipt")))


def _lake_row(receipt: Mapping[str, Any]) -> dict[str, Any]:
    days = {name: None if receipt[name] is None else date.fromisoformat(receipt[name]) for name in _DAYS}
    return {**receipt, **days, "erased_at": datetime.fromisoformat(receipt["erased_at"])}


_DAYS = ("first_day", "last_day")
