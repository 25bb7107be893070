"""Validate: hold the lake to its contract, before anything is computed from it.

    measure   how many rows of each table and day break each rule (one pass over numbers, one over texts, one over keys)
    judge     Great Expectations says of each rule whether it holds; it sees counts, never a row
    hold      the rows that break rules are held in quarantine by their place
    tell      what does not hold becomes a finding; a critical one that is open shuts the gate

The lake is locked throughout, so that what is judged is one state of it. The same lake gives the same result, and a
run that finds what the last one found writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.validate import accounts
from weighbridge.pipeline.validate.hold import hold
from weighbridge.pipeline.validate.holdings import holdings
from weighbridge.pipeline.validate.measure import Measured, days_of, hold_accounts, measure
from weighbridge.pipeline.validate.offenders import MOST, released
from weighbridge.pipeline.validate.page import write_page
from weighbridge.pipeline.validate.rule import Gravity, Kind
from weighbridge.pipeline.validate.scope import Scope
from weighbridge.pipeline.validate.sheets import sheets_of, violations_of
from weighbridge.pipeline.validate.suite import judge, load
from weighbridge.pipeline.validate.validation import Unjudged, Validation
from weighbridge.pipeline.validate.violation import Violation
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.tables import TABLES

# What files bring in, and what is made of it before anything is reconciled: what a night validates.
BEFORE_RECONCILE = (
    *(
        "request_scope",
        "attempt",
        "child",
        "usage_report",
        "reading",
        "alias",
        "foreign_id",
        "token_run",
        "state_event",
    ),
    *("strategy", "segment", "gap", "quarantine", "invoice_line", "invoice_detail", "currency_rate"),
    *("usage_period", "engine_counter"),
)


def validate(
    lake: Lake,
    *,
    today: date,
    days: Collection[date] | None = None,
    tables: Collection[str] | None = None,
    page: Path | None = None,
    title: str = "Data quality",
    most: int = MOST,
) -> Validation:
    """Hold tables of the lake to their contract.

    Args:
        lake: the lake; its lock is held until the call ends.
        today: the UTC day of today: what freshness and waivers are counted to.
        days: only these UTC days of tables kept by day; all they have where null. A day without rows is judged too.
        tables: only these tables; all where null.
        page: where the page is written; its folder is made. Null: none is.
        title: heading of the page.
        most: rows that break one rule on one day and are held by their place; all are counted.

    Raises:
        ConfigError: there is no such table.
        LakeBusyError: another process is writing; nothing was changed.
        LakeError: the lake cannot be read or written.
    """
    names = _checked(tables)
    load()
    with lake.lock():
        measured, absent = _measure(lake, names, days, today, most)
        sheets = list(sheets_of(measured))
        violations = violations_of(measured, judge(sheets), states(lake, today))
        looked = _looked(names, days)
        offences = (offence for found in measured for offence in found.offences.values() if offence.open)
        quarantined = hold(lake, offences, looked)
        held = holdings(lake, days)
        in_lake = held if days is None else holdings(lake, None)
        told = _tell(lake, violations, looked, days)
    result = Validation(
        gate=not any(violation.shuts for violation in violations),
        violations=violations,
        unjudged=(*absent, *(Unjudged(found.table, *reason) for found in measured for reason in found.unjudged)),
        rows={found.table: found.rows for found in measured},
        days=tuple(sorted({day for found in measured for day in found.counted if day is not None})),
        rules=sum(len(sheet.expected) for sheet in sheets if sheet.rows),
        quarantined=quarantined,
        released=sum(offence.released for found in measured for offence in found.offences.values()),
        holdings=held,
        findings=told,
        scope=Scope.of(days, tables),
        held_in_lake=sum(holding.records for holding in in_lake),
    )
    if page is None:
        return result
    write_page(page, result, measured, title=title, today=today)
    return replace(result, page=page)


def _checked(tables: Collection[str] | None) -> list[str]:
    unknown = sorted(set(tables or ()) - set(TABLES))
    if unknown:
        raise ConfigError(f"there is no table {', '.join(map(repr, unknown))}; known are {', '.join(TABLES)}")
    return [name for name in TABLES if tables is None or name in tables]


def _measure(
    lake: Lake, names: Sequence[str], days: Collection[date] | None, today: date, most: int
) -> tuple[list[Measured], list[Unjudged]]:
    """Every table that has rows, measured; and what has none."""
    known = set(lake.scan("segment", columns=["segment"]).collect()["segment"])
    let = released(lake)
    found: list[Measured] = []
    absent: list[Unjudged] = []
    for name in names:
        parts = lake.parts(name)
        if not parts:
            absent.append(Unjudged(name, "the table", "it has no rows"))
            continue
        found.append(measure(lake, name, parts, days_of(name, parts, days), known, let, today, most))
        if not found[-1].rows:
            absent.append(Unjudged(name, "its rows", "it has none on these days"))
    for measures in found:
        if measures.table == "segment":
            counted = {each.table: each.counted for each in found}
            of_days = {
                digest
                for each in found
                for of_day in each.counted.values()
                for digest in of_day.tallies.get("segment", {})
                if digest is not None
            }
            hold_accounts(measures, accounts.hold(lake, counted, None if days is None else of_days, days or ()))
    return found, absent


def _looked(names: Sequence[str], days: Collection[date] | None) -> dict[str, Collection[date | None]]:
    """Table -> the days that were looked at; null alone where it was looked at as a whole, rows or none."""
    return {name: [None] if days is None or not TABLES[name].daily else [*days] for name in names}


def _tell(
    lake: Lake,
    violations: Sequence[Violation],
    looked: Mapping[str, Collection[date | None]],
    days: Collection[date] | None,
) -> int:
    """Write the findings; those of the tables and days looked at are replaced, all others stay.

    A run over some days looks at the accounts of the files of these days only. Where it finds nothing wrong with them,
    what was found about others stays.
    """
    found = [violation.finding() for violation in violations if violation.gravity is not Gravity.INFO]
    subject = pl.col("subject")
    replaced = pl.lit(value=False)
    for table, of in looked.items():
        whole = pl.lit(value=None in of)
        of_days = pl.col("first_day").is_null() | pl.col("first_day").is_in([day for day in of if day is not None])
        replaced |= subject.str.starts_with(f"table={table};") & (whole | of_days)
    for kind, rule in ((Kind.MISSING, "missing.rows"), (Kind.SURPLUS, "surplus.rows")):
        if days is not None and not any(violation.kind is kind for violation in violations):
            replaced &= ~subject.str.ends_with(f"rule={rule}")
    periods = None if days is None else {"all", *(f"{day:%Y-%m}" for day in days)}
    write_findings(lake, found, origin=FindingOrigin.VALIDATE, periods=periods, where=replaced)
    return len(found)
