"""The answers of some days as rows of an audit: gaps and sizes by measure, with the evidence beside them.

    G1  computed by our own engine: what reconciliation could not explain is the gap
    G2  recounted text and the reasoning that is reported beside it: that the total is accounted for
    G3  recounted text alone
    G4  hidden reasoning beside what calibration predicts

Our own omissions are no gaps: where a recount says which tokens of template or tokenizer it left out, they are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.audit.cell import CELL
from weighbridge.pipeline.audit.weighings import UNKNOWN
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AttemptStatus, AuditMeasure, Direction, Ended, Grade, Verdict

BATCH = 600_000
KEY = ("attempt_lo", "attempt_hi")
# A report is booked when its answer ends, or when its log is written.
_LATE = timedelta(days=3)
_ATTEMPT = (
    *(*KEY, "source", "revision", "arrived_at", "status", "tokenizer", "template", "max_tokens", "messages", "n"),
    *("cached_local", "cached_external", "reasoning_computed", "rejected"),
    *("input_recounted", "output_recounted", "recount_template", "recount_special"),
    *("recount_has_template", "recount_has_special", "script"),
)
_READING = (*KEY, "source", "child", "report", "revision", "verdict", "ended", "cache_read", "reasoning")
_RECONCILED = (
    *(*KEY, "day", "direction", "observer", "reporter", "provider", "api", "model", "grade"),
    *("observed", "reported", "gap", "residual"),
)
EVIDENCE = ("reported", "messages", "limit", "repeated", "missing", "rejected", "unseen_reasoning")


class Answers(NamedTuple):
    """Answers of some days.

    Attributes:
        rows: the columns of a cell, `day`, `arrived_at`, attempt_lo, attempt_hi, `gap`, `size` (of hidden reasoning:
            visible tokens), `EVIDENCE`; `in_order`.
        left_out: the columns of a cell, `day`, `pinned`, `incomplete`: answers that tell nothing.
    """

    rows: pl.DataFrame
    left_out: pl.DataFrame


def batches(lake: Lake, days: Sequence[date]) -> Iterator[list[date]]:
    """Days, in order, as many at a time as have about `BATCH` rows: memory is that of a batch."""
    rows, batch, held = lake.counts("reconciled"), list[date](), 0
    for day in days:
        if batch and held + rows.get(day, 0) > BATCH:
            yield batch
            batch, held = [], 0
        batch.append(day)
        held += rows.get(day, 0)
    if batch:
        yield batch


def answers_of(lake: Records, days: Sequence[date]) -> Answers:
    """The answers of these days, in their order."""
    first, last = days[0], days[-1]
    compared = lake.scan("reconciled", first=first, last=last, columns=list(_RECONCILED))
    compared = compared.filter(
        pl.col("day").is_in(list(days)), pl.col("gap").is_not_null(), pl.col("observed").is_not_null()
    )
    around = {"first": first - timedelta(days=1), "last": last + _LATE}
    seen = compared.join(_attempts(lake, around), on=list(KEY), how="left").join(
        _observers(lake, around), left_on=[*KEY, "observer"], right_on=[*KEY, "source"], how="left"
    )
    told = seen.join(_reports(lake, around), left_on=[*KEY, "reporter"], right_on=[*KEY, "source"], how="left")
    causes = _causes(lake, first, last)
    whole = told.join(causes, on=[*KEY, "direction"], how="left").with_columns(
        repeated=pl.col("repeated").fill_null(0), missing=pl.col("missing").fill_null(0)
    )
    every = pl.concat([_weighed(whole, measure) for measure in AuditMeasure]).collect(engine="streaming")
    ordered = in_order(every)
    kept = ordered.filter(~pl.col("is_pinned") & ~pl.col("is_incomplete"))
    left = ordered.group_by(*CELL, "day").agg(
        pinned=(pl.col("is_pinned") & ~pl.col("is_incomplete")).sum().cast(pl.Int64),
        incomplete=pl.col("is_incomplete").sum().cast(pl.Int64),
    )
    return Answers(kept.select(*CELL, "day", "arrived_at", *KEY, "gap", "size", *EVIDENCE), left)


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Answers as they are audited: by day, by arrival (unknown ones last), by key."""
    return rows.sort("day", "arrived_at", *KEY, nulls_last=True)


def _latest(rows: pl.LazyFrame, key: Sequence[str]) -> pl.LazyFrame:
    return rows.filter(pl.col("revision") == pl.col("revision").max().over(key))


def _attempts(lake: Records, around: dict[str, date]) -> pl.LazyFrame:
    """What any source says of an attempt."""
    rows = _latest(lake.scan("attempt", **around, columns=list(_ATTEMPT)), [*KEY, "source"])
    return rows.group_by(KEY).agg(
        pl.col("arrived_at").min(),
        limit=pl.col("max_tokens").max().cast(pl.Int64),
        messages=pl.col("messages").max().cast(pl.Int64),
        choices=pl.col("n").max().cast(pl.Int64),
        aborted=(pl.col("status") == str(AttemptStatus.ABORTED)).any(),
        rejected=pl.col("rejected").max(),
    )


