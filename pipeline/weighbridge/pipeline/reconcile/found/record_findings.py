"""Findings about the records themselves: readings, prices, attempts, what could not be read, and what was lost.

Each function that makes findings of one code is named after that code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.found import announced, flag_facts, limited, quarantine, reported_costs
from weighbridge.pipeline.reconcile.found.tally import Kind, added, findings, tallied
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match import attempts, reports
from weighbridge.pipeline.reconcile.match.reports import MISSING_FLAG
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.reconcile.recount.recount_constants import moved
from weighbridge.schemas.enumerations import ChildKind, Confidence, GapReason, PriceStatus, Severity, Verdict
from weighbridge.schemas.finding import CODE, EVIDENCE_ROWS, Finding
from weighbridge.schemas.tables import UNASSIGNED

_REPORT = (*KEY, "source", "child", "report")
_SAID = ("provider", "api", "model")
# The source of logs that teams write themselves; of agents counts and ids need not agree, ids are a sample.
TOKEN_LOGS = "token-logs"  # noqa: S105 - a source, not a password
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
_NO_KEY = (pl.lit(None, dtype=pl.Int64).alias("attempt_lo"), pl.lit(None, dtype=pl.Int64).alias("attempt_hi"))


@dataclass(frozen=True, slots=True)
class Asked:
    """What findings about records are made from.

    Attributes:
        month: its rows.
        key_id: id of the installation's pseudonym key, null where it is not known here.
        ids_grace_days: how many of the newest days of the lake may still get token ids.
    """

    month: Month
    key_id: str | None = None
    ids_grace_days: int = announced.GRACE_DAYS


def of_records(asked: Asked) -> list[Finding]:
    """All of them."""
    return [finding for kind in _KINDS for finding in kind(asked)]


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


def implausible_count(asked: Asked) -> Iterator[Finding]:
    """Records with more tokens, either way, than any attempt can have; kept, and nothing is compared with them."""
    kind = Kind(
        code="implausible_count",
        severity=Severity.WARNING,
        unit="rows",
        cure="Look at these records at their source: no attempt has so many tokens; they were compared with nothing.",
    )
    for table, counts, model in (("reading", reports.COUNTS, "model"), ("attempt", attempts.COUNTS, "model_served")):
        columns = [*KEY, "day", "source", "provider", model]
        rows = asked.month.dated(table, [*columns, *counts]).filter(
            pl.any_horizontal(~pl.col(name).is_between(-LARGEST, LARGEST) for name in counts)
        )
        named = rows.select(columns).rename({model: "model"}, strict=False).with_columns(table=pl.lit(table))
        by = ("table", "source", "provider", "model")
        yield from findings(kind, tallied(named, by), by, asked.month.period)


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


def undated_records(asked: Asked) -> Iterator[Finding]:
    """Attempts whose record had no time."""
    kind = Kind(
        code="undated_records",
        severity=Severity.INFO,
        unit="attempts",
        cure="Export the time of each call; until then these attempts stand on the day that was named at ingest.",
    )
    rows = asked.month.dated("attempt", [*KEY, "day", "source", "undated"]).filter(pl.col("undated"))
    yield from findings(kind, tallied(rows, ("source",), once=True), ("source",), asked.month.period)


def foreign_key_rows(asked: Asked) -> Iterator[Finding]:
    """Attempts whose pseudonyms were made with another key than this installation's."""
    if asked.key_id is None:
        return
    kind = Kind(
        code="foreign_key_rows",
        severity=Severity.WARNING,
        unit="attempts",
        cure="Give every host the installation's pseudonym key; pseudonyms of two keys never mean the same tenant.",
    )
    by = ("tenant_key_id", "source")
    rows = asked.month.dated("attempt", [*KEY, "day", *by]).filter(pl.col("tenant_key_id") != asked.key_id)
    yield from findings(kind, tallied(rows, by, once=True), by, asked.month.period)


