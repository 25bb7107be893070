"""Our side: what the server said of each call of a provider in a span of time, and what that costs.

One row per call of a model: of one attempt that several sources tell of, the first source by name counts, and a report
that only repeats another does not. Engine counts and recounts are never here: money follows what the server recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.invoice.spans import MOMENT, Span
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
# Days are read together up to about so many calls, which bounds memory.
BATCH = 150_000
ABOUT = ("at", "ended", "model", "tenant", "failed", "superseded", "undated")
_CONTRADICTORY: dict[str, pl.DataType] = {
    **dict.fromkeys(KEY, pl.Int64()),
    "at": MOMENT,
    "day": pl.Date(),
    **dict.fromkeys(("provider", "model", "named", "tenant", "segment"), pl.String()),
    "failed": pl.Boolean(),
    "most": pl.Int64(),
}
_FAILED = (str(AttemptStatus.FAILED), str(AttemptStatus.REJECTED))
_UNFINISHED = (str(AttemptStatus.ABORTED), str(AttemptStatus.UNKNOWN))
_ATTEMPT = (
    *(*KEY, "source", "revision", "arrived_at", "total_us", "tenant", "status", "request_hi", "request_lo"),
    *("attempt_number", "undated", "tier_requested"),
)


def calls(
    lake: Records, provider: str, span: Span, models: Mapping[str, str], columns: tuple[str, ...]
) -> pl.DataFrame:
    """The calls of a provider that arrived in a span, as one frame in order of time and key: see `call_days`."""
    return pl.concat(list(call_days(lake, provider, span, models, columns))).sort("at", *KEY, "child")


def call_days(
    lake: Records, provider: str, span: Span, models: Mapping[str, str], columns: tuple[str, ...]
) -> Iterator[pl.DataFrame]:
    """The calls of a provider that arrived in a span, some days at a time, so that memory stays flat.

    Args:
        lake: readings and their prices, up to date.
        provider: who answered.
        span: UTC moments, the first inclusive, the second exclusive.
        models: their name of a model -> ours.
        columns: the columns of `reading` that are wanted beside its key.

    Yields:
        At least one frame. One row per call, in order of time and key: the columns of `reading`, `ABOUT`, and of
        `priced_amount` its amounts, currency, status and price_id. `at` is when the attempt arrived, or the begin of
        its day; `ended` when it was over; `failed` that it was answered with an error, `superseded` that a later try
        of the same request followed on one that had no whole answer.
    """
    chosen = _chosen(lake, provider, span, contradictory=False)
    attempts = _attempts(lake, span)
    wanted = tuple(dict.fromkeys((*REPORT, "day", "provider", "model", "verdict", *columns)))
    for days in _batches(chosen):
        own = chosen.filter(pl.col("day").is_between(*days)).select(REPORT).lazy()
        rows = lake.scan("reading", first=days[0], last=days[1], columns=list(wanted))
        known = rows.join(own, on=list(REPORT), how="semi").join(attempts.lazy(), on=list(KEY), how="left")
        joined = known.join(_priced(lake, days), on=list(REPORT), how="left").with_columns(
            _at(),
            undated=pl.col("arrived_at").is_null(),
            tenant=pl.col("tenant").fill_null(UNASSIGNED),
            failed=pl.col("attempt_status").is_in(_FAILED).fill_null(value=False),
            superseded=pl.col("superseded").fill_null(value=False),
            named=_named(models),
        )
        inside = joined.filter(pl.col("at") >= span[0], pl.col("at") < span[1])
        timed = inside.with_columns(ended=pl.col("at") + pl.duration(microseconds=pl.col("total_us").fill_null(0)))
        yield timed.sort("at", *KEY, "child").collect(engine="streaming")


def contradictory_calls(lake: Records, provider: str, span: Span, models: Mapping[str, str]) -> pl.DataFrame:
    """The calls of a span of which every report contradicts itself: they have no counts and are in no sum.

    Returns:
        attempt_hi, attempt_lo, at, day, provider, model, named, tenant, failed, segment, and `most`: more tokens than
        the leaves of their report add up to, they cannot have; null where no leaf is known.
    """
    none = pl.DataFrame(schema=_CONTRADICTORY)
    around = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    read = lake.scan("reading", first=around[0], last=around[1], columns=["provider", "verdict", "report", "day"])
    spoiled = (pl.col("provider") == provider) & (pl.col("verdict") == str(Verdict.CONTRADICTORY))
    # As a rule there is none, and then nothing has to be chosen.
    if read.filter(spoiled).head(1).collect().is_empty():
        return none
    chosen = _chosen(lake, provider, span, contradictory=True)
    if chosen.is_empty():
        return none
    first, last = chosen["day"].min(), chosen["day"].max()
    assert isinstance(first, date) and isinstance(last, date)  # noqa: PT018
    names = [*REPORT, "day", "provider", "model", "segment"]
    rows = lake.scan("reading", first=first, last=last, columns=names)
    rows = rows.join(chosen.lazy().select(REPORT), on=list(REPORT), how="semi")
    leaves = lake.scan("usage_report", first=first, last=last, columns=[*REPORT, "leaf_integers"])
    counted = pl.col("leaf_integers").list.eval(pl.element().abs().cast(pl.Int128)).list.sum()
    most = leaves.with_columns(most=counted).group_by(REPORT).agg(
        most=pl.when(pl.col("most").is_not_null().any()).then(pl.col("most").sum())
    )  # fmt: skip
    joined = rows.join(most, on=list(REPORT), how="left").join(_attempts(lake, span).lazy(), on=list(KEY), how="left")
    told = joined.with_columns(
        _at(),
        tenant=pl.col("tenant").fill_null(UNASSIGNED),
        failed=pl.col("attempt_status").is_in(_FAILED).fill_null(value=False),
        named=_named(models),
        most=pl.when(pl.col("most").is_between(0, 2**63 - 1)).then(pl.col("most")).cast(pl.Int64),
    )
    inside = told.filter(pl.col("at") >= span[0], pl.col("at") < span[1])
    return inside.select(*_CONTRADICTORY).sort("at", *KEY).collect()


def _at() -> pl.Expr:
    midnight = pl.col("day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.coalesce("arrived_at", midnight).alias("at")


def _named(models: Mapping[str, str]) -> pl.Expr:
    return pl.col("model").replace(dict(models)) if models else pl.col("model")


def _chosen(lake: Records, provider: str, span: Span, *, contradictory: bool) -> pl.DataFrame:
    """The report that counts of each call: of the first source by name that has a readable one, the last revision."""
    first, last = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    read = lake.scan("reading", first=first, last=last, columns=[*REPORT, "day", "provider", "verdict"])
    # A repeated report is charged once.
    own = read.filter(pl.col("provider") == provider, pl.col("report") == 0)
    spoiled = pl.col("verdict") == str(Verdict.CONTRADICTORY)
    ordered = own.sort("source", "revision", descending=[True, False], maintain_order=True).drop("provider")
    rows = ordered.filter(~spoiled).unique(list(CALL), keep="last", maintain_order=True)
    if contradictory:
        bad = ordered.filter(spoiled).unique(list(CALL), keep="last", maintain_order=True)
        rows = bad.join(rows.select(CALL), on=list(CALL), how="anti")
    return rows.drop("verdict").collect(engine="streaming")


def _batches(chosen: pl.DataFrame) -> Iterator[tuple[date, date]]:
    """Days, first and last, that hold up to so many calls together; a day of no calls where there is none at all."""
    counted = chosen.group_by("day").len().sort("day").rows() or [(date(1970, 1, 1), 0)]
    first, held = counted[0][0], 0
    last = first
    for day, rows in counted:
        if held and held + rows > BATCH:
            yield first, last
            first, held = day, 0
        last, held = day, held + rows
    yield first, last


def _attempts(lake: Records, span: Span) -> pl.DataFrame:
    """What attempts say of themselves, sources merged: the first source by name that knows a thing gives it."""
    first, last = span[0].date() - timedelta(days=1), span[1].date() + timedelta(days=1)
    rows = lake.scan("attempt", first=first, last=last, columns=list(_ATTEMPT))
    latest = rows.sort("source", "revision").unique([*KEY, "source"], keep="last", maintain_order=True).collect()
    merged = latest.drop("source", "revision", "undated").rename({"status": "attempt_status"})
    if latest.select(pl.struct(KEY).n_unique()).item() < latest.height:
        merged = _merged(latest)
    latest_try = pl.col("attempt_number").max().over("request_hi", "request_lo")
    later = pl.col("request_hi").is_not_null() & (pl.col("attempt_number") < latest_try)
    unfinished = pl.col("attempt_status").is_in(_UNFINISHED)
    return merged.with_columns(superseded=(later & unfinished).fill_null(value=False)).drop(
        "request_hi", "request_lo", "attempt_number"
    )


def _merged(latest: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("status").filter(pl.col("status") != str(AttemptStatus.UNKNOWN))
    owned = pl.col("tenant").filter(pl.col("tenant") != UNASSIGNED)
    names = ("arrived_at", "total_us", "request_hi", "request_lo", "attempt_number", "tier_requested")
    return latest.group_by(KEY, maintain_order=True).agg(
        pl.coalesce(known.first(), pl.col("status").first()).alias("attempt_status"),
        pl.coalesce(owned.first(), pl.col("tenant").first()).alias("tenant"),
        *(pl.col(name).drop_nulls().first() for name in names),
    )


def _priced(lake: Records, days: tuple[date, date]) -> pl.LazyFrame:
    names = (*AMOUNTS, "amount", "amount_fees", "currency", "status", "price_id")
    rows = lake.scan("priced_amount", first=days[0], last=days[1], columns=[*REPORT, "basis", *names])
    of_usage = rows.filter(pl.col("basis") == str(PriceBasis.REPORTED)).drop("basis")
    return of_usage.rename({"status": "price_status"}).unique(list(REPORT), keep="any")
