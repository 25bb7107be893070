"""Keys of imported rows: the recorder's id where the table has it, else an id of its own source, else the content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weighbridge.pipeline.ingest.figures import UNREADABLE, Figures
from weighbridge.pipeline.ingest.keys import OWN_KINDS, alias_keys, keyed_keys
from weighbridge.schemas.enumerations import ForeignIdKind, QuarantineReason
from weighbridge.schemas.identity import AttemptKey, framed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What names a record in its own source, the surest first.
IDENTIFYING = (
    *OWN_KINDS,
    ForeignIdKind.CLIENT_REQUEST_ID,
    ForeignIdKind.PROVIDER_RESPONSE_ID,
    ForeignIdKind.SPAN_ID,
)
_HEX = r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
_KEY = {"attempt_hi": pl.Int64, "attempt_lo": pl.Int64}
_ALIAS = {"alias_hi": pl.Int64, "alias_lo": pl.Int64}


@dataclass(frozen=True, slots=True)
class Keyed:
    """The keys of rows.

    Attributes:
        columns: attempt_hi, attempt_lo, `derived` (the key is the source's own), and alias_hi, alias_lo: the keyed
            hash of the id it was made from.
        refused: recorder's ids that are none.
    """

    columns: pl.DataFrame
    refused: Figures


def keyed(
    key: bytes, source: str, table: pl.DataFrame, ids: Mapping[str, pl.Series], recorded: pl.Series | None
) -> Keyed:
    """The keys of the rows of a table.

    Args:
        key: the installation's pseudonym key.
        source: the system that wrote the table.
        table: its columns; their content identifies rows that nothing else does.
        ids: kind of identifier -> its column.
        recorded: the column of recorder's ids, where there is one.
    """
    texts = pl.Series([None], dtype=pl.String).new_from_index(0, table.height)
    if recorded is not None:
        texts = recorded.cast(pl.String, strict=False)
    good = texts.str.contains(_HEX).fill_null(value=False)
    bad = texts.is_not_null() & ~good
    reasons = pl.Series([None], dtype=pl.String).new_from_index(0, table.height)
    refused = Figures(texts, reasons.set(bad, str(QuarantineReason.BAD_IDENTIFIER)), bad & False)
    parts = [_recorded(texts, good)]
    open_ = ~good
    for kind in IDENTIFYING:
        if str(kind) in ids:
            has = open_ & ids[str(kind)].is_not_null()
            parts.append(_identified(key, source, kind, ids[str(kind)], has))
            open_ &= ~has
    parts.append(_by_content(key, source, table, open_))
    columns = pl.concat(parts).sort("_row").drop("_row")
    return Keyed(columns, refused)


def _rows(where: pl.Series) -> pl.Series:
    return where.arg_true().alias("_row")


def _recorded(texts: pl.Series, where: pl.Series) -> pl.DataFrame:
    found = [AttemptKey.from_hex(text) for text in texts.filter(where)]
    keys = pl.DataFrame(found, schema=_KEY, orient="row")
    return keys.with_columns(
        _rows(where), pl.lit(value=False).alias("derived"), *(pl.lit(None, t).alias(n) for n, t in _ALIAS.items())
    ).select("_row", *_KEY, "derived", *_ALIAS)


def _identified(key: bytes, source: str, kind: ForeignIdKind, values: pl.Series, where: pl.Series) -> pl.DataFrame:
    known = values.filter(where)
    return _derived(
        where, keyed_keys(key, [source, str(kind)], known), pl.DataFrame(alias_keys(key, kind, source, known), _ALIAS)
    )


def _by_content(key: bytes, source: str, table: pl.DataFrame, where: pl.Series) -> pl.DataFrame:
    """Rows that nothing names: their content, and for rows that are alike the order in which they stand."""
    alike = (
        table.filter(where).select(_content(table)).with_columns(nth=pl.col("content").cum_count().over("content") - 1)
    )
    tails = (framed(content.encode(), nth) for content, nth in alike.iter_rows())
    none = pl.DataFrame(schema=_ALIAS).clear(int(where.sum()))
    return _derived(where, keyed_keys(key, [source], tails, framed_already=True), none)


def _derived(where: pl.Series, keys: NDArray[np.int64], alias: pl.DataFrame) -> pl.DataFrame:
    return (
        pl.DataFrame(keys, _KEY)
        .hstack(alias)
        .with_columns(_rows(where), derived=pl.lit(value=True))
        .select("_row", *_KEY, "derived", *_ALIAS)
    )


def _content(table: pl.DataFrame) -> pl.Expr:
    """One text per row that no other content gives: each value with its column and its length before it."""
    parts = []
    for name in sorted(table.columns):
        held = pl.col(name)
        if table.schema[name].is_nested():
            held = pl.when(held.is_not_null()).then(pl.lit(UNREADABLE))
        text = held.cast(pl.String, strict=False)
        label = pl.lit(f"{len(name)}:{name}=")
        shown = pl.concat_str(label, text.str.len_bytes().cast(pl.String), pl.lit(":"), text)
        parts.append(shown.fill_null(""))
    return pl.concat_str(parts).alias("content")