def ambiguous_match(asked: Asked) -> Iterator[Finding]:
    """Identifiers of other systems that belong to more than one attempt."""
    kind = Kind(
        code="ambiguous_match",
        severity=Severity.WARNING,
        unit="attempts",
        confidence=Confidence.AMBIGUOUS,
        cure="The same identifier stands under several attempts, and all are kept: find out why the id was used again.",
    )
    alias = ["alias_lo", "alias_hi", "kind"]
    every = asked.month.lake.scan("alias", columns=[*alias, *KEY, "day"])
    one = (pl.col(name).min() == pl.col(name).max() for name in KEY)
    shared = every.group_by(alias).agg(one=pl.all_horizontal(one)).filter(~pl.col("one")).select(alias)
    rows = every.join(shared, on=alias, how="semi").filter(pl.col("day").is_between(*ends(asked.month.period)))
    counted = rows.unique([*alias, *KEY]).with_columns(observed=pl.lit(1, dtype=pl.Int64))
    yield from findings(kind, tallied(counted, ("kind",), once=True), ("kind",), asked.month.period)


def quarantined_rows(asked: Asked) -> Iterator[Finding]:
    """Records that could not be read."""
    kind = Kind(
        code="quarantined_rows",
        severity=Severity.WARNING,
        unit="rows",
        cure="Mend these records at their source (`weighbridge explain` shows file and row), then ingest them again.",
    )
    by = ("importer", "reason")
    rows = quarantine.records(asked.month.dated("quarantine", ["day", *by, *quarantine.PLACE]), by)
    yield from _of_files(kind, rows.with_columns(observed=pl.lit(1, dtype=pl.Int64)), by, asked.month.period)


# Of the gaps in which no attempt is lost.
_GAP_CURES = {
    str(GapReason.NEVER_CALLED): "If calls were made in that time, the model runs in another process: install the "
    "adapter there. `weighbridge doctor` names the processes.",
    str(GapReason.AMBIGUOUS): "One client id was used for several calls at once, with one limit: give each call an id "
    "of its own.",
}


def gap_records(asked: Asked) -> Iterator[Finding]:
    """What agents say they lost."""
    kind = Kind(
        code="gap_records",
        severity=Severity.NOTICE,
        unit="attempts",
        cure="The agent says why it lost these; give it more buffer, disk or a newer version. A known loss is no gap.",
    )
    by = ("source", "reason")
    rows = asked.month.dated("gap", ["day", *by, "attempts", "segment"]).rename({"attempts": "observed"})
    for finding in _of_files(kind, rows, by, asked.month.period):
        cure = _GAP_CURES.get(finding.subject["reason"])
        yield finding if cure is None else replace(finding, cure=cure)


def ids_missing(asked: Asked) -> Iterator[Finding]:
    """Attempts whose token ids were announced and never came, beyond what the agent admits."""
    kind = Kind(
        code="ids_missing",
        severity=Severity.WARNING,
        unit="tokens",
        cure="Look in the spool and on the way here for segments named *-ids.segment that were not taken in, and "
        "ingest them; what a retention rule erased should have left a receipt.",
    )
    yield from findings(kind, announced.missing(asked.month, asked.ids_grace_days), announced.BY, asked.month.period)


def _of_files(kind: Kind, rows: pl.LazyFrame, by: tuple[str, ...], period: str) -> Iterator[Finding]:
    """Findings whose evidence is a file, because there is no attempt."""
    held = rows.collect()
    files = held.group_by(by).agg(pl.col("segment").drop_nulls().unique().sort().head(EVIDENCE_ROWS))
    named = {row[:-1]: tuple(row[-1]) for row in files.rows()}
    tally = tallied(held.lazy().with_columns(_NO_KEY).with_columns(expected=pl.lit(0, dtype=pl.Int64)), by)
    for row, finding in zip(tally.iter_rows(named=True), findings(kind, tally, by, period), strict=True):
        yield replace(finding, segments=named[tuple(row[name] for name in by)])


def without_tenant(seen: pl.LazyFrame) -> pl.DataFrame:
    """The tally of attempts that belong to no tenant."""
    none = seen.filter(pl.col("tenant") == UNASSIGNED)
    return tallied(none.with_columns(observed=pl.lit(1, dtype=pl.Int64)), ("tenant",))


