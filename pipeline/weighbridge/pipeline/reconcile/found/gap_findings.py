"""Findings about gaps: one for every cause, for what no cause explains, and for reports of attempts nobody saw."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.explain.cures import cure_of
from weighbridge.pipeline.reconcile.found.tally import Kind, added, findings, tallied
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match.match import EXCEEDED
from weighbridge.schemas.enumerations import Confidence, Severity, Status
from weighbridge.schemas.finding import Finding

CAUSED_BY = ("cause", "provider", "model")
UNEXPLAINED_BY = ("provider", "model", "direction")
_SUBJECT = ("provider", "model")

UNEXPLAINED = Kind(
    code="unexplained_gap",
    severity=Severity.ERROR,
    unit="tokens",
    confidence=Confidence.NONE,
    cure="Open the attempts with `weighbridge explain`, compare both sides, and dispute or declare the difference.",
)
UNMATCHED = Kind(
    code="unmatched_report",
    severity=Severity.WARNING,
    unit="reports",
    confidence=Confidence.NONE,
    cure="Find who sent these calls (another key, host or tool), or attach the agent there; nobody here saw them.",
)
OPEN = Kind(
    code="provisional_amounts",
    severity=Severity.INFO,
    unit="tokens",
    cure="Nothing to do yet: the missing side may still come; reconcile again after the lateness that is set for it.",
    at_stake=False,
)
OVERDRAWN = Kind(
    code="unmatched_report",
    severity=Severity.WARNING,
    unit="reports",
    cause="capture_gap",
    confidence=Confidence.AMBIGUOUS,
    cure="The agent lost fewer attempts than the reports nobody saw: look for calls that bypass it on these days.",
)

KINDS = (UNEXPLAINED, UNMATCHED, OVERDRAWN, OPEN)


def caused(parts: pl.DataFrame) -> pl.DataFrame:
    """The tally of the causes of some batch. Expected is what would have been reported without the cause."""
    stated = pl.col("reported").fill_null(0)
    rows = parts.lazy().with_columns(
        expected=stated - pl.col("tokens"), observed=pl.when(pl.col("tokens").is_not_null()).then(stated)
    )
    return tallied(rows, CAUSED_BY, once=True)


def unexplained(reconciled: pl.DataFrame) -> pl.DataFrame:
    """The tally of the residuals of some batch; reports without an attempt are another finding."""
    left = pl.col("residual").fill_null(0) != 0
    rows = reconciled.lazy().filter(left & pl.col("observed").is_not_null())
    stated = pl.col("reported").fill_null(0)
    money = {
        name: pl.col(f"residual_{told}")
        for name, told in (("amount", "amount"), ("low", "low"), ("high", "high"), ("currency", "currency"))
    }
    return tallied(
        rows.drop("confidence").with_columns(expected=stated - pl.col("residual"), observed=stated, **money),
        UNEXPLAINED_BY,
    )


def open_amounts(reconciled: pl.DataFrame) -> pl.DataFrame:
    """The tally of what some batch still waits for, by provider and model."""
    rows = reconciled.lazy().filter(pl.col("status") == str(Status.PROVISIONAL)).drop("confidence")
    return tallied(rows.with_columns(expected=pl.col("observed"), observed=pl.col("reported")), _SUBJECT, once=True)


def of_open(tallies: Sequence[pl.DataFrame], period: str) -> list[Finding]:
    """One finding per provider and model of which something may still come."""
    return findings(OPEN, added(tallies, _SUBJECT), _SUBJECT, period) if tallies else []


def of_causes(tallies: Sequence[pl.DataFrame], period: str) -> list[Finding]:
    """One finding per cause, provider and model."""
    if not tallies:
        return []
    whole = added(tallies, CAUSED_BY)
    out = []
    for cause in all_causes():
        own = whole.filter(pl.col("cause") == cause.code)
        for provider in own["provider"].unique(maintain_order=True):
            kind = Kind(
                code=cause.code,
                severity=cause.severity,
                unit="tokens",
                cure=cure_of(cause, provider),
                cause=cause.code,
                at_stake=cause.at_stake,
            )
            out += findings(kind, own.filter(pl.col("provider").eq_missing(pl.lit(provider))), _SUBJECT, period)
    return out


def of_residuals(tallies: Sequence[pl.DataFrame], period: str) -> list[Finding]:
    """One finding per provider, model and direction."""
    return findings(UNEXPLAINED, added(tallies, UNEXPLAINED_BY), UNEXPLAINED_BY, period) if tallies else []


def of_unmatched(unmatched: pl.DataFrame, unseen: pl.DataFrame, watched: set[str], period: str) -> list[Finding]:
    """Reports of attempts that nobody saw.

    Where an agent lost attempts, but fewer than there are such reports: one finding per stretch of loss, with both
    numbers. Where none was lost: one per provider and model, if any attempt of that provider was observed that month
    (else nothing here ever looks at it, and there is nothing to find).

    Args:
        unmatched: attempt_lo, attempt_hi, day, provider, model, amount, currency of reports without an attempt.
        unseen: `match.held_against` of the month.
        watched: providers of which attempts were observed.
    """
    rows = unmatched.join(unseen.select(*KEY, "loss", "cover", "lost"), on=list(KEY), how="left")
    stray = rows.filter(pl.col("loss").is_null() & pl.col("provider").is_in(list(watched)))
    one = pl.lit(1, dtype=pl.Int64)
    found = findings(
        UNMATCHED, tallied(stray.lazy().with_columns(expected=one * 0, observed=one), _SUBJECT), _SUBJECT, period
    )
    beyond = rows.filter(pl.col("loss") == EXCEEDED)
    over = tallied(beyond.lazy().with_columns(observed=one), ("cover", "lost")).with_columns(expected="lost")
    named = over.with_columns(
        loss=pl.col("first_day").dt.to_string("%Y-%m-%d") + "/" + pl.col("last_day").dt.to_string("%Y-%m-%d")
    )
    return found + findings(OVERDRAWN, named, ("loss",), period)
