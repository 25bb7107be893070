"""Rows of a mapped table as attempts, usage reports and identifiers; a row with a value that cannot be read is refused.

All of it is done in columns, for a million rows as for one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from weighbridge.pipeline.ingest import figures
from weighbridge.pipeline.ingest.figures import Figures
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.leaf_columns import composed
from weighbridge.pipeline.ingest.leaf_paths import is_count
from weighbridge.pipeline.ingest.mapped_keys import keyed
from weighbridge.pipeline.ingest.mapping import FIGURES, TableMapping
from weighbridge.pipeline.ingest.moments import moments
from weighbridge.pipeline.ingest.pseudonyms import tenants
from weighbridge.pipeline.ingest.tabular import Rows, read
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason, ReportPart
from weighbridge.schemas.identity import IDENTIFIER, NAME, ROUTE, key_id
from weighbridge.schemas.leaves import ENUMERATED, MEASURE_KEYS
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import UNASSIGNED

INTEGRAL, NAME_DROPPED, ID_DROPPED, STRING_DROPPED = (
    "integral_float",
    "name_dropped",
    "identifier_dropped",
    "strings_dropped",
)
_INT32 = (-(2**31), 2**31 - 1)
_ENDED = {
    AttemptStatus.SUCCEEDED: Ended.COMPLETE,
    AttemptStatus.FAILED: Ended.ERROR,
    AttemptStatus.ABORTED: Ended.CUT,
    AttemptStatus.REJECTED: Ended.ERROR,
    AttemptStatus.UNKNOWN: Ended.UNKNOWN,
}


@dataclass(slots=True)
class Reader:
    """A table while it is read.

    Attributes:
        rows: its columns.
        refusals: (path, reason per row, null where there is none): each refuses its row.
        notes: (note, rows it is about).
    """

    rows: Rows
    refusals: list[tuple[str, pl.Series]] = field(default_factory=list)
    notes: list[tuple[str, pl.Series]] = field(default_factory=list)

    @property
    def height(self) -> int:
        """How many rows were taken apart."""
        return self.rows.lines.len()

    def column(self, theirs: str) -> pl.Series:
        """Their column."""
        return self.rows.columns[theirs]

    def take(self, path: str, found: Figures) -> pl.Series:
        """The values of a column; a value that cannot be read refuses its row."""
        if found.reasons.null_count() < self.height:
            self.refusals.append((path, found.reasons))
        self.note(INTEGRAL, found.integral)
        return found.values

    def name(self, theirs: str, pattern: re.Pattern[str] = NAME, note: str = NAME_DROPPED) -> pl.Series:
        """A column of names; what is no name is left out, and noted."""
        values, left_out = figures.names(self.column(theirs), pattern)
        self.note(note, left_out)
        return values

    def note(self, note: str, where: pl.Series) -> None:
        """Remember that something was noticed."""
        if where.any():
            self.notes.append((note, where))

    def constant(self, value: object, kind: pl.DataType | type[pl.DataType]) -> pl.Series:
        """A column of one value."""
        return pl.Series([value], dtype=kind).new_from_index(0, self.height)


def staged(source: Source, mapping: TableMapping) -> Staged:
    """Read a mapped table.

    Raises:
        ContractError: the file cannot be taken apart.
    """
    reader = Reader(read(source.path, mapping.layout, mapping.wanted))
    ids = {
        kind: reader.name(mapping.columns[kind], IDENTIFIER, ID_DROPPED)
        for kind in map(str, ForeignIdKind)
        if kind in mapping.columns
    }
    leaves = _with_constants(
        pl.DataFrame([_leaf(reader, path, theirs) for path, theirs in mapping.leaves.items()]), mapping.constants
    )
    attempts = _attempts(reader, mapping, source, leaves)
    recorded = reader.column(mapping.columns["attempt_id"]) if "attempt_id" in mapping.columns else None
    keys = keyed(source.key, mapping.name, reader.rows.columns, ids, recorded)
    reader.take("attempt.attempt_lo", keys.refused)
    rows = attempts.with_columns(keys.columns)
    refused = _refused(reader, rows, leaves)
    good = ~reader.rows.lines.is_in(refused["line"].unique().implode())
    kept = rows.filter(good)
    tables = {
        "attempt": kept.drop("derived", "alias_hi", "alias_lo", "model"),
        "usage_report": _reports(kept, leaves.filter(good) if leaves.width else leaves, _notes(reader).filter(good)),
        "foreign_id": _foreign(kept, {kind: values.filter(good) for kind, values in ids.items()}),
    }
    torn = _torn(reader.rows, mapping, source)
    return Staged(
        records=reader.height + torn.height,
        tables={name: table for name, table in tables.items() if table.height},
        by_line=True,
        refused=pl.concat([refused, torn], how="diagonal"),
        refused_records=refused["line"].n_unique() + torn.height,
        derived=kept.filter("derived").select("attempt_hi", "attempt_lo", "source", "alias_hi", "alias_lo"),
    )


def _leaf(reader: Reader, path: str, theirs: str) -> pl.Series:
    column = reader.column(theirs)
    name = path.rsplit(".", 1)[-1]
    if is_count(path):
        return reader.take(path, figures.integers(column)).alias(path)
    if name in MEASURE_KEYS:
        values = figures.decimals(column).values
    else:
        texts = column.cast(pl.String, strict=False)
        values = texts.set(~texts.is_in(sorted(ENUMERATED.get(name, ()))), None)
    reader.note(STRING_DROPPED, column.is_not_null() & values.is_null())
    return values.alias(path)


def _with_constants(leaves: pl.DataFrame, constants: Mapping[str, int]) -> pl.DataFrame:
    """The leaves in the order of their paths, with counts that hold for every row which tells any usage."""
    if constants:
        told = pl.any_horizontal(pl.all().is_not_null())
        leaves = leaves.with_columns(
            pl.when(told).then(pl.lit(value, dtype=pl.Int64)).alias(path) for path, value in constants.items()
        )
    return leaves.select(sorted(leaves.columns))


def _attempts(reader: Reader, mapping: TableMapping, source: Source, leaves: pl.DataFrame) -> pl.DataFrame:
    time = mapping.columns.get("time")
    found = None if time is None else moments(reader.column(time), mapping.time_format, mapping.zone)
    arrived = reader.constant(None, pl.Datetime("us", "UTC")) if found is None else found.values
    if found is not None:
        reader.take("attempt.arrived_at", found)
    columns = {
        "segment_row": reader.rows.lines,
        "arrived_at": arrived,
        "undated": arrived.is_null(),
        "source": reader.constant(mapping.name, pl.String),
        **_names(reader, mapping, source),
        **{name: _figure(reader, FIGURES[name], theirs) for name, theirs in mapping.columns.items() if name in FIGURES},
    }
    rows = pl.DataFrame(columns).with_columns(day=pl.col("arrived_at").dt.date().fill_null(source.day))
    answered = leaves.select(pl.any_horizontal(pl.all().is_not_null())).to_series() if leaves.width else None
    return _with_status(rows, reader.constant(value=False, kind=pl.Boolean) if answered is None else answered, mapping)


def _names(reader: Reader, mapping: TableMapping, source: Source) -> dict[str, pl.Series]:
    """Names as the rows give them, else as the call does, else as the mapping does."""

    def named(ours: str, *standing: str | None, pattern: re.Pattern[str] = NAME) -> pl.Series:
        default = reader.constant(next((name for name in standing if name), None), pl.String)
        if ours not in mapping.columns:
            return default
        return pl.select(pl.coalesce(reader.name(mapping.columns[ours], pattern), default)).to_series()

    model = named("model", source.model, mapping.model)
    tenant = reader.constant(source.tenant or mapping.tenant, pl.String)
    if "tenant" in mapping.columns:
        told = reader.column(mapping.columns["tenant"]).cast(pl.String, strict=False)
        tenant = pl.select(pl.coalesce(told, tenant)).to_series()
    assigned = tenants(source.key, tenant)
    ours = reader.constant(key_id(source.key), pl.String).set(assigned == UNASSIGNED, None)
    served = named("model_served")
    return {
        "provider": named("provider", source.provider, mapping.provider),
        "api": named("api", mapping.api),
        "model": model,
        "model_requested": named("model_requested"),
        "model_served": pl.select(pl.coalesce(served, model)).to_series(),
        "tenant": assigned,
        "tenant_key_id": ours,
        "task": named("task", source.task, mapping.task, UNASSIGNED),
        "route": named("route", UNASSIGNED, pattern=ROUTE),
    }


def _figure(reader: Reader, column: Column, theirs: str) -> pl.Series:
    """One number, flag, enumeration or fingerprint of `attempt`."""
    values, kind, path = reader.column(theirs), polars_schema("attempt")[column.name], f"attempt.{column.name}"
    if column.values is not None:
        return reader.take(path, figures.members(values, [str(member) for member in column.values]))
    if kind == pl.Float64:
        return reader.take(path, figures.reals(values))
    if kind == pl.Boolean:
        return reader.take(path, figures.flags(values))
    if kind == pl.String:
        return reader.name(theirs, re.compile(column.pattern or NAME.pattern))
    limits = {"least": _INT32[0], "most": _INT32[1]} if kind == pl.Int32 else {}
    found = reader.take(path, figures.integers(values, **limits))
    if column.minimum is not None:
        below = (found < column.minimum).fill_null(value=False)
        reason = QuarantineReason.NEGATIVE_TIME if column.name.endswith("_us") else QuarantineReason.SCHEMA
        reader.take(path, Figures(found, reader.constant(None, pl.String).set(below, str(reason)), below & False))
    return found


def _with_status(rows: pl.DataFrame, answered: pl.Series, mapping: TableMapping) -> pl.DataFrame:
    """How an attempt ended, and whether usage is to be expected of it, where the rows do not say."""
    if "status" not in rows.columns:
        succeeded = pl.when(answered).then(pl.lit(str(AttemptStatus.SUCCEEDED)))
        rows = rows.with_columns(status=succeeded.otherwise(pl.lit(str(AttemptStatus.UNKNOWN))))
    rows = rows.with_columns(pl.col("status").fill_null(str(AttemptStatus.UNKNOWN)))
    if "usage_expected" in rows.columns:
        return rows
    failed = [str(AttemptStatus.FAILED), str(AttemptStatus.REJECTED)]
    expected = (
        pl.when(pl.col("status") == str(AttemptStatus.SUCCEEDED))
        .then(pl.lit(value=True))
        .when(pl.col("status").is_in(failed))
        .then(pl.lit(value=False))
    )
    return rows.with_columns(usage_expected=expected if mapping.leaves else pl.lit(None, dtype=pl.Boolean))


def _refused(reader: Reader, rows: pl.DataFrame, leaves: pl.DataFrame) -> pl.DataFrame:
    """One row of `quarantine` per value that cannot be read, with the leaves of its row that can."""
    about = pl.DataFrame({"line": reader.rows.lines}).hstack(rows.select("day", "source", "provider", "api"))
    parts = []
    for path, reasons in reader.refusals:
        where = reasons.is_not_null()
        found = about.filter(where).with_columns(reasons.filter(where).alias("reason"), path=pl.lit(path))
        parts.append(found.hstack(composed(leaves.filter(where))) if leaves.width else found)
    empty = about.clear().with_columns(reason=pl.lit(""), path=pl.lit(""))
    return pl.concat([empty, *parts], how="diagonal")


def _torn(rows: Rows, mapping: TableMapping, source: Source) -> pl.DataFrame:
    """One row of `quarantine` per row that could not be taken apart at all."""
    return pl.DataFrame(
        {
            "line": [line for line, _ in rows.bad],
            "reason": [str(reason) for _, reason in rows.bad],
            "path": [""] * len(rows.bad),
            "day": [source.day] * len(rows.bad),
            "source": [mapping.name] * len(rows.bad),
        },
        schema={"line": pl.Int64, "reason": pl.String, "path": pl.String, "day": pl.Date, "source": pl.String},
    )


def _notes(reader: Reader) -> pl.Series:
    """The notes of each row, each once and in alphabetical order; null where there are none."""
    if not reader.notes:
        return reader.constant(None, pl.List(pl.String))
    told = [pl.when(where).then(pl.lit(note)) for note, where in reader.notes]
    lists = pl.select(pl.concat_list(told).list.drop_nulls().list.unique().list.sort().alias("notes")).to_series()
    return pl.select(pl.when(lists.list.len() > 0).then(lists).alias("notes")).to_series()


def _reports(rows: pl.DataFrame, leaves: pl.DataFrame, notes: pl.Series) -> pl.DataFrame:
    """Rows of `usage_report`, for the rows that have any leaf."""
    if not leaves.width:
        return pl.DataFrame()
    ended = {str(status): str(end) for status, end in _ENDED.items()}
    reports = rows.select(
        "attempt_hi",
        "attempt_lo",
        "day",
        "source",
        "segment_row",
        "provider",
        "api",
        model=pl.coalesce("model", "model_served"),
        reported_at="arrived_at",
        ended=pl.col("status").replace_strict(ended, return_dtype=pl.String),
        part_kind=pl.lit(str(ReportPart.WHOLE)),
        notes=notes,
        **{name: pl.lit(0, dtype=pl.Int32) for name in ("child", "report", "part")},
    )
    return reports.hstack(composed(leaves)).filter(pl.col("leaf_shape") != "")


def _foreign(rows: pl.DataFrame, ids: dict[str, pl.Series]) -> pl.DataFrame:
    """Rows of `foreign_id`."""
    key = rows.select("attempt_hi", "attempt_lo", "day", "source", "segment_row")
    parts = [
        key.with_columns(kind=pl.lit(kind), value=values).filter(pl.col("value").is_not_null())
        for kind, values in ids.items()
    ]
    return pl.concat(parts) if parts else pl.DataFrame()
