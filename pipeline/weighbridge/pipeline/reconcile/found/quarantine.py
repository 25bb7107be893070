"""How many records could not be read: one of them stands in quarantine once for each value that could not.

Rows of the lake that break a rule are in quarantine too; they were read, so they are none of these.

file  line  reason    path                      record
a.jsonl  8  type      usage.prompt_tokens       the first
a.jsonl  8  type      usage.completion_tokens   the first
a.jsonl  9  fraction  usage.prompt_tokens       the second
"""

from __future__ import annotations

import polars as pl

from weighbridge.schemas.enumerations import QuarantineReason

# The columns by which records are told apart; a sealed segment has a file per table, so lines alone do not tell them.
PLACE = ("segment", "line", "path")
_SEALED = "segment"


def records(rows: pl.LazyFrame, by: tuple[str, ...]) -> pl.LazyFrame:
    """One row per record and group.

    Args:
        rows: rows of the table `quarantine` with at least `PLACE`, `importer` and the columns of `by`.
        by: what groups are told apart by, `reason` among it; a record that could not be read for two reasons is in
            both of theirs.
    """
    rows = rows.filter(pl.col("reason") != str(QuarantineReason.CONTRACT))
    table = pl.when(pl.col("importer") == _SEALED).then(pl.col("path").str.split(".").list.first())
    return rows.with_columns(_table=table).unique([*by, "segment", "line", "_table"]).drop("_table", "path")
