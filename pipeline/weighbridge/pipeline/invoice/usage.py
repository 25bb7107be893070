"""Our side: what the server said of each call of a provider in a span of time, and what that costs.

One row per call of a model: of one attempt that several sources tell of, the first source by name counts, and a report
that only repeats another does not. Engine counts and recounts are never here: money follows what the server recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AttemptStatus, PriceBasis, Verdict
from weighbridge.schemas.lattice import REPORTED_CLASSES
from weighbridge.schemas.tables import UNASSIGNED

KEY = ("attempt_hi", "attempt_lo")
CALL = (*KEY, "child")
REPORT = (*CALL, "source", "report", "revision")
CLASSES = tuple(str(name) for name in REPORTED_CLASSES)
AMOUNTS = tuple(f"amount_{name}" for name in CLASSES)
MONEY = pl.Decimal(38, 18)
ABOUT = ("at", "ended", "model", "tenant", "failed", "superseded", "undated")
_FAILED = (str(AttemptStatus.FAILED), str(AttemptStatus.REJECTED))
_UNFINISHED = (str(AttemptStatus.ABORTED), str(AttemptStatus.UNKNOWN))
_ATTEMPT = (
    *(*KEY, "source", "revision", "arrived_at", "total_us", "tenant", "status", "request_hi", "request_lo"),
    *("attempt_number", "undated", "tier_requested"),
)


def calls(
    lake: Records, provider: str, span: tuple[datetime, datetime], models: Mapping[str, str], columns: tuple[str, ...]
) -> pl.DataFrame:
    """The calls of a provider that arrived in a span.

    Args:
        lake: readings and their prices, up to date.
        provider: who answered.
        span: UTC moments, the first inclusive, the second exclusive.
        models: their name of a model -> ours.
        columns: the columns of `reading` that are wanted beside its key.

    Returns:
        One row per call, in order of time and key: the columns of `reading`, `ABOUT`, and of `priced_amount` its
        amounts, currency, status and price_id. `at` is when the attempt arrived, or the begin of its day; `ended` when
        it was over; `failed` that it was answered with an error, `superseded` that a later try of the same request
        followed on one that had no whole answer.
    """
    first, last = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    wanted = list(dict.fromkeys((*REPORT, "day", "provider", "model", "verdict", *columns)))
    # A row all revisions of which lie on one day: the last one counts. A repeated report is charged once.
    read = lake.scan("reading", first=first, last=last, columns=wanted).filter(
        pl.col("provider") == provider, pl.col("report") == 0, pl.col("verdict") != str(Verdict.CONTRADICTORY)
    )
    # The first source by name comes last, and of it the last revision.
    ordered = read.sort("source", "revision", descending=[True, False], maintain_order=True)
    rows = ordered.unique(list(CALL), keep="last", maintain_order=True)
    known = rows.join(_attempts(lake, span), on=list(KEY), how="left")
    priced = _priced(lake, span)
    joined = known.join(priced, on=list(REPORT), how="left").with_columns(
        at=pl.coalesce("arrived_at", pl.col("day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")),
        undated=pl.col("arrived_at").is_null(),
        tenant=pl.col("tenant").fill_null(UNASSIGNED),
        failed=pl.col("attempt_status").is_in(_FAILED).fill_null(value=False),
        superseded=pl.col("superseded").fill_null(value=False),
        named=pl.col("model").replace(dict(models)) if models else pl.col("model"),
    )
    inside = joined.filter(pl.col("at") >= span[0], pl.col("at") < span[1])
    timed = inside.with_columns(ended=pl.col("at") + pl.duration(microseconds=pl.col("total_us").fill_null(0)))
    return timed.sort("at", *KEY, "child").collect(engine="streaming")


def _attempts(lake: Records, span: tuple[datetime, datetime]) -> pl.LazyFrame:
    """What attempts say of themselves, sources merged: the first source by name that knows a thing gives it."""
    first, last = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    rows = lake.scan("attempt", first=first, last=last, columns=list(_ATTEMPT))
    latest = rows.sort("source", "revision").unique([*KEY, "source"], keep="last", maintain_order=True)
    known = pl.col("status").filter(pl.col("status") != str(AttemptStatus.UNKNOWN))
    owned = pl.col("tenant").filter(pl.col("tenant") != UNASSIGNED)
    names = ("arrived_at", "total_us", "request_hi", "request_lo", "attempt_number", "tier_requested")
    merged = latest.group_by(KEY, maintain_order=True).agg(
        pl.coalesce(known.first(), pl.col("status").first()).alias("attempt_status"),
        pl.coalesce(owned.first(), pl.col("tenant").first()).alias("tenant"),
        *(pl.col(name).drop_nulls().first() for name in names),
    )
    latest_try = pl.col("attempt_number").max().over("request_hi", "request_lo")
    later = pl.col("request_hi").is_not_null() & (pl.col("attempt_number") < latest_try)
    unfinished = pl.col("attempt_status").is_in(_UNFINISHED)
    return merged.with_columns(superseded=(later & unfinished).fill_null(value=False)).drop(
        "request_hi", "request_lo", "attempt_number"
    )


def _priced(lake: Records, span: tuple[datetime, datetime]) -> pl.LazyFrame:
    first, last = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    names = (*AMOUNTS, "amount", "amount_fees", "currency", "status", "price_id")
    rows = lake.scan("priced_amount", first=first, last=last, columns=[*REPORT, "basis", *names])
    of_usage = rows.filter(pl.col("basis") == str(PriceBasis.REPORTED)).drop("basis")
    return of_usage.rename({"status": "price_status"}).unique(list(REPORT), keep="any")