def unassigned_tenant(tallies: Sequence[pl.DataFrame], seen: int, period: str) -> list[Finding]:
    """How many attempts belong to no tenant, and their share of all."""
    if not tallies or (whole := added(tallies, ("tenant",))).is_empty():
        return []
    without = whole["rows"].item()
    share = f"{without:,} of {seen:,} attempts ({100 * without / seen:.1f} %)"
    kind = Kind(
        code="unassigned_tenant",
        severity=Severity.INFO,
        unit="attempts",
        cure=f"{share} have no tenant: name it in the recorder call, a header or the map of API keys.",
    )
    return findings(kind, whole, (), period)


def empty_month(period: str) -> Finding:
    """A month that was asked for and has nothing in it."""
    return Finding(
        code="empty_month",
        severity=Severity.NOTICE,
        period=period,
        subject={},
        rows=0,
        unit="attempts",
        observed=0,
        cure="Check the month that was asked for, and that its files were ingested; nothing is known about it.",
    )


def output_limit_exceeded(asked: Asked) -> Iterator[Finding]:
    """Reports of more output than was asked for at most."""
    kind = Kind(
        code="output_limit_exceeded",
        severity=Severity.NOTICE,
        unit="tokens",
        cure="Limit reasoning by a parameter of its own where the API has one; the limit asked for does not bind it.",
    )
    yield from findings(kind, tallied(limited.reports(asked.month), limited.BY), limited.BY, asked.month.period)


def ids_differ_from_count(asked: Asked) -> Iterator[Finding]:
    """Logs of an engine that state another count than they have ids."""
    columns = [*KEY, "day", "source", "revision", "model_served", "input_computed", "output_computed"]
    stated = asked.month.read("attempt", columns).rename({"model_served": "model"})
    stated = stated.filter(pl.col("revision") == pl.col("revision").max().over(*KEY, "source"))
    listed = asked.month.read("child", [*KEY, "source", "kind", "revision", "input_computed", "output_computed"])
    listed = listed.filter(pl.col("kind") == ChildKind.CHOICE)
    listed = listed.filter(pl.col("revision") == pl.col("revision").max().over(*KEY, "source"))
    # The prompt is one for all choices; what they made is unknown where that of one is.
    made = pl.col("output_computed")
    listed = listed.group_by(*KEY, "source").agg(
        pl.col("input_computed").max(), output_computed=pl.when(made.null_count() == 0).then(made.sum())
    )
    both = stated.filter(pl.col("source") == TOKEN_LOGS).join(listed, on=[*KEY, "source"], suffix="_ids")
    sides = [
        both.filter(pl.col(name) != pl.col(f"{name}_ids")).select(
            *KEY, "day", "source", "model", direction=pl.lit(name.split("_")[0]), expected=name, observed=f"{name}_ids"
        )
        for name in ("input_computed", "output_computed")
    ]
    by = ("source", "model", "direction")
    kind = Kind(
        code="ids_differ_from_count",
        severity=Severity.WARNING,
        unit="tokens",
        cure="The log states another count than it lists ids: mend whoever writes it, and believe the ids.",
    )
    yield from findings(kind, tallied(pl.concat(sides), by), by, asked.month.period)


def recount_constant_moved(asked: Asked) -> Iterator[Finding]:
    """Recounts and reports that differ by another number of tokens than in the months before."""
    yield from moved(asked.month.lake.scan("recount_constant").collect(), asked.month.period)


_KINDS: tuple[Callable[[Asked], Iterator[Finding]], ...] = (
    contradictory_usage,
    unknown_usage,
    assumed_usage,
    flags,
    report_revised,
    price_unknown,
    implausible_count,
    implausible_price,
    undated_records,
    foreign_key_rows,
    ambiguous_match,
    quarantined_rows,
    gap_records,
    ids_missing,
    output_limit_exceeded,
    ids_differ_from_count,
    recount_constant_moved,
)
CODES = (*(kind.__name__ for kind in _KINDS if kind is not flags), unassigned_tenant.__name__, empty_month.__name__)
