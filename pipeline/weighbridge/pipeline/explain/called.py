"""Names of things that have no id of their own: a word and what tells them apart, `engine/agent/vllm/m-1/-/...`."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

NONE = "-"


def called(word: str, *columns: str) -> pl.Expr:
    """The name of each row: the word and these columns, one `/` between them, `-` for what is not known.

    A moment is told to the microsecond, in UTC.
    """
    return pl.concat_str(pl.lit(word), *(_told(column) for column in columns), separator="/").alias("called")


def _told(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null(NONE)


def moment(column: str) -> pl.Expr:
    """A moment as names tell it."""
    return pl.col(column).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").alias(column)


def same(about: Mapping[str, object], *names: str) -> list[pl.Expr]:
    """Whether rows have these values, of those names that are told; a null is what is not known."""
    return [
        pl.col(name).cast(pl.String).eq_missing(None if about[name] is None else pl.lit(str(about[name])))
        for name in names
        if name in about
    ]