def _observers(lake: Records, around: dict[str, date]) -> pl.LazyFrame:
    """What the source says that observed it."""
    rows = _latest(lake.scan("attempt", **around, columns=list(_ATTEMPT)), [*KEY, "source"])
    named = ("tokenizer", "template", "script", "recount_template", "recount_special", "recount_has_template")
    return rows.select(
        *(*KEY, "source", *named, "recount_has_special", "reasoning_computed", "input_recounted", "output_recounted"),
        cached=pl.col("cached_local") + pl.col("cached_external").fill_null(0),
    )


def _reports(lake: Records, around: dict[str, date]) -> pl.LazyFrame:
    """Reasoning and cached tokens of the first report; null where any part of it does not tell."""
    rows = _latest(lake.scan("reading", **around, columns=list(_READING)), [*KEY, "source", "child", "report"])
    read = pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])
    own = rows.filter(pl.col("report") == 0).with_columns(
        pl.when(read).then(pl.col(name)) for name in ("reasoning", "cache_read")
    )
    whole = [
        pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
        for name in ("reasoning", "cache_read")
    ]
    cut = pl.col("ended").is_in([str(Ended.CUT), str(Ended.ERROR)]).any()
    return own.group_by(*KEY, "source").agg(*whole, cut=cut)


def _causes(lake: Records, first: date, last: date) -> pl.LazyFrame:
    """What reconciliation is certain of."""
    rows = lake.scan("gap_cause", first=first, last=last, columns=[*KEY, "direction", "cause", "tokens"])
    own = rows.filter(pl.col("cause").is_in(["duplicate_report", "usage_missing"]))
    return own.group_by(*KEY, "direction").agg(
        repeated=pl.when(pl.col("cause") == "duplicate_report").then(pl.col("tokens")).sum(),
        missing=(pl.col("cause") == "usage_missing").sum().cast(pl.Int64),
    )


def _weighed(rows: pl.LazyFrame, measure: AuditMeasure) -> pl.LazyFrame:
    """The rows of one measure."""
    recount = pl.col("grade") == str(Grade.G3)
    missing = pl.col("missing") > 0
    output = measure in {AuditMeasure.OUTPUT, AuditMeasure.HIDDEN_REASONING}
    direction = Direction.OUTPUT if output else Direction.INPUT
    own = rows.filter(pl.col("direction") == str(direction))
    hidden = pl.when(recount & ~missing).then(pl.col("reasoning")).otherwise(0)
    reported = pl.col("reported").fill_null(0)
    several = recount & output & (pl.col("choices").fill_null(1) > 1)
    incomplete = pl.col("aborted").fill_null(value=False) | pl.col("cut").fill_null(value=False) | several
    grade, size, template = pl.col("grade"), pl.col("observed"), pl.lit(None, dtype=pl.String)
    match measure:
        case AuditMeasure.INPUT:
            size = pl.when(recount).then(size + _left_out("template") + _left_out("special")).otherwise(size)
            gap = pl.when(recount).then(reported - size).otherwise(pl.col("residual"))
            template = pl.when(recount).then(pl.col("template"))
        case AuditMeasure.OUTPUT:
            gap = pl.when(recount).then(reported - hidden - size).otherwise(pl.col("residual"))
            grade = pl.when(recount & (hidden > 0)).then(pl.lit(str(Grade.G2))).otherwise(grade)
            # A recount beside reasoning that nobody can tell apart says nothing.
            incomplete |= recount & ~missing & pl.col("reasoning").is_null()
        case AuditMeasure.HIDDEN_REASONING:
            own = own.filter(recount & ~missing & (pl.col("reasoning") > 0))
            gap, grade = pl.col("reasoning"), pl.lit(str(Grade.G4))
        case AuditMeasure.UNCACHED_INPUT:
            own = own.filter(pl.col("cached").is_not_null(), pl.col("cache_read").is_not_null(), ~recount)
            gap = pl.col("cached") - pl.col("cache_read")
    limit = pl.col("limit") if output else pl.lit(None, dtype=pl.Int64)
    pinned = (reported == limit).fill_null(value=False) & (measure is AuditMeasure.OUTPUT)
    unseen = pl.when(output & ~recount).then(pl.col("reasoning") - pl.col("reasoning_computed"))
    return own.select(
        *("provider", "api", "model", "day", "arrived_at", *KEY),
        measure=pl.lit(str(measure)),
        tokenizer=pl.col("tokenizer"),
        template=template,
        # Another tokenisation of a text misses more or fewer tokens by language; what an engine computed does not.
        script=pl.when(recount).then(pl.col("script")),
        grade=grade,
        gap=gap,
        size=size,
        reported=reported,
        messages=pl.col("messages").fill_null(UNKNOWN),
        limit=limit.fill_null(UNKNOWN),
        repeated=pl.col("repeated"),
        missing=missing,
        rejected=pl.col("rejected").fill_null(UNKNOWN) if output else pl.lit(UNKNOWN, dtype=pl.Int64),
        unseen_reasoning=unseen.fill_null(UNKNOWN),
        is_pinned=pinned,
        is_incomplete=incomplete,
    )


def _left_out(part: str) -> pl.Expr:
    """The tokens that a recount says it left out."""
    outside = ~pl.col(f"recount_has_{part}") & pl.col(f"recount_{part}").is_not_null()
    return pl.when(outside.fill_null(value=False)).then(pl.col(f"recount_{part}")).otherwise(0)
