"""Write a dispute pack: a folder, or a zip file of it. The same finding in the same lake gives the same bytes."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close import pins
from weighbridge.pipeline.close.closed import closes
from weighbridge.pipeline.close.draft import arrow, write_file, write_rows
from weighbridge.pipeline.close.pack import Pack, is_pack
from weighbridge.pipeline.close.plain import document, sha256, text_of
from weighbridge.pipeline.dispute.gather import Rows, gathered
from weighbridge.pipeline.dispute.layout import DISPUTE, FORMAT, MANIFEST, README, README_TEXT, VERSION, rows_file
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.schemas.errors import ConfigError

_MOMENT = (2000, 1, 1, 0, 0, 0)  # of every file in a zip: when it was written is nobody's evidence
_SEGMENT = ("segment", "importer", "bytes", "rows_in")


@dataclass(frozen=True, slots=True)
class Written:
    """A dispute pack.

    Attributes:
        path: the folder or zip file.
        digest: SHA-256 of `dispute.json`, which holds the digests of all other files.
        root: of the closed month its rows are proved by; null where it is open.
        rows: how many rows it holds.
        proved: of them: led to that root.
    """

    path: Path
    digest: str
    root: str | None
    rows: int
    proved: int


def write_dispute(
    records: Records,
    packs: Path,
    book: PriceBook,
    finding_id: str,
    out: Path,
    *,
    zipped: bool = False,
    foreign: bool = False,
) -> Written:
    """Write the pack of one finding.

    Args:
        records: the lake.
        packs: folder of the close packs.
        book: the prices, for amounts of a month that is open.
        finding_id: the whole id.
        out: the folder to make, or the zip file; it must not be there.
        zipped: whether a zip file is wanted.
        foreign: also the identifiers that other systems gave to the attempts, so that a provider can look them up.

    Raises:
        ConfigError: there is no such finding, or `out` is there already.
        DamagedError: the pack of the closed month cannot be read; verify it.
    """
    found = records.scan("finding").filter(pl.col("finding_id") == finding_id).collect().to_dicts()
    if not found:
        raise ConfigError(f"finding {finding_id[:8]} is not in the lake any more; a pack needs its rows")
    if out.exists():
        raise ConfigError(f"{out} is there already; name another folder or file for the pack")
    finding = found[0]
    close = closes(records).get(finding["period"])
    pack = Pack(packs / finding["period"])
    closed = pack if close is not None and is_pack(pack.folder) else None
    tables = list(gathered(records, closed, finding["evidence"] or (), foreign=foreign))
    files: dict[str, bytes] = {README: README_TEXT.encode()}
    if closed is not None:
        files[MANIFEST] = closed.read(MANIFEST)
    folder = out.with_name(f".{out.name}.draft")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        digests = {name: write_file(folder / name, raw)[1] for name, raw in files.items()}
        for each in tables:
            name = rows_file(each.table.name)
            digests[name] = write_rows(folder / name, arrow(each.table, each.rows))[1]
        content = _content(records, closed, book, finding, tables, digests)
        raw = document(content)
        write_file(folder / DISPUTE, raw)
        if zipped:
            _zip(folder, out)
        else:
            folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    proved = sum(each.rows.height for each in tables if each.proofs is not None)
    root = None if closed is None else closed.manifest.root()
    return Written(out, sha256(raw), root, sum(each.rows.height for each in tables), proved)


def _content(
    records: Records,
    closed: Pack | None,
    book: PriceBook,
    finding: Mapping[str, Any],
    tables: Collection[Rows],
    digests: Mapping[str, str],
) -> dict[str, object]:
    lives = (
        records.scan("finding_status").filter(pl.col("finding_id") == finding["finding_id"]).sort("change").collect()
    )
    named = [row for each in tables if "segment" in each.table.names for row in each.rows["segment"].drop_nulls()]
    segments = sorted({*(finding["segments"] or ()), *named})
    files = records.scan("segment").filter(pl.col("segment").is_in(segments)).sort("segment").collect()
    used = [row for each in tables if each.table.name == "price" for row in each.rows["price_id"].unique()]
    pinned = pins.prices(book, used) if closed is None else _cut(closed.pinned("prices"), used)
    return {
        "format": FORMAT,
        "version": VERSION,
        "finding": {name: _plain(value) for name, value in finding.items()},
        # Whose words a reason is in is nobody else's business.
        "life": [
            {n: _plain(v) for n, v in row.items() if n not in {"reason", "changed_by"}} for row in lives.to_dicts()
        ],
        "root": None if closed is None else closed.manifest.root(),
        "tables": {
            each.table.name: {"columns": list(each.table.names), "rows": each.rows.height, "proofs": _listed(each)}
            for each in tables
        },
        "prices": pinned,
        "segments": [{name: row[name] for name in _SEGMENT} for row in files.to_dicts()],
        "files": dict(sorted(digests.items())),
    }


def _listed(each: Rows) -> list[dict[str, Any]] | None:
    return None if each.proofs is None else [dict(proof) for proof in each.proofs]


def _cut(pinned: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    layers = [[each for each in layer if each in used] for layer in pinned["layers"]]
    held = {each for layer in layers for each in layer}
    return {"layers": [layer for layer in layers if layer], "others": sorted(set(used) - held)}


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return text_of(value)
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _zip(folder: Path, out: Path) -> None:
    try:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(each for each in folder.rglob("*") if each.is_file()):
                about = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _MOMENT)
                about.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(about, path.read_bytes())
    except OSError:
        out.unlink(missing_ok=True)
        raise
