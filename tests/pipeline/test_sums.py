"""Numbers of 32 bits are never summed as they are: Polars would add them in 32 bits and wrap, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import weighbridge.pipeline.reconcile as room
from weighbridge.schemas.tables import TABLES

PIPELINE = Path(room.__path__[0]).parent
_TYPES = [(column.name, column.type) for table in TABLES.values() for column in table.columns]
_WIDE_SOMEWHERE = {name for name, kind in _TYPES if pa.types.is_int64(kind)}
NARROW = {name for name, kind in _TYPES if pa.types.is_int32(kind)} - _WIDE_SOMEWHERE
WIDE = ("Int64", "Int128", "Float64", "Decimal")


def narrow_sums(source: str) -> Iterator[str]:
    """The sums of columns of 32 bits, or of lengths, that are not widened before."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sum"):
            continue
        summed = node.func.value
        named = {each.value for each in ast.walk(summed) if isinstance(each, ast.Constant)} & NARROW
        lengths = "pl.len()" in ast.unparse(summed)
        compared = any(isinstance(each, ast.Compare) for each in ast.walk(summed))  # how often, not how much
        if (named or lengths) and not compared and not any(f"cast(pl.{kind}" in ast.unparse(summed) for kind in WIDE):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_every_sum_of_narrow_numbers_is_widened_first() -> None:
    """Over the whole pipeline."""
    found = {str(path.relative_to(PIPELINE)): list(narrow_sums(path.read_text())) for path in PIPELINE.rglob("*.py")}
    assert {name: sums for name, sums in found.items() if sums} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('pl.col("messages").sum()', 1),
        ('pl.col("messages").cast(pl.Int64).sum()', 0),
        ('pl.col("messages").sum().cast(pl.Int64)', 1),
        ('(pl.col("revision") > 0).sum()', 0),
        ("pl.len().sum()", 1),
        ('pl.col("input_total").sum()', 0),
    ],
)
def test_the_search_finds_what_it_is_for(source: str, found: int) -> None:
    """A cast that comes after the sum comes too late."""
    assert len(list(narrow_sums(source))) == found


def test_narrow_columns_are_known() -> None:
    """Ordinals and parameters, of which the vocabulary says that they are never summed."""
    assert {"revision", "child", "messages"} <= NARROW
    assert pl.Series([2**31 - 1] * 3, dtype=pl.Int32).cast(pl.Int64).sum() == 3 * (2**31 - 1)
