"""Attempts that stand twice because their identifier is that of several calls: the engine's record, and the caller's.

A client may use one id for two calls, and then no id tells which record of the engine belongs to which of them. Times
and the limit that was asked for may: where each of two records fits exactly the other, they are one attempt.
"""

from __future__ import annotations

import polars as pl

KEY = ["attempt_lo", "attempt_hi"]
_ALIAS = ["alias_lo", "alias_hi"]
_THEIRS = [f"{name}_theirs" for name in KEY]


def without_twins(lives: pl.DataFrame, aliases: pl.LazyFrame) -> pl.DataFrame:
    """The lives without those that an engine's record tells again.

    Args:
        lives: attempts (`lives.lives`).
        aliases: rows of `alias`: which attempts are known by one identifier.
    """
    named = aliases.unique()
    several = named.group_by(_ALIAS).len().filter(pl.col("len") > 1).select(_ALIAS)
    known = lives.lazy().select(*KEY, "engine_counted", "begin", "end", "max_tokens")
    rows = named.join(several, on=_ALIAS, how="semi").join(known, on=KEY, how="inner").collect(engine="streaming")
    ours, theirs = rows.filter("engine_counted"), rows.filter(~pl.col("engine_counted"))
    pairs = ours.join(theirs, on=_ALIAS, how="inner", suffix="_theirs")
    together = (pl.col("begin") <= pl.col("end_theirs")) & (pl.col("begin_theirs") <= pl.col("end"))
    asked = (pl.col("max_tokens") == pl.col("max_tokens_theirs")).fill_null(value=True)
    fitting = pairs.filter(together & asked).select(*KEY, *_THEIRS).unique()
    alone = (pl.len().over(KEY) == 1) & (pl.len().over(_THEIRS) == 1)
    again = fitting.filter(alone).select(pl.col(name).alias(own) for name, own in zip(_THEIRS, KEY, strict=True))
    return lives.join(again, on=KEY, how="anti", maintain_order="left") if again.height else lives
