"""Whether rows that someone else wrote hold what the vocabulary declares: patterns, enumerations, limits, leaves.

A sealed segment is written by another program, perhaps of another hand. A value that its column does not allow is
data that cannot be read: the row goes to quarantine, so that no text gets in through a column for names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.ingest.leaf_paths import is_leaf_path
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import ENUMERATED
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import NAME, TABLES

# What may stand in a list of strings: a decimal, an enumeration or a name, never a sentence.
_ITEM = rf"-?\d{{1,30}}(\.\d{{1,400}})?([eE][+-]?\d{{1,3}})?|{NAME}"
_NAME = re.compile(NAME)
_ENUMERATED = frozenset(value for values in ENUMERATED.values() for value in values)


def misfits(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """row, path, reason of each value of `rows` that its column does not allow; `path` is table.column."""
    found = [
        pl.DataFrame({"row": bad, "path": f"{table}.{name}", "reason": str(reason)}, schema=_MISFIT)
        for name, bad, reason in _bad(table, rows)
        if bad.len()
    ]
    return pl.concat(found) if found else pl.DataFrame(schema=_MISFIT)


_MISFIT = {"row": pl.Int64, "path": pl.String, "reason": pl.String}


def _bad(table: str, rows: pl.DataFrame) -> Iterator[tuple[str, pl.Series, QuarantineReason]]:
    wanted = polars_schema(table)
    for column in TABLES[table].columns:
        if column.name not in rows.columns:
            if not column.nullable:
                yield column.name, pl.int_range(rows.height, dtype=pl.Int64, eager=True), QuarantineReason.MISSING_FIELD
            continue
        given = rows[column.name]
        if not column.nullable and given.null_count():
            yield column.name, _at(given.is_null()), QuarantineReason.MISSING_FIELD
        values = given if given.dtype == wanted[column.name] else given.cast(wanted[column.name], strict=False)
        if values.null_count() > given.null_count():
            yield column.name, _at(values.is_null() & given.is_not_null()), QuarantineReason.RANGE
        if column.name == "leaf_shape":
            yield column.name, _unfit_leaves(rows), QuarantineReason.SCHEMA
        elif values.dtype == pl.String:
            yield column.name, _unfit_text(column, values), _reason(column)
        elif values.dtype == pl.List(pl.String):
            yield column.name, _unfit_items(values), QuarantineReason.SCHEMA
        elif column.minimum is not None:
            yield column.name, _below(values, column.minimum), _reason(column)


def _reason(column: Column) -> QuarantineReason:
    if column.name.endswith("_us"):
        return QuarantineReason.NEGATIVE_TIME
    return QuarantineReason.BAD_IDENTIFIER if column.name == "value" else QuarantineReason.SCHEMA


def _at(mask: pl.Series) -> pl.Series:
    return mask.fill_null(value=False).arg_true().cast(pl.Int64)


def _below(values: pl.Series, minimum: int) -> pl.Series:
    lowest = values.min()
    if isinstance(lowest, int) and lowest >= minimum:
        return pl.Series([], dtype=pl.Int64)
    return _at(values < minimum)


def _unfit_text(column: Column, values: pl.Series) -> pl.Series:
    distinct = values.drop_nulls().unique()
    if column.values is not None:
        unfit = distinct.filter(~distinct.is_in([str(member) for member in column.values]))
    elif column.pattern is not None:
        unfit = distinct.filter(~distinct.str.contains(f"^(?:{column.pattern})$"))
    else:
        holds = _is_parameters if column.name == "parameters" else _is_path
        unfit = distinct.filter(pl.Series([not holds(text) for text in distinct], dtype=pl.Boolean))
    return _at(values.is_in(unfit.implode())) if unfit.len() else pl.Series([], dtype=pl.Int64)


def _is_path(text: str) -> bool:
    """Where a value stood: a leaf path, or table.column."""
    table, _, column = text.partition(".")
    return text == "" or is_leaf_path(text) or (table in TABLES and column in TABLES[table].names)


def _is_parameters(text: str) -> bool:
    """JSON of numbers and names, nested or not."""
    try:
        return _is_plain(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(_NAME.fullmatch(name) and _is_plain(item) for name, item in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return not isinstance(value, str) or bool(_NAME.fullmatch(value))


def _unfit_items(values: pl.Series) -> pl.Series:
    distinct = values.explode().drop_nulls().unique()
    unfit = distinct.filter(~distinct.str.contains(f"^(?:{_ITEM})$") & ~distinct.is_in(sorted(_ENUMERATED)))
    if not unfit.len():
        return pl.Series([], dtype=pl.Int64)
    holds = values.to_frame("items").select(pl.col("items").list.eval(pl.element().is_in(unfit.implode())).list.any())
    return _at(holds["items"])


def _unfit_leaves(rows: pl.DataFrame) -> pl.Series:
    """Rows whose paths are not all allow-listed, or that do not have one value per path."""
    shapes = rows.select(pl.col("leaf_shape").fill_null("")).unique()
    good = [all(map(is_leaf_path, shape.split(" "))) if shape else True for shape in shapes["leaf_shape"]]
    count = [len(shape.split(" ")) if shape else 0 for shape in shapes["leaf_shape"]]
    known = shapes.with_columns(good=pl.Series(good, dtype=pl.Boolean), paths=pl.Series(count, dtype=pl.Int64))
    lengths = {
        name: (pl.col(f"leaf_{name}").list.len() if f"leaf_{name}" in rows.columns else pl.lit(None)).cast(pl.Int64)
        for name in ("integers", "texts")
    }
    joined = rows.select(pl.col("leaf_shape").fill_null(""), **lengths).join(
        known, on="leaf_shape", how="left", maintain_order="left"
    )
    whole = pl.col("good") & pl.col("integers").fill_null(0).eq(pl.col("paths"))
    whole &= pl.col("texts").is_null() | pl.col("texts").eq(pl.col("paths"))
    return _at(joined.select(~whole).to_series())
