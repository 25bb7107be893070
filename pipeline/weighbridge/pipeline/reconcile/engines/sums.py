"""Sums that do not fit into 64 bits: an error on every engine, never another number.

Engines differ: Polars wraps a sum of Int64 in silence, DuckDB widens it, Spark raises only where it was told to. So
sums are made of decimals of 38 digits, which hold as many figures of 64 bits as there can be rows, and turned into 64
bits afterwards: the turning fails where the sum does not fit, and that failure is what is told here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import narwhals as nw

from weighbridge.schemas.errors import SumError

_WIDE = nw.Decimal(38, 0)
# How engines name a value that does not fit into the type it is turned into.
_UNFIT = (
    "conversion from `decimal",  # Polars
    "conversion from `i128`",
    "cast decimal value",  # DuckDB
    "Type INT128",
    "CAST_OVERFLOW",  # Spark
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
)
_ENGINES = {"polars", "narwhals", "duckdb", "_duckdb", "pyspark", "py4j"}


def exact_sum(expr: nw.Expr) -> nw.Expr:
    """The sum of whole numbers as Int64; where it does not fit, collecting it raises `SumError`."""
    return expr.cast(_WIDE).sum().cast(nw.Int64)


@contextmanager
def told_of_sums() -> Iterator[None]:
    """Turn an engine's failure to fit a sum into a `SumError`, without the values it quotes."""
    try:
        yield
    except Exception as error:
        if _is_unfit(error):
            raise beyond() from None
        raise


def beyond() -> SumError:
    """The error of a sum beyond 64 bits."""
    return SumError(
        "a sum of tokens is beyond 2^63, which no column can hold; nothing was written. `weighbridge validate` names "
        "the rows with figures that large: correct or remove them at their source, ingest again, and run it again."
    )


def _is_unfit(error: BaseException) -> bool:
    kind = type(error).__module__.partition(".")[0]
    return kind in _ENGINES and any(word in str(error) for word in _UNFIT)
