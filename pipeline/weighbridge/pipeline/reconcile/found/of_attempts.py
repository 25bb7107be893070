"""Findings about attempts: their time, their names and keys, their tenants and their token ids.

Each function that makes findings of one code is named after that code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.found import announced
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.pipeline.reconcile.found.tally import Kind, added, findings, tallied
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match import attempts, reports
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.enumerations import ChildKind, Confidence, Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.tables import UNASSIGNED

# The source of logs that teams write themselves; of agents counts and ids need not agree, ids are a sample.
TOKEN_LOGS = "token-logs"  # noqa: S105 - a source, not a password


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
