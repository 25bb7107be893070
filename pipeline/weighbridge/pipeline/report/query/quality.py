"""How far the report can be trusted: coverage, verdicts, losses, quarantine and the files behind it."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.reconcile.found.quarantine import PLACE, records
from weighbridge.pipeline.report.exact import added, ratio, tokens
from weighbridge.pipeline.report.facts import COUNTS, amounts, facts, readable, readings
from weighbridge.pipeline.report.query.gaps import outcome
from weighbridge.pipeline.report.query.totals import whole_price
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet, rows_of
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import PriceStatus, Verdict
from weighbridge.schemas.tables import UNASSIGNED

COVERAGE = (
    Column("measure", "Measure", Kind.CODE, page=False),
    Column("meaning", "Attempts ..."),
    Column("attempts", "Attempts", Kind.COUNT),
    Column("of", "of", Kind.COUNT),
    Column("share", "Share", Kind.SHARE),
)
VERDICTS = (
    Column("provider", "Provider"),
    Column("reports", "Reports", Kind.COUNT, adds=True),
    *(Column(str(verdict).lower(), str(verdict), Kind.COUNT, adds=True) for verdict in Verdict),
    Column("usable_share", "Usable", Kind.SHARE),
)
FLAGS = (
    Column("flag", "What was noticed", Kind.CODE),
    Column("provider", "Provider"),
    Column("reports", "Reports", Kind.COUNT, adds=True),
)
PRICE_STATUSES = (
    Column("status", "Status", Kind.CODE),
    Column("provider", "Provider"),
    Column("model", "Model"),
    Column("reports", "Reports", Kind.COUNT, adds=True),
)
QUARANTINE = (
    Column("reason", "Reason", Kind.CODE),
    Column("importer", "Importer", Kind.CODE),
    Column("rows", "Records", Kind.COUNT),
    Column("files", "Files", Kind.COUNT),
)
GAPS = (
    Column("reason", "Reason", Kind.CODE),
    Column("source", "Source", Kind.CODE),
    Column("gap_records", "Gap records", Kind.COUNT, adds=True),
    Column("attempts", "Attempts lost", Kind.COUNT, adds=True),
    Column("tokens", "Tokens lost", Kind.COUNT, adds=True),
)
SEGMENTS = (
    Column("name", "File"),
    Column("importer", "Importer", Kind.CODE),
    Column("writer", "Writer"),
    Column("end", "End", Kind.CODE),
    Column("rows_in", "Records in", Kind.COUNT, adds=True),
    Column("rows_out", "stored", Kind.COUNT, adds=True),
    Column("rows_quarantined", "quarantined", Kind.COUNT, adds=True),
    Column("rows_duplicate", "held already", Kind.COUNT, adds=True),
    Column("rows_lost", "unaccounted", Kind.COUNT, adds=True),
    Column("segment", "SHA-256", Kind.CODE, short=12),
)


def coverage(view: View) -> Sheet:
    """For how many attempts each kind of evidence exists."""
    frame = view.get(facts)
    count = frame.height
    seen = _count(frame, pl.col("observed"))
    known = view.get(outcome)
    wanted = frame.filter(pl.col("usage_expected").fill_null(value=False))
    rows: list[Row] = [
        ("with_attempt_record", "recorded by an agent, a caller or an import", seen, count),
        ("report_only", "recorded by nobody: a usage report alone tells of them", count - seen, count),
        ("with_usage", "with a usage report", _count(frame, pl.col("reports") > 0), count),
        ("with_readable_usage", "with usage whose counts can be read", _count(frame, _any("input", "output")), count),
        ("usage_missing", "expected to have usage, and without it", _count(wanted, pl.col("reports") == 0), count),
        ("several_reports", "with more than one usage report", _count(frame, pl.col("reports") > 1), count),
        ("with_engine_counts", "counted by the serving engine", _count(frame, _any(*COUNTS[:2])), count),
        ("with_recount", "recounted from their text", _count(frame, _any(*COUNTS[4:])), count),
        ("compared", "compared: both sides known, or one missing that was due", known["compared"], count),
        (
            "not_compared",
            "not compared: one side only, and no other was due",
            known["attempts"] - known["compared"],
            count,
        ),
        ("not_reconciled", "not yet reconciled", count - known["attempts"], count),
        ("priced", "priced in full", _count(frame, whole_price()), count),
        ("without_price", "with usage that has no price", _count(frame, pl.col("unpriced") > 0), count),
        ("undated", "without a time; their day was given by hand", _count(frame, pl.col("undated")), count),
        *(
            (f"{name}_unassigned", f"with no {name} assigned", _count(frame, pl.col(name) == UNASSIGNED), count)
            for name in ("task", "route", "tenant")
        ),
    ]
    return Sheet(
        name="coverage",
        title="Coverage",
        columns=COVERAGE,
        rows=tuple((*row, ratio(row[2], row[3])) for row in rows),
        sources=("attempt", "reading", "reconciled", "priced_amount"),
        empty="Nothing to cover.",
        note="All attempts are those that were recorded and those that a usage report alone tells of (nobody observed "
        "them, or the agent lost its record). Where a table counts attempts recorded, it counts the first ones only.",
    )


def _any(*names: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).is_not_null() for name in names)


def _count(frame: pl.DataFrame, condition: pl.Expr) -> int:
    return int(frame.select(condition.sum()).item() or 0)


def verdicts(view: View) -> Sheet:
    """How sure the readings of each provider are."""
    frame = readings(view, ("provider", "verdict"))
    sums = collect(
        frame.group_by(pl.col("provider").fill_null("unknown")).agg(
            pl.len().cast(pl.Int64).alias("reports"),
            *((pl.col("verdict") == str(v)).sum().cast(pl.Int64).alias(str(v).lower()) for v in Verdict),
            readable().sum().cast(pl.Int64).alias("usable"),
        )
    ).sort("reports", "provider", descending=[True, False])
    rows = [_usable(row) for row in sums.iter_rows(named=True)]
    whole = sums.select(pl.exclude("provider").sum()).row(0, named=True)
    return Sheet(
        name="verdicts",
        title="How sure the readings are",
        columns=VERDICTS,
        rows=tuple(rows),
        total=_usable({**whole, "provider": "All"}) if rows else None,
        unit="usage reports",
        sources=("reading",),
        empty="No usage reports in this period.",
    )


def _usable(row: dict[str, object]) -> Row:
    derived = {**row, "usable_share": ratio(row["usable"], row["reports"])}
    return tuple(derived[column.name] for column in VERDICTS)  # type: ignore[misc]


def flags(view: View) -> Sheet:
    """What was noticed while reading."""
    frame = readings(view, ("provider", "flags")).select(pl.col("provider").fill_null("unknown"), flag=pl.col("flags"))
    noticed = frame.filter(pl.col("flag").list.len() > 0).explode("flag", empty_as_null=True).drop_nulls("flag")
    sums = collect(noticed.group_by("flag", "provider").agg(pl.len().cast(pl.Int64).alias("reports")))
    return Sheet(
        name="flags",
        title="What was noticed in usage reports",
        columns=FLAGS,
        rows=rows_of(sums.sort("reports", "flag", "provider", descending=[True, False, False]), FLAGS),
        unit="usage reports",
        sources=("reading",),
        empty="Nothing was noticed.",
    )


def price_statuses(view: View) -> Sheet:
    """Usage without a price, and why."""
    key = ["attempt_lo", "attempt_hi", "source", "child", "report"]
    names = readings(view, ("provider", "model")).select(*key, "provider", "model")
    unpriced = amounts(view, ()).filter(pl.col("status") != str(PriceStatus.PRICED)).select(*key, "status")
    grouped = names.join(unpriced, on=key, how="inner").group_by(
        "status", pl.col("provider").fill_null("unknown"), pl.col("model").fill_null("unknown")
    )
    sums = collect(grouped.agg(pl.len().cast(pl.Int64).alias("reports")))
    order = ["reports", "status", "provider", "model"]
    return Sheet(
        name="without_price",
        title="Usage without a price",
        columns=PRICE_STATUSES,
        rows=rows_of(sums.sort(order, descending=[True, False, False, False]), PRICE_STATUSES),
        unit="usage reports",
        sources=("priced_amount", "reading"),
        empty="Every usage report of this period is priced.",
    )


def quarantine(view: View) -> Sheet:
    """Records that could not be read, by reason. They are kept by UTC day, for they have no time of their own."""
    by = ("reason", "importer")
    frame = view.read("quarantine", ["day", *by, *PLACE])
    inside = frame.filter(pl.col("day").is_between(view.period.first, view.period.last))
    sums = collect(
        records(inside, by)
        .group_by(by)
        .agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("segment").n_unique().cast(pl.Int64).alias("files"))
    ).sort("rows", "reason", "importer", descending=[True, False, False])
    return Sheet(
        name="quarantine",
        title="Records in quarantine",
        columns=QUARANTINE,
        rows=rows_of(sums, QUARANTINE),
        sources=("quarantine",),
        empty="No record of this period is in quarantine.",
        note="A record that could not be read for several reasons stands under each of them.",
    )


def gap_records(view: View) -> Sheet:
    """Known losses, by reason. They are kept by UTC day."""
    frame = view.read("gap", ["day", "source", "reason", "attempts", "tokens"])
    inside = frame.filter(pl.col("day").is_between(view.period.first, view.period.last))
    sums = collect(
        inside.group_by("reason", "source").agg(
            pl.len().cast(pl.Int64).alias("gap_records"), tokens("attempts"), tokens("tokens")
        )
    ).sort("attempts", "reason", "source", descending=[True, False, False])
    return Sheet(
        name="gaps",
        title="Known losses at capture",
        columns=GAPS,
        rows=rows_of(sums, GAPS),
        sources=("gap",),
        empty="No agent reports a loss in this period.",
    )


def segments(view: View) -> Sheet:
    """The files the rows of the period came from, and whether each of their records is accounted for."""
    origins = [
        view.read(table, ["segment"]).select("segment").drop_nulls().unique()
        for table in ("attempt", "reading", "quarantine", "gap")
    ]
    named = collect(pl.concat(origins).unique())
    files = collect(view.whole("segment").join(named.lazy(), on="segment", how="semi")).with_columns(
        rows_lost=pl.col("rows_in") - pl.col("rows_out") - pl.col("rows_quarantined") - pl.col("rows_duplicate")
    )
    rows = rows_of(files.sort("name", "segment"), SEGMENTS)
    sums = [added([row[place] for row in rows]) if column.adds else "" for place, column in enumerate(SEGMENTS)]
    return Sheet(
        name="segments",
        title="Files behind this report",
        columns=SEGMENTS,
        rows=rows,
        total=("All", *sums[1:]) if rows else None,
        unit="records",
        sources=("segment", "attempt", "reading", "quarantine", "gap"),
        empty="No file has rows in this period.",
        note="Counts are those of whole files, which may hold records of other months as well.",
        dated=False,
    )
