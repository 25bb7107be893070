"""Leaves that stand in columns, one per path, as the shape and the lists of `usage_report`."""

from __future__ import annotations

import polars as pl

SHAPE: dict[str, pl.DataType] = {
    "leaf_shape": pl.String(),
    "leaf_integers": pl.List(pl.Int64),
    "leaf_texts": pl.List(pl.String),
}


def composed(leaves: pl.DataFrame) -> pl.DataFrame:
    """leaf_shape, leaf_integers, leaf_texts of each row; a leaf that is null is left out of its row's shape.

    Args:
        leaves: one column per path: Int64, or String for decimal texts and enumerations.
    """
    paths = sorted(leaves.columns)
    parts = [
        _of_shape(rows, [path for path, held in zip(paths, present, strict=True) if held])
        for present, rows in _by_presence(leaves, paths)
    ]
    empty = pl.DataFrame(schema={"_row": pl.UInt32(), **SHAPE})
    return pl.concat([empty, *parts]).sort("_row").drop("_row")


def _by_presence(leaves: pl.DataFrame, paths: list[str]) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    numbered = leaves.with_row_index("_row")
    if not paths:
        return [((), numbered)]
    return list(numbered.group_by([pl.col(path).is_not_null() for path in paths], maintain_order=True))


def _of_shape(rows: pl.DataFrame, paths: list[str]) -> pl.DataFrame:
    """Rows that have exactly these leaves."""
    schema = rows.schema
    integers = [pl.col(p) if schema[p] == pl.Int64 else pl.lit(None, dtype=pl.Int64) for p in paths]
    texts = [pl.col(p) if schema[p] == pl.String else pl.lit(None, dtype=pl.String) for p in paths]
    any_text = any(schema[path] == pl.String for path in paths)
    none = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.select(
        "_row",
        leaf_shape=pl.lit(" ".join(paths)),
        leaf_integers=pl.concat_list(integers) if paths else none,
        leaf_texts=pl.concat_list(texts) if any_text else pl.lit(None, dtype=pl.List(pl.String)),
    )
