"""Sealed segments: what the capture agent, or the simulation, wrote in the vocabulary's own tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weighbridge.pipeline.ingest.fits import misfits
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.token_runs import TABLE as TOKEN_RUN
from weighbridge.pipeline.ingest.token_runs import with_ciphertext
from weighbridge.pipeline.lake import may_become, polars_schema
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import NAME, shown
from weighbridge.schemas.segment import MANIFEST, SUFFIX, read_manifest, verify_segment
from weighbridge.schemas.tables import TABLES

# What other programs may tell us. Readings, prices and findings are our own conclusions and are not taken from outside.
TOLD = (
    "request_scope",
    "attempt",
    "child",
    "usage_report",
    "foreign_id",
    "alias",
    "token_run",
    "state_event",
    "strategy",
    "gap",
    "quarantine",
    "invoice_line",
    "usage_period",
    "engine_counter",
)


def _recognises(path: Path) -> bool:
    return path.suffix == SUFFIX or (path / MANIFEST).is_file()


def _check(source: Source) -> Heading:
    manifest, digest = verify_segment(source.path)
    others = sorted(set(manifest.files) - set(TOLD))
    if others:
        raise ContractError(
            f"{source.path}: its manifest may name the tables {', '.join(TOLD)}; beyond them it has {others}, which "
            "are conclusions of the batch. Write the segment again without them; nothing was read."
        )
    for table in manifest.files:
        _check_columns(source.path, table)
    return Heading(
        digest=digest,
        bytes=sum(size for _, size, _ in manifest.files.values()) + (source.path / MANIFEST).stat().st_size,
        writer=manifest.writer,
        sequence=(manifest.sequence_first, manifest.sequence_last),
        end=manifest.end,
        schema_version=manifest.schema_version,
    )


def _check_columns(segment: Path, table: str) -> None:
    path = _file(segment, table)
    found = pl.read_parquet_schema(path)
    wanted = polars_schema(table)
    unknown = [name for name in found if name not in wanted]
    missing = [c.name for c in TABLES[table].columns if not c.nullable and c.name not in found]
    misfit = [f"{n} ({found[n].base_type()})" for n in found if n in wanted and not may_become(found[n], wanted[n])]
    if unknown or missing or misfit:
        raise ContractError(
            f"{path}: unknown columns {shown(unknown)}; required columns that are missing {missing}; columns "
            f"of another type {misfit}. Write the segment again with the columns of the vocabulary; nothing was read."
        )


def _file(segment: Path, table: str) -> Path:
    return segment / f"{table}.parquet"


def _read(source: Source, heading: Heading) -> Staged:
    manifest, _ = read_manifest(source.path)
    tables: dict[str, pl.DataFrame] = {}
    refused: list[pl.DataFrame] = []
    refused_records = 0
    for name in sorted(manifest.files):
        rows = _rows(source.path, name)
        if rows.is_empty():
            continue
        bad = misfits(name, rows)
        if bad.height:
            refused.append(_refused(rows, bad, source, heading))
            refused_records += bad["row"].n_unique()
            kept = rows.filter(~pl.int_range(pl.len(), dtype=pl.Int64).is_in(bad["row"].unique().implode()))
            rows = with_ciphertext(kept, rows) if name == TOKEN_RUN else kept
        tables[name] = rows
    return Staged(
        records=sum(rows for rows, _, _ in manifest.files.values()),
        tables=tables,
        by_line=False,
        refused=pl.concat(refused) if refused else None,
        refused_records=refused_records,
    )


def _rows(segment: Path, table: str) -> pl.DataFrame:
    """The rows of one table with their place; columns that are null throughout are left out, a segment has many."""
    rows = pl.read_parquet(_file(segment, table), hive_partitioning=False)
    held = [values.name for values in rows if values.null_count() < rows.height]
    return rows.select(held).with_columns(segment_row=pl.int_range(rows.height, dtype=pl.Int64, eager=True))


def _refused(rows: pl.DataFrame, bad: pl.DataFrame, source: Source, heading: Heading) -> pl.DataFrame:
    """One row of `quarantine` per value that its column does not allow."""
    of = rows.with_columns(
        pl.lit(value, dtype=kind).alias(name)
        for name, value, kind in (("day", source.day, pl.Date), ("source", None, pl.String))
        if name not in rows.columns
    )[bad["row"]]
    named = pl.col("source").str.contains(f"^(?:{NAME.pattern})$")
    return bad.select(pl.col("row").alias("line"), "reason", "path").with_columns(
        of.select("day", source=pl.when(named).then("source").otherwise(pl.lit(heading.writer)))
    )


IMPORTER = Importer(
    name="segment",
    doc="Sealed segments of the capture agent, or of `weighbridge simulate`: folders named *.segment.",
    recognises=_recognises,
    check=_check,
    read=_read,
    recorded=True,
)
