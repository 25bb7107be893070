"""Whole rule-days: every row of a day that breaks a rule, also where more do than quarantine holds by their place.

A validation holds the first rows of each rule and day (`quarantine_rows`) and counts all. What a person decides about a
rule, and what a file is read again for, is about all of them, so they are looked for anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import date, datetime

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.words import texts
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.counts import count
from weighbridge.pipeline.validate.hold import NO_ACCOUNT, held
from weighbridge.pipeline.validate.keys import repeated
from weighbridge.pipeline.validate.measure import by_day
from weighbridge.pipeline.validate.offenders import Offence, offences, places_of, released, sorted_out
from weighbridge.pipeline.validate.quarantine import Entry, check_reason, decide, entry_id, remove
from weighbridge.pipeline.validate.rule import Kind, placed
from weighbridge.pipeline.validate.violation import named
from weighbridge.schemas.enumerations import FindingOrigin, QuarantineReason, QuarantineState
from weighbridge.schemas.tables import TABLES

TABLE = "quarantine"
# Table, rule, and the UTC day, which is null where the table is not kept by day.
RuleDay = tuple[str, str, date | None]


def beyond(lake: Lake) -> dict[RuleDay, int]:
    """Rule-days of which more rows were found than are held -> how many more, as of the last validation of each."""
    held_of = lake.scan(TABLE, columns=["table_name", "rule", "day"]).filter(pl.col("rule").is_not_null())
    by_day: Counter[RuleDay] = Counter()
    for table, rule, day, rows in held_of.group_by("table_name", "rule", "day").len().collect().iter_rows():
        if table in TABLES:
            # Rows of a table that is not kept by day are held under days, and found all together.
            by_day[str(table), str(rule), day if TABLES[table].daily else None] += rows
    found = lake.scan("finding", columns=["subject", "rows", "unit", "origin"]).filter(
        pl.col("origin") == str(FindingOrigin.VALIDATE), pl.col("unit") == "rows"
    )
    out: dict[RuleDay, int] = {}
    for subject, rows in found.select("subject", "rows").collect().iter_rows():
        about = dict(pair.split("=", 1) for pair in subject.split("; "))
        table, rule = about.get("table", ""), about.get("rule", "")
        if "source" in about or table not in TABLES or not placed(TABLES[table]):
            continue
        of = (table, rule, date.fromisoformat(about["day"]) if "day" in about else None)
        if rows > by_day[of]:
            out[of] = rows - by_day[of]
    return out


def breaking(
    lake: Lake, table: str, rule: str, days: Collection[date | None], segments: Collection[str] | None = None
) -> Iterator[Offence]:
    """Every row of these days that breaks a rule and was not released, a day at a time.

    Args:
        lake: the lake; its lock is held.
        table, rule: which; of a rule that there is no more, there are none.
        days: UTC days; null alone for a table that is not kept by day.
        segments: only places of rows of the files with these digests; null: of all.
    """
    parts, let = lake.parts(table), released(lake)
    known = set(lake.scan("segment", columns=["segment"]).collect()["segment"])
    for asked in (each for each in contract(table, known) if each.name == rule):
        if asked.kind is Kind.KEY:
            again = repeated(lake, table, list(days), parts)
            of_days = by_day(again) if TABLES[table].daily else [(None, again)] if again.height else []
            for day, rows in of_days:
                yield sorted_out(asked, day, rows.height, places_of(table, rows.lazy()), let, None, segments)
            continue
        looked = [part for part in parts if part.day in days]
        for day, of_day in count(lake, table, (asked,), list(days), looked).items():
            if of_day.broken.get(rule):
                of_files = [part for part in looked if part.day == day]
                yield from offences(lake, day, of_files, of_day, [asked], let, None, segments)


def all_entries(
    lake: Lake, table: str, rule: str, days: Collection[date | None], segments: Collection[str] | None = None
) -> Iterator[Entry]:
    """The same as entries of the quarantine, whether or not they are in it."""
    for offence in breaking(lake, table, rule, days, segments):
        yield from _entries(offence)


def entries_beyond(lake: Lake, segments: Collection[str]) -> Iterator[Entry]:
    """Rows of the files with these digests that break a rule, of rule-days of which more were found than are held.

    Days on which these files have no rows are not looked at.
    """
    of_tables: dict[str, list[tuple[str, date | None]]] = {}
    for table, rule, day in sorted(beyond(lake), key=str):
        of_tables.setdefault(table, []).append((rule, day))
    for table, asked in of_tables.items():
        there = _days_of(lake, table, segments, {day for _, day in asked})
        for rule, day in asked:
            if day in there:
                yield from all_entries(lake, table, rule, [day], segments)


def _days_of(lake: Lake, table: str, segments: Collection[str], days: Collection[date | None]) -> set[date | None]:
    """Those of the days on which files have rows in a table."""
    parts = [part for part in lake.parts(table) if part.day in days]
    named_on = texts(lake, table, ["segment"], parts)
    return {day for day, columns in named_on if not set(columns["segment"].dictionary.to_pylist()).isdisjoint(segments)}


def _entries(offence: Offence) -> Iterator[Entry]:
    rule = offence.rule.name
    for place in held(offence).iter_rows(named=True):
        yield Entry(
            entry_id=entry_id(place["segment"], place["segment_row"], offence.table, rule),
            segment=place["segment"],
            line=place["segment_row"],
            day=place["day"],
            source=named(place["source"]),
            importer=NO_ACCOUNT,
            table=offence.table,
            rule=rule,
            reasons=(str(QuarantineReason.CONTRACT),),
            paths=(offence.rule.path,),
        )


def release_rule(lake: Lake, chosen: Collection[Entry], *, by: str, reason: str, now: datetime) -> int:
    """Let all rows of rule-days stand: those that are held, and those that are too many to be. How many they are.

    Args:
        lake: the lake.
        chosen: held rows of one table and rule: all rows of their days are meant.
        by, reason, now: as for `release`.

    Raises:
        ConfigError: a name, reason or time that cannot be used.
        LakeBusyError: another process is writing.
    """
    check_reason(reason)
    with lake.lock():
        more = beyond(lake)
        of_days: dict[RuleDay, list[Entry]] = {}
        for entry in chosen:
            table, rule = str(entry.table), str(entry.rule)
            of_days.setdefault((table, rule, entry.day if TABLES[table].daily else None), []).append(entry)
        done = 0
        for of, held_of_day in sorted(of_days.items(), key=str):
            # One rule-day is in memory at a time: a rule may be broken by every row of the lake.
            rows = {entry.entry_id: entry for entry in held_of_day}
            if of in more:
                table, rule, day = of
                rows |= {entry.entry_id: entry for entry in all_entries(lake, table, rule, [day])}
            decide(lake, list(rows.values()), QuarantineState.RELEASED, by=by, reason=reason, now=now)
            done += len(rows)
        remove(lake, list(chosen))
        return done
