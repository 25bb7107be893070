"""Blocks of token ids stay whole: the first run of a block holds the ciphertext of all, and it may be refused."""

from __future__ import annotations

import polars as pl

TABLE = "token_run"


def with_ciphertext(kept: pl.DataFrame, every: pl.DataFrame) -> pl.DataFrame:
    """The kept rows of `token_run`, in which the first run of a block takes over a ciphertext that was left behind.

    Args:
        kept: the rows that are stored.
        every: those and the rows that are refused.
    """
    if kept.height == every.height or not {"block", "ciphertext"} <= set(every.columns):
        return kept
    held = every.filter(pl.col("ciphertext").is_not_null()).select("block", _of_block="ciphertext").unique("block")
    lacking = pl.col("ciphertext").is_not_null().any().over("block").not_() & pl.col("block").is_first_distinct()
    joined = kept.join(held, on="block", how="left", maintain_order="left")
    taken = pl.when(lacking).then(pl.col("_of_block")).otherwise(pl.col("ciphertext"))
    return joined.with_columns(ciphertext=taken).drop("_of_block")
