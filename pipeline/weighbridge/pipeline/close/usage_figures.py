"""Figures of usage and money: what was reported, read and priced, a few days at a time, and its margins.

A report counts on its own day, an attempt once on the first of its days in the month. Tenant and task are those of the
attempt a report is about, whatever day that lies on. Of each report the last revision counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import polars as pl

from weighbridge.pipeline.close.exact import added, amount, count, tokens
from weighbridge.pipeline.close.figures import Entry, entries
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.enumerations import AttemptStatus, PriceBasis, PriceStatus, Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES
from weighbridge.schemas.tables import UNASSIGNED

UNKNOWN = "unknown"
REPORT = (*KEY, "source", "child", "report")
CLASSES = tuple(str(name) for name in REPORTED_CLASSES)
CELLS = tuple(cell.name for cell in CROSSED_CELLS)
AMOUNTS = tuple(f"amount_{name}" for name in CLASSES)
CELL = ("provider", "model", "tenant", "task")
ENGINE = ("input_computed", "output_computed", "output_delivered", "attended", "input_recounted", "output_recounted")
MARGINS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ()),
    ("_by_provider", ("provider",)),
    ("_by_model", ("provider", "model")),
    ("_by_tenant", ("tenant",)),
    ("_by_task", ("task",)),
    ("_by_cell", CELL),
)
_TOTALS = {"input_tokens": "input_total", "output_tokens": "output_total", "tokens": "total"}
_NAMES = ("provider", "model_served", "model_requested", "tenant", "task", "status")
_ATTEMPT_READ = (*KEY, "day", "source", "revision", *_NAMES, *ENGINE)
# What a price hangs on beside the counts: the terms a report was served on, and what it used that is charged by use.
TERMS = ("service_tier", "batch", "region", "fee_kinds", "fee_counts")
# Words of a name column that say nothing, so that another source's word is taken instead.
_BLANK = (UNASSIGNED, str(AttemptStatus.UNKNOWN))


def sections(month: Month) -> dict[str, list[Entry]]:
    """The sections `usage`, `money`, `verdicts` and `attempts` with their margins."""
    usage, money, verdicts, attempts = [], [], [], []
    for days in [*month.batches()] or [[]]:
        place = Batch(month, days)
        reports = place.reports()
        usage.append(_usage(reports))
        money.append(_money(reports))
        verdicts.append(_verdicts(reports))
        attempts.append(_attempts(place.attempts()))
    out: dict[str, list[Entry]] = {}
    for margin, by in MARGINS:
        out[f"usage{margin}"] = entries(added(usage, by), by)
        out[f"money{margin}"] = entries(added(money, (*by, "currency", "status")), (*by, "currency", "status"))
        out[f"attempts{margin}"] = entries(added(attempts, by), by)
    out["usage_by_day"] = entries(added(usage, ("day",)), ("day",))
    out["money_by_day"] = entries(added(money, ("day", "currency", "status")), ("day", "currency", "status"))
    out["attempts_by_day"] = entries(added(attempts, ("day",)), ("day",))
    out["attempts_by_status"] = entries(added(attempts, ("provider", "status")), ("provider", "status"))
    out["verdicts"] = entries(added(verdicts, ("provider", "verdict")), ("provider", "verdict"))
    return out


class Batch:
    """Some days of a month: their reports with the amounts and the attempts they belong to."""

    def __init__(self, month: Month, days: Sequence[date]) -> None:
        """Name some days; nothing is read yet."""
        self.month = month
        self.days = list(days)
        self.moved = month.placement.moved.select(KEY)

    def reports(self) -> pl.DataFrame:
        """The reports of these days, last revisions, with their amounts and the names of their attempts."""
        about = ("day", "revision", "segment", "provider", "model", "verdict")
        wanted = [*REPORT, *about, *CLASSES, *CELLS, *_TOTALS.values(), *TERMS]
        priced = [*REPORT, "day", "revision", "basis", "price_id", "currency", "status", "amount", *AMOUNTS]
        readings = self._latest("reading", wanted)
        amounts = self._latest("priced_amount", priced).filter(pl.col("basis") == str(PriceBasis.REPORTED))
        held = readings.join(amounts.drop("day", "revision", "basis"), on=list(REPORT), how="left")
        named = held.join(self._names().lazy(), on=list(KEY), how="left")
        return named.with_columns(
            pl.col("provider", "model").fill_null(UNKNOWN), pl.col("tenant", "task").fill_null(UNASSIGNED)
        ).collect(engine="streaming")

    def attempts(self) -> pl.DataFrame:
        """The attempts whose first day in the month is one of these, sources merged."""
        own = _merged(self._rows("attempt", _ATTEMPT_READ).join(self.moved.lazy(), on=list(KEY), how="anti"))
        first, last = ends(self.month.period)
        inside = self.month.lake.scan("attempt", first=first, last=last, columns=_ATTEMPT_READ)
        guests = _merged(inside.join(self.moved.lazy(), on=list(KEY), how="semi"))
        return pl.concat([own, guests.filter(pl.col("day").is_in(self.days))])

    def _names(self) -> pl.DataFrame:
        """Tenant and task of the attempts of these days, and of those that lie on several."""
        own = _merged(self._rows("attempt", _ATTEMPT_READ).join(self.moved.lazy(), on=list(KEY), how="anti"))
        away = self.month.lake.scan("attempt", columns=_ATTEMPT_READ)
        guests = _merged(away.join(self.moved.lazy(), on=list(KEY), how="semi"))
        return pl.concat([own, guests]).select(*KEY, "tenant", "task")

    def _rows(self, table: str, columns: Sequence[str]) -> pl.LazyFrame:
        if not self.days:
            return self.month.lake.scan(table, columns=columns).clear().lazy()
        rows = self.month.lake.scan(table, first=min(self.days), last=max(self.days), columns=columns)
        return rows.filter(pl.col("day").is_in(self.days))

    def _latest(self, table: str, columns: Sequence[str]) -> pl.LazyFrame:
        """The last revisions. What was revised anywhere in the month is found first: it is little, if anything."""
        first, last = ends(self.month.period)
        revised = (
            self.month.lake.scan(table, first=first, last=last, columns=[*REPORT, "revision"])
            .filter(pl.col("revision") > 0)
            .group_by(REPORT)
            .agg(_last=pl.col("revision").max())
            .collect(engine="streaming")
        )
        rows = self._rows(table, columns)
        if revised.is_empty():
            return rows
        held = rows.join(revised.lazy(), on=list(REPORT), how="left")
        return held.filter(pl.col("revision") == pl.coalesce("_last", "revision")).drop("_last")


def _merged(rows: pl.LazyFrame) -> pl.DataFrame:
    """One row per attempt: of each figure the first source that has it, of each name the first that says something."""
    held = rows.collect(engine="streaming")
    if held["revision"].max():
        held = held.sort("revision").group_by(*KEY, "source").last()
    several = held.select(KEY).is_duplicated()
    alone = held.filter(~several).select(*KEY, "day", *_NAMES, *ENGINE)
    said = [pl.col(name).filter(~pl.col(name).is_in(_BLANK)).drop_nulls() for name in _NAMES]
    crowd = (
        held.filter(several)
        .sort("source")
        .group_by(KEY)
        .agg(
            pl.col("day").min(),
            *(pl.coalesce(known.first(), pl.col(name).first()) for name, known in zip(_NAMES, said, strict=True)),
            *(pl.col(name).drop_nulls().first() for name in ENGINE),
        )
    )
    return pl.concat([alone, crowd])


def readable() -> pl.Expr:
    """Whether the counts of a report can be used."""
    return pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])


def counted(reports: pl.DataFrame) -> pl.DataFrame:
    """Reports without the counts that cannot be used."""
    return reports.with_columns(pl.when(readable()).then(pl.col(n)) for n in (*CLASSES, *CELLS, *_TOTALS.values()))


def _usage(reports: pl.DataFrame) -> pl.DataFrame:
    return (
        counted(reports)
        .group_by(*CELL, "day")
        .agg(
            reports=pl.len().cast(pl.Int64),
            reports_read=count(readable()),
            **{name: tokens(pl.col(column)) for name, column in _TOTALS.items()},
            **{name: tokens(pl.col(name)) for name in (*CLASSES, *CELLS)},
        )
    )


def _money(reports: pl.DataFrame) -> pl.DataFrame:
    """Amounts by currency and price status; what is not priced has none."""
    priced = pl.col("status") == str(PriceStatus.PRICED)
    known = reports.filter(pl.col("status").is_not_null())
    return known.group_by(*CELL, "day", "currency", "status").agg(
        reports=pl.len().cast(pl.Int64),
        **{name: amount(pl.when(priced).then(pl.col(name))) for name in ("amount", *AMOUNTS)},
    )


def _verdicts(reports: pl.DataFrame) -> pl.DataFrame:
    return reports.group_by("provider", "verdict").agg(reports=pl.len().cast(pl.Int64))


def _attempts(attempts: pl.DataFrame) -> pl.DataFrame:
    named = attempts.with_columns(
        provider=pl.col("provider").fill_null(UNKNOWN),
        model=pl.coalesce("model_served", "model_requested", pl.lit(UNKNOWN)),
    )
    return named.group_by(*CELL, "day", "status").agg(
        attempts=pl.len().cast(pl.Int64), **{name: tokens(pl.col(name)) for name in ENGINE}
    )
