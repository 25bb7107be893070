"""Lines that a later export of the same invoice no longer has, where its files are said to hold their invoices whole.

An export that is a snapshot replaces the one before it, so a line that vanished is charged no longer. It is never taken
away: its next revision carries the note `line_withdrawn`, is in no sum, and is a finding. A line that comes back gets a
revision without the note. Without that statement of the user's nothing is withdrawn, as files may hold parts of a bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest.door import admit, files_of
from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.lake import Lake

WITHDRAWN = "line_withdrawn"
_NOT_WHOLE = "pages_missing"
_INVOICE = ("provider", "invoice_id")
_LINE = (*_INVOICE, "line_id")


class Withdrawn(NamedTuple):
    """How many lines vanished, and came back; `whole` where the files could be read to the last line."""

    gone: int
    back: int
    whole: bool


def withdraw(
    lake: Lake,
    paths: Sequence[Path],
    *,
    key: bytes,
    day: date,
    provider: str | None = None,
    mapping: Path | None = None,
    account: str | None = None,
) -> Withdrawn:
    """Withdraw the lines of the invoices of these files that are in none of them; the files were ingested before.

    A second run changes nothing. Where a record of the files was refused, or a page is missing, nothing is withdrawn:
    the line that seems to be gone may be that one. Lines that another importer read are left as they are.

    Raises:
        ContractError: a file cannot be read at all.
        ConfigError: a mapping or name that cannot be used.
        LakeBusyError: another process is writing.
    """
    sources = [Source(path, key, day, provider=provider, mapping=mapping, account=account) for path in files_of(paths)]
    admitted = admit(sources, None)
    staged = [file.importer.read(file.source, file.heading) for file in admitted]
    tables = [each.tables["invoice_line"].select(*_LINE, "notes") for each in staged if "invoice_line" in each.tables]
    if not tables:
        return Withdrawn(0, 0, whole=True)
    told = pl.concat(tables)
    cut = told.select(pl.col("notes").list.contains(_NOT_WHOLE).fill_null(value=False).any()).item()
    if cut or any(each.refused_records for each in staged):
        return Withdrawn(0, 0, whole=False)
    names = sorted({file.importer.name for file in admitted})
    with lake.lock():
        rows = lake.scan("invoice_line").collect()
        last = rows.sort("revision").unique(list(_LINE), keep="last", maintain_order=True)
        own = last.join(told.select(_INVOICE).unique(), on=list(_INVOICE), how="semi")
        segments = lake.scan("segment", columns=["segment", "importer"]).collect()
        read = segments.filter(pl.col("importer").is_in(names))["segment"]
        out = pl.col("notes").list.contains(WITHDRAWN).fill_null(value=False)
        keys = told.select(_LINE).unique()
        gone = own.filter(~out, pl.col("segment").is_in(read.implode())).join(keys, on=list(_LINE), how="anti")
        back = own.filter(out).join(keys, on=list(_LINE), how="semi")
        noted = pl.concat_list(pl.col("notes").fill_null([]), pl.lit(WITHDRAWN))
        left = pl.col("notes").list.filter(pl.element() != WITHDRAWN)
        fresh = pl.concat([gone.with_columns(notes=noted), back.with_columns(notes=left)])
        lake.append("invoice_line", fresh.with_columns(pl.col("revision") + 1))
    return Withdrawn(gone.height, back.height, whole=True)
