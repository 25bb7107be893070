"""Rows of the table `baseline` as findings of a month: one per series and driver, for as many days as it was so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from weighbridge.pipeline.baseline.own_rows import FEWEST
from weighbridge.pipeline.baseline.usage import SERIES
from weighbridge.schemas.enumerations import BaselineMethod, Confidence, Driver, FindingOrigin, Measure, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding

EXCEEDED = "baseline_exceeded"
TASK_BAND = "task_band_missed"
PROMISE = "promise_not_kept"
TOGETHER = "days_go_together"
CODES = (EXCEEDED, TASK_BAND, PROMISE, TOGETHER)

CURES: Mapping[Driver, str] = {
    Driver.REQUEST_VOLUME: "Ask who sends more requests of this task, and whether it is wanted; "
    "then waive it, or set a limit at the gateway.",
    Driver.KEY_BURST: "Look at what this key or route sends; revoke it if nobody knows of it, else set a limit for it.",
    Driver.MODEL_MIX: "Requests of this task go to another model, version or strategy at a higher cost: "
    "check that the change was meant, or route them back.",
    Driver.RETRIES: "Look at why first tries fail and how clients try again: timeouts that are too short, no backoff.",
    Driver.CACHE_SHARE: "More of each prompt is paid in full: see what changed at its beginning (a time, an id, "
    "the order of tools) or in the lifetime of the cache.",
    Driver.INPUT_PER_REQUEST: "Compare the prompt template and the history sent with those of the days before.",
    Driver.OUTPUT_PER_REQUEST: "Compare model settings and output limits with those of the days before; "
    "answers got longer for the same requests.",
}
_TASK_CURE = (
    "Mend what the requests of this task take, or declare what they take under [baseline.tasks] of the settings."
)
_PROMISE_CURE = (
    "Limits of this cell were exceeded on more days than was promised, so its days are judged as wholes; "
    "look for an incident in its reference window, and confirm or waive it."
)
_TOGETHER_CURE = (
    "Rows of one day have something in common here (sessions, releases, batches, a season nobody named), so several "
    "count as one, or days are judged as wholes; nothing to do unless it is news."
)
_UNITS = {Measure.REQUESTS: "requests", Measure.RETRIES: "attempts"}
# Cells with rows enough of which not every row counts for itself.
BY_DAYS = ((pl.col("method") == str(BaselineMethod.SIBLINGS)) & (pl.col("rows") >= FEWEST)) | (pl.col("cluster") > 1)
TOLD = pl.col("reported") | ~pl.col("kept").fill_null(value=True) | BY_DAYS
READ = (
    *("day", *SERIES, "measure", "token_class", "method", "driver", "key", "reported", "kept"),
    *("rows", "day_rows", "lower", "upper", "median", "expected", "observed", "amount", "currency"),
    *("test_days", "test_alarms", "dispersion", "cluster", "evidence"),
)


def findings(rows: pl.DataFrame) -> list[Finding]:
    """The findings of rows of `baseline`, in a fixed order.

    Args:
        rows: rows with at least the columns `READ`, of any days; those that are not `TOLD` make no finding.
    """
    dated = rows.with_columns(period=pl.col("day").dt.strftime("%Y-%m")).sort(
        "period", *SERIES, "measure", "token_class", "day", nulls_last=True
    )
    hits = dated.filter("reported")
    declared = pl.col("method") == str(BaselineMethod.TASK_TABLE)
    found = [
        *_exceeded(hits.filter(~declared)),
        *_missed(hits.filter(declared)),
        *_broken(dated),
        *_together(dated),
    ]
    return sorted(found, key=lambda finding: finding.finding_id)


def exceeded_id(row: Mapping[str, Any], period: str) -> str:
    """The id of the finding that a reported row belongs to."""
    return Finding(
        code=EXCEEDED, severity=Severity.INFO, period=period, subject=_subject(row), rows=0, cure="-"
    ).finding_id


def _exceeded(hits: pl.DataFrame) -> Iterator[Finding]:
    for rows in hits.partition_by("period", *SERIES, "driver", "key", maintain_order=True):
        first: dict[str, Any] = rows.row(0, named=True)
        amount, currency = _money(rows)
        expected, observed = _total(rows["expected"]), _total(rows["observed"])
        yield Finding(
            code=EXCEEDED,
            severity=Severity.NOTICE if amount is None else Severity.WARNING,
            period=first["period"],
            subject=_subject(first),
            rows=int(rows.group_by("day").agg(pl.col("day_rows").max())["day_rows"].sum()),
            expected=expected,
            observed=observed,
            difference=None if expected is None or observed is None else observed - expected,
            unit=_UNITS.get(Measure(first["measure"]), "tokens"),
            cause=first["driver"],
            confidence=Confidence.PROBABLE,
            amount=amount,
            currency=currency,
            evidence=tuple(sorted(set(rows["evidence"].explode().drop_nulls().to_list()))[:EVIDENCE_ROWS]),
            first_day=rows["day"].min(),  # type: ignore[arg-type]
            last_day=rows["day"].max(),  # type: ignore[arg-type]
            cure=CURES[Driver(first["driver"])],
            origin=FindingOrigin.BASELINE,
        )


def _money(rows: pl.DataFrame) -> tuple[Decimal | None, str | None]:
    """All classes of a direction carry the cost of the direction, so it counts once a day."""
    days = rows.group_by("day").agg(pl.col("amount").first(), pl.col("currency").first())
    currencies = days["currency"].unique().to_list()
    if days["amount"].null_count() or len(currencies) != 1:
        return None, None
    return days["amount"].sum(), currencies[0]  # type: ignore[return-value]


def _missed(hits: pl.DataFrame) -> Iterator[Finding]:
    """The last day of the month tells where the median lies now."""
    for rows in hits.partition_by("period", *SERIES, "measure", maintain_order=True):
        last: dict[str, Any] = rows.row(rows.height - 1, named=True)
        nearest = last["upper"] if last["median"] > last["upper"] else last["lower"]
        yield Finding(
            code=TASK_BAND,
            severity=Severity.NOTICE,
            period=last["period"],
            subject={**_named(last), "direction": last["measure"]},
            rows=last["rows"] + last["day_rows"],
            expected=nearest,
            observed=last["median"],
            difference=last["median"] - nearest,
            first_day=rows["day"].min(),  # type: ignore[arg-type]
            last_day=last["day"],
            cure=_TASK_CURE,
            origin=FindingOrigin.BASELINE,
        )


def _broken(rows: pl.DataFrame) -> Iterator[Finding]:
    doubted = rows.filter(~pl.col("kept").fill_null(value=True))
    for of_cell in doubted.partition_by("period", *SERIES, "measure", "token_class", maintain_order=True):
        last: dict[str, Any] = of_cell.row(of_cell.height - 1, named=True)
        allowed = last["test_days"] * 5 // 100
        yield Finding(
            code=PROMISE,
            severity=Severity.INFO,
            period=last["period"],
            subject={**_named(last), "measure": last["token_class"] or last["measure"]},
            rows=last["rows"],
            expected=allowed,
            observed=last["test_alarms"],
            difference=last["test_alarms"] - allowed,
            unit="days",
            first_day=of_cell["day"].min(),  # type: ignore[arg-type]
            last_day=last["day"],
            cure=_PROMISE_CURE,
            origin=FindingOrigin.BASELINE,
        )


def _together(rows: pl.DataFrame) -> Iterator[Finding]:
    """One for every task and class: how far days scatter, a hundred per cent being what chance makes of rows."""
    shared = rows.filter(BY_DAYS & pl.col("kept").fill_null(value=False))
    for of_task in shared.partition_by("period", "task", "measure", "token_class", maintain_order=True):
        first: dict[str, Any] = of_task.row(0, named=True)
        last_day = of_task["day"].max()
        last = of_task.filter(pl.col("day") == last_day)
        scatter = round(100 * float((last["dispersion"] * last["test_days"]).sum()) / int(last["test_days"].sum()))
        yield Finding(
            code=TOGETHER,
            severity=Severity.INFO,
            period=first["period"],
            subject={"task": first["task"], "measure": first["token_class"] or first["measure"]},
            rows=int(last["rows"].sum()),
            expected=100,
            observed=scatter,
            difference=scatter - 100,
            unit="percent",
            confidence=Confidence.PROBABLE,
            first_day=of_task["day"].min(),  # type: ignore[arg-type]
            last_day=last_day,  # type: ignore[arg-type]
            cure=_TOGETHER_CURE,
            origin=FindingOrigin.BASELINE,
        )


def _subject(row: Mapping[str, Any]) -> dict[str, str]:
    subject = {**_named(row), "driver": str(row["driver"])}
    return subject if row["key"] is None else {**subject, "key": row["key"]}


def _named(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: row[name] for name in SERIES if row[name] is not None}


def _total(values: pl.Series) -> int | None:
    return None if values.null_count() else int(values.sum())
