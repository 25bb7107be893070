"""What one table was found to be: per day, how many rows there are and how many of them break each rule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.validate.accounts import Held
from weighbridge.pipeline.validate.arrivals import Freshness, Volume, arrivals
from weighbridge.pipeline.validate.contract import ARRIVING, contract
from weighbridge.pipeline.validate.counts import Counted, count
from weighbridge.pipeline.validate.keys import repeated
from weighbridge.pipeline.validate.offenders import MOST, Offence, Released, offences, places_of, sorted_out
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule
from weighbridge.schemas.tables import TABLES


@dataclass(slots=True)
class Measured:
    """One table, measured.

    Attributes:
        table: its name.
        rules: its rules, those of accounts included.
        counted: day -> what was counted; null for a table that is not kept by day.
        offences: the rows that break rules, by day and rule.
        volumes, freshnesses: of its sources, where the table has any that keep coming.
        files: rule about accounts -> the files that break it.
        unjudged: why something was not judged, by what it is.
    """

    table: str
    rules: tuple[Rule, ...]
    counted: dict[date | None, Counted]
    offences: dict[tuple[date | None, str], Offence] = field(default_factory=dict)
    volumes: list[Volume] = field(default_factory=list)
    freshnesses: list[Freshness] = field(default_factory=list)
    files: dict[str, dict[str, int]] = field(default_factory=dict)
    unjudged: list[tuple[str, str]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return sum(of_day.rows for of_day in self.counted.values())

    def asked(self, rule: Rule) -> bool:
        """Whether it could be asked of any row. A part that is known may exceed its whole where others are not."""
        days = self.counted.values()
        return any(of_day.asked.get(rule.name, 1) or of_day.broken.get(rule.name) for of_day in days)

    def open(self, day: date | None, rule: Rule) -> int:
        """How many rows (or files) of a day break a rule and were not released."""
        if rule.kind in {Kind.MISSING, Kind.SURPLUS}:
            return len(self.files.get(rule.name, {}))
        if rule.kind is Kind.NOTE:
            return self.counted[day].broken[rule.name]
        found = self.offences.get((day, rule.name))
        return 0 if found is None else found.open


def measure(
    lake: Lake,
    table: str,
    parts: Sequence[Part],
    days: Collection[date | None],
    known: Collection[str],
    released: Released,
    today: date,
    most: int = MOST,
) -> Measured:
    """Measure one table on these days (null alone for a table that is not kept by day).

    Args:
        parts: all its files.
        known: digests of the files that have an account.
        released: rows that may stand.
        today: the UTC day of today.
        most: rows of one rule and day whose places are kept.
    """
    rules = contract(table, known)
    looked = [part for part in parts if part.day in days]
    found = Measured(table, rules, count(lake, table, rules, days, looked))
    for day, of_day in found.counted.items():
        broken = [rule for rule in rules if of_day.broken.get(rule.name) and rule.gravity is not Gravity.INFO]
        of_files = [part for part in looked if part.day == day]
        for offence in offences(lake, day, of_files, of_day, broken, released, most):
            found.offences[day, offence.rule.name] = offence
    _keys(lake, found, parts, released, most)
    if table in ARRIVING:
        judged = [day for day in found.counted if day is not None]
        found.volumes, found.freshnesses = arrivals(lake, table, found.counted, parts, judged, today)
    found.unjudged += _unjudged(found, today)
    return found


def _keys(lake: Lake, found: Measured, parts: Sequence[Part], released: Released, most: int) -> None:
    (rule,) = (rule for rule in found.rules if rule.kind is Kind.KEY)
    again = repeated(lake, found.table, list(found.counted), parts)
    daily = TABLES[found.table].daily
    for day, rows in by_day(again) if daily else [(None, again)] if again.height else ():
        places = places_of(found.table, rows.lazy())
        found.offences[day, rule.name] = sorted_out(rule, day, rows.height, places, released, most)
        found.counted[day].broken[rule.name] = rows.height


def by_day(rows: pl.DataFrame) -> Iterator[tuple[date, pl.DataFrame]]:
    """The rows of each day, in order of days."""
    for (day,), of_day in sorted(rows.partition_by("day", as_dict=True).items()):
        yield day, of_day


def hold_accounts(found: Measured, held: Held) -> None:
    """Add what was found about the accounts of files to the measures of the table `segment`."""
    critical = Gravity.CRITICAL
    found.rules += (
        Rule("missing.rows", Kind.MISSING, critical, found.table, "rows_out", "is not more than the rows of the file"),
        Rule("surplus.rows", Kind.SURPLUS, critical, found.table, "rows_out", "is not less than the rows of the file"),
    )
    found.files["missing.rows"] = held.lost
    if held.excused:
        why = f"{sum(held.excused.values()):,} rows are not there, and receipts of their days speak of as many"
        found.unjudged.append(("missing.rows", f"{why}; whether of the very rows, neither says"))
    found.files["surplus.rows"] = held.surplus
    if held.unknown:
        why = f"the account of {held.unknown:,} of {held.unknown + held.looked:,} files does not say it"
        found.unjudged.append(("missing.rows, surplus.rows", why))


def _unjudged(found: Measured, today: date) -> Iterator[tuple[str, str]]:
    """What could not be asked of any row, and days and sources without a verdict."""
    if not found.rows:
        return
    silent = [rule for rule in found.rules if not found.asked(rule)]
    columns = [str(rule.column) for rule in silent if rule.kind in {Kind.MINIMUM, Kind.FINITE}]
    if columns:
        yield f"values of {', '.join(columns)}", "no row has one"
    for rule in silent:
        if rule.kind not in {Kind.MINIMUM, Kind.FINITE}:
            yield rule.name, f"no row states all figures of {rule.says}"
    yield from _without_verdict(found, today)


def _without_verdict(found: Measured, today: date) -> Iterator[tuple[str, str]]:
    few = [volume for volume in found.volumes if volume.high is None]
    if few:
        yield "volume", f"days of a source with too few days with rows before them to be held against: {len(few):,}"
    if any(volume.high is not None and volume.low is None for volume in found.volumes):
        yield "volume_low", f"{today} is not over"
    fresh = [found for found in found.freshnesses if found.limit is None and not found.ended]
    if fresh:
        yield "freshness", f"sources with fewer than four days of rows, who have no habit yet: {len(fresh):,}"
    ended = [found for found in found.freshnesses if found.ended]
    if ended:
        yield "freshness", f"sources that have been silent for more than 28 days, and count as ended: {len(ended):,}"


def days_of(table: str, parts: Sequence[Part], days: Collection[date] | None) -> list[date | None]:
    """The days to measure: those given, else all the table has; null alone for a table that is not kept by day."""
    if not TABLES[table].daily:
        return [None]
    return [*sorted({part.day for part in parts if part.day is not None} if days is None else set(days))]


def frame(found: Measured) -> pl.DataFrame:
    """The metrics of a table: one row per day, one column per rule, the rows that break it and were not released."""
    days = sorted(found.counted, key=lambda day: day or date.min)
    columns = {rule.name: [found.open(day, rule) for day in days] for rule in found.rules}
    return pl.DataFrame({"day": days, **columns}, schema_overrides={"day": pl.Date()})
