"""Findings about usage reports: what they say, what they were read as, and what they cost.

Each function that makes findings of one code is named after that code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.found import flag_facts, limited, reported_costs
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.pipeline.reconcile.found.tally import Kind, findings, tallied
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match.reports import MISSING_FLAG
from weighbridge.pipeline.reconcile.recount.recount_constants import moved
from weighbridge.schemas.enumerations import Confidence, PriceStatus, Severity, Verdict
from weighbridge.schemas.finding import CODE, Finding

_REPORT = (*KEY, "source", "child", "report")
_SAID = ("provider", "api", "model")
# Why tokens have no price, and what to do about it.
_NO_PRICE: dict[str, str] = {
    str(PriceStatus.NO_PRICE): (
        "Add a price of this model and day to your own price file; until then what these tokens cost is unknown."
    ),
    str(PriceStatus.CLASS_UNPRICED): (
        "The price book has this model, but no price of one of its token classes: add that to your own price file; "
        "until then what these tokens cost is unknown."
    ),
    str(PriceStatus.SPLIT_UNKNOWN): (
        "The source tells totals without cache details, and cached tokens have a price of their own, so no price file "
        "helps: have it write the details (LiteLLM: metadata.usage_object), or, where nothing is cached, say so in the "
        "mapping file (docs/importing.md)."
    ),
}


def contradictory_usage(asked: Asked) -> Iterator[Finding]:
    """Reports whose figures contradict each other under every reading."""
    kind = Kind(
        code="contradictory_usage",
        severity=Severity.WARNING,
        unit="reports",
        cure="Do not pay these reports as they stand: their figures contradict each other; ask the provider for them.",
    )
    yield from _of_verdict(asked, kind, Verdict.CONTRADICTORY)


def unknown_usage(asked: Asked) -> Iterator[Finding]:
    """Reports with counts that no dialect reads."""
    kind = Kind(
        code="unknown_usage",
        severity=Severity.NOTICE,
        unit="reports",
        cure="Add a dialect for this API, or import it with a mapping file; its leaves are kept and are read then.",
    )
    yield from _of_verdict(asked, kind, Verdict.UNKNOWN)


def assumed_usage(asked: Asked) -> Iterator[Finding]:
    """Reports that more than one reading fits."""
    kind = Kind(
        code="assumed_usage",
        severity=Severity.INFO,
        unit="reports",
        confidence=Confidence.PROBABLE,
        cure="These reports fit several conventions; the documented one was taken. Nothing to do unless it changed.",
    )
    yield from _of_verdict(asked, kind, Verdict.ASSUMED)


def _of_verdict(asked: Asked, kind: Kind, verdict: Verdict) -> Iterator[Finding]:
    rows = asked.month.dated("reading", [*KEY, "day", *_SAID, "verdict", "flags"])
    missing = pl.col("flags").list.contains(MISSING_FLAG).fill_null(value=False)
    mine = rows.filter((pl.col("verdict") == str(verdict)) & ~missing)
    yield from findings(kind, tallied(mine, _SAID), _SAID, asked.month.period)


def flags(asked: Asked) -> Iterator[Finding]:
    """What the reading of reports noticed, one finding per flag."""
    rows = asked.month.dated("reading", [*KEY, "day", *_SAID, "flags"])
    noticed = rows.filter(pl.col("flags").list.len() > 0).explode("flags").rename({"flags": "flag"})
    whole = tallied(noticed.filter(~pl.col("flag").is_in(list(flag_facts.ELSEWHERE))), ("flag", *_SAID))
    for flag in sorted(whole["flag"].unique()):
        if CODE.fullmatch(flag):
            own = whole.filter(pl.col("flag") == flag)
            yield from findings(flag_facts.kind_of(flag), own, _SAID, asked.month.period)


def report_revised(asked: Asked) -> Iterator[Finding]:
    """Reports that were replaced by later ones of the same key."""
    kind = Kind(
        code="report_revised",
        severity=Severity.INFO,
        unit="reports",
        cure="The last revision counts and all are kept; ask the sender why a report changed, if the month was closed.",
    )
    by = ("source", *_SAID)
    rows = asked.month.dated("reading", [*KEY, "day", *by, "revision"]).filter(pl.col("revision") > 0)
    yield from findings(kind, tallied(rows, by), by, asked.month.period)


def price_unknown(asked: Asked) -> Iterator[Finding]:
    """Tokens that have no price."""
    kind = Kind(
        code="price_unknown",
        severity=Severity.NOTICE,
        unit="tokens",
        cure="",
    )
    bare = asked.month.dated("priced_amount", [*_REPORT, "day", "status"])
    bare = bare.filter(pl.col("status").is_in(list(_NO_PRICE)))
    if bare.head(1).collect().is_empty():
        return
    columns = [*_REPORT, "provider", "model", "input_total", "output_total"]
    rows = bare.join(asked.month.dated("reading", [*columns, "day"]).drop("day"), on=list(_REPORT), how="inner")
    by = ("provider", "model", "status")
    totals = ("input_total", "output_total")
    counted = [pl.when(pl.col(name).is_between(-LARGEST, LARGEST)).then(name).otherwise(0) for name in totals]
    tally = tallied(rows.with_columns(observed=pl.sum_horizontal(counted)), by)
    for status, cure in _NO_PRICE.items():
        own = tally.filter(pl.col("status") == status)
        yield from findings(replace(kind, cure=cure), own, by, asked.month.period)


def implausible_price(asked: Asked) -> Iterator[Finding]:
    """Reports with a cost beyond what so many tokens can have cost."""
    highest = reported_costs.dearest(asked.month)
    rows = reported_costs.implausible_costs(asked.month, highest)
    if rows.is_empty() or highest is None:
        return
    per_million = f"{format(highest.normalize(), 'f')} {reported_costs.CURRENCY} a million"
    kind = Kind(
        code="implausible_price",
        severity=Severity.WARNING,
        unit="reports",
        confidence=Confidence.PROBABLE,
        cure=f"At the dearest price of the book, {per_million}, these tokens cost less than the log says, or it says "
        "less than nothing: look whether it counts cents or billionths, or has fees in it; no amount here rests on it.",
    )
    counted = rows.lazy().with_columns(observed=pl.lit(1, dtype=pl.Int64))
    yield from findings(kind, tallied(counted, reported_costs.BY), reported_costs.BY, asked.month.period)


def output_limit_exceeded(asked: Asked) -> Iterator[Finding]:
    """Reports of more output than was asked for at most."""
    kind = Kind(
        code="output_limit_exceeded",
        severity=Severity.NOTICE,
        unit="tokens",
        cure="Limit reasoning by a parameter of its own where the API has one; the limit asked for does not bind it.",
    )
    yield from findings(kind, tallied(limited.reports(asked.month), limited.BY), limited.BY, asked.month.period)


def recount_constant_moved(asked: Asked) -> Iterator[Finding]:
    """Recounts and reports that differ by another number of tokens than in the months before."""
    yield from moved(asked.month.lake.scan("recount_constant").collect(), asked.month.period)
