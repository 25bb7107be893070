"""The shape of each table as Polars sees it, and the door every row passes: exact columns, order and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl
import pyarrow as pa

from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.table import Table
from weighbridge.schemas.tables import TABLES

_KINDS: tuple[tuple[Callable[[pa.DataType], bool], pl.DataType], ...] = (
    (pa.types.is_string, pl.String()),
    (pa.types.is_int64, pl.Int64()),
    (pa.types.is_int32, pl.Int32()),
    (pa.types.is_boolean, pl.Boolean()),
    (pa.types.is_float64, pl.Float64()),
    (pa.types.is_date32, pl.Date()),
    (pa.types.is_timestamp, pl.Datetime("us", "UTC")),
    (pa.types.is_decimal, pl.Decimal(38, 18)),
    (pa.types.is_binary, pl.Binary()),
)


def declared(table: str) -> Table:
    """The declaration of a table.

    Raises:
        LakeError: the vocabulary has no such table.
    """
    found = TABLES.get(table)
    if found is None:
        raise LakeError(f"there is no table {table!r}; known are {', '.join(TABLES)}")
    return found


def _polars(kind: pa.DataType) -> pl.DataType:
    if pa.types.is_list(kind):
        return pl.List(_polars(kind.value_type))
    return next(polars for matches, polars in _KINDS if matches(kind))


@cache
def _schema(table: str) -> tuple[tuple[str, pl.DataType], ...]:
    return tuple((column.name, _polars(column.type)) for column in declared(table).columns)


def polars_schema(table: str) -> dict[str, pl.DataType]:
    """Column name -> Polars type, in the order they are stored.

    Raises:
        LakeError: the vocabulary has no such table.
    """
    return dict(_schema(table))


def empty(table: str) -> pl.DataFrame:
    """A frame of that table without rows."""
    return _empty(table).clone()


@cache
def _empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema=polars_schema(table))


def shaped(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with exactly the columns of `table`, in order and type; nullable columns it lacks are null.

    A type is only ever widened (Int32 to Int64, an integer to a decimal), or narrowed where every value fits.

    Raises:
        LakeError: unknown or missing columns, nulls where none may be, a type or value that does not fit.
    """
    return complete(table, fitted(table, frame))


def complete(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """A fitted frame with every column of its table, in order."""
    return frame.select(
        pl.col(name) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in polars_schema(table).items()
    )


def fitted(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """As `shaped`, but columns that `frame` lacks are left out: an attempt has many, and nulls take room too."""
    columns = declared(table).columns
    wanted = polars_schema(table)
    unknown = [name for name in frame.columns if name not in wanted]
    missing = [c.name for c in columns if not c.nullable and c.name not in frame.columns]
    if unknown or missing:
        raise LakeError(
            f"rows for {table} have unknown columns {unknown} and lack required columns {missing}; "
            f"its columns are {', '.join(wanted)}"
        )
    out = frame.with_columns(_fitted(table, frame[name], wanted[name]) for name in frame.columns)
    nulls = [c.name for c in columns if not c.nullable and out[c.name].null_count()]
    if nulls:
        raise LakeError(
            f"rows for {table} have nulls in {', '.join(nulls)}, which must not be null; nothing was written"
        )
    return out


def _fitted(table: str, values: pl.Series, wanted: pl.DataType) -> pl.Series:
    if values.dtype == wanted:
        return values
    if not may_become(values.dtype, wanted):
        raise LakeError(f"{table}.{values.name} is {wanted}, the rows have {values.dtype}; convert them first")
    try:
        return values.cast(wanted)
    except pl.exceptions.PolarsError:
        # The library's own message quotes values, so it is not chained.
        raise LakeError(
            f"{table}.{values.name} is {wanted}; some {values.dtype} values of the rows do not fit; nothing was written"
        ) from None


def may_become(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether values of the type `found` can stand in a column of the type `wanted`, those that fit it unchanged."""
    if found == wanted:
        return True
    if isinstance(found, pl.Null):
        return True
    if isinstance(found, pl.List) and isinstance(wanted, pl.List):
        return may_become(_inner(found), _inner(wanted))
    if found.is_integer():
        return wanted.is_integer() or wanted.is_float() or isinstance(wanted, pl.Decimal)
    if isinstance(found, pl.Datetime):
        return isinstance(wanted, pl.Datetime) and found.time_zone == wanted.time_zone and found.time_unit != "ns"
    return (
        (isinstance(found, pl.Decimal) and isinstance(wanted, pl.Decimal) and found.scale <= wanted.scale)
        or (isinstance(found, (pl.Enum, pl.Categorical)) and isinstance(wanted, pl.String))
        or (found.is_float() and wanted.is_float())
    )


def _inner(kind: pl.List) -> pl.DataType:
    inner = kind.inner
    return inner if isinstance(inner, pl.DataType) else inner()
