"""Reports that were closed and are in the lake no more: which of them a receipt speaks of, and which are lost.

A receipt excuses what it was about, on the days it names, and nothing else:

    tenant, bucket, task    attempts that the pack says are theirs
    but, but_tasks          everybody without a line of their own
    attempts                it names nobody: as many reports as it counts rows
    close                   rows of a pack: nothing of the lake

One whose id is not the hash of what it says excuses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from weighbridge.pipeline.close.usage_figures import REPORT
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.identity import erased
from weighbridge.schemas.receipt import receipt_id, scope_of

# A report leaves the lake with its reading; one that was cut off in between finds the reading gone already.
_TABLES = ("usage_report", "reading")
_GONE = (str(ReceiptMethod.DELETED), str(ReceiptMethod.BOTH))
_NAMES = ("tenant", "task", "subject_bucket")


def lost(pack: Records, receipts: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """The reports of which no receipt speaks.

    Args:
        pack: the close, which says whose each report was.
        receipts: the table `receipt`.
        gone: reports of the pack that are not in the lake: at least the columns of `REPORT`, and `day`.
    """
    if gone.is_empty():
        return gone
    names = pack.scan("attempt", columns=[*KEY, *_NAMES]).unique().join(gone.lazy(), on=list(KEY), how="semi")
    attempts = names.collect()
    hashes = {name: erased(name) for name in attempts["tenant"].drop_nulls().unique()}
    attempts = attempts.with_columns(pl.col("tenant").replace(hashes))
    left = gone.sort(REPORT)
    for table in _TABLES:
        told = [row for row in receipts.filter(pl.col("table_name") == table).to_dicts() if _sound(row)]
        unexcused = gone.sort(REPORT)
        for row in sorted(told, key=lambda row: "attempts" in scope_of(row["scope"])):
            unexcused = _less(unexcused, attempts, row)
        left = left.join(unexcused, on=list(REPORT), how="semi", nulls_equal=True)
    return left


def _sound(row: Mapping[str, Any]) -> bool:
    return row["method"] in _GONE and receipt_id(row) == row["receipt_id"] and "close" not in scope_of(row["scope"])


def _less(reports: pl.DataFrame, attempts: pl.DataFrame, receipt: Mapping[str, Any]) -> pl.DataFrame:
    """The reports that a receipt is not about."""
    scope = scope_of(receipt["scope"])
    about = pl.col("day").is_between(receipt["first_day"] or date.min, receipt["last_day"] or date.max)
    marked = reports.with_columns(_of=_whose(reports, attempts, scope) & reports.select(about).to_series())
    if "attempts" in scope:  # the first so many, as it does not say which
        marked = marked.with_columns(pl.col("_of") & (pl.col("_of").cum_sum() <= receipt["rows"]))
    return marked.filter(~pl.col("_of")).drop("_of")


def _whose(reports: pl.DataFrame, attempts: pl.DataFrame, scope: Mapping[str, str]) -> pl.Series:
    """Whether each report is of somebody a receipt is about."""
    named = {"tenant": scope.get("tenant"), "task": scope.get("task"), "subject_bucket": scope.get("bucket")}
    asked = [pl.col(name).cast(pl.String) == value for name, value in named.items() if value is not None]
    others = [pl.col(name).is_in(scope[word].split(",")) for name, word in _OTHERS if word in scope]
    told = pl.repeat(value=True, n=reports.height, eager=True)
    if asked:
        told &= _is_of(reports, attempts.filter(asked))
    if others:
        told &= ~_is_of(reports, attempts.filter(pl.any_horizontal(others)))
    return told


_OTHERS = (("tenant", "but"), ("task", "but_tasks"))


def _is_of(reports: pl.DataFrame, attempts: pl.DataFrame) -> pl.Series:
    keys = attempts.select(KEY).unique().with_columns(_is=pl.lit(value=True))
    return reports.join(keys, on=list(KEY), how="left", maintain_order="left")["_is"].fill_null(value=False)
