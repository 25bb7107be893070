"""The part of the page of data quality that is about one table: its rules and what arrived, day by day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from weighbridge.pipeline.validate.arrivals import MOST_AHEAD, Volume
from weighbridge.pipeline.validate.measure import Measured
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule
from weighbridge.schemas.tables import TABLES

# Days with a column of their own; those before them are added up in one.
DAYS = 10
# What columns under rules of one kind are called together.
_TOGETHER = {
    Kind.NULL: "never unknown",
    Kind.MINIMUM: "with a least value",
    Kind.FINITE: "of real numbers",
    Kind.WORD: "of closed words",
    Kind.PATTERN: "of patterned text",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table of rules.

    Attributes:
        name: what is looked at.
        gravity: what follows where it does not hold.
        cells: per column of days: the count and the style of its cell.
        total: all days together.
        sub: one rule of those the row before stands for.
    """

    name: str
    gravity: str
    cells: tuple[tuple[int, str], ...]
    total: int
    sub: bool = False


def table_of(found: Measured) -> dict[str, object]:
    days = sorted(found.counted, key=lambda day: day or date.min)
    shown, before = days[-DAYS:], days[:-DAYS]
    heads = [f"{day:%m-%d}" if day else "all rows" for day in shown]
    rows = [found.counted[day].rows for day in days]
    return {
        "name": found.table,
        "doc": TABLES[found.table].doc,
        "heads": (["before"] if before else []) + heads,
        "days": f"{shown[0]} to {shown[-1]}" if shown and shown[0] else "",
        "rows": _split(rows, len(before)),
        "total": sum(rows),
        "lines": list(_lines(found, days, len(before))),
        "arrivals": list(_arrivals(found, [day for day in shown if day])),
        "arrival_heads": [f"{day:%m-%d}" for day in shown if day],
    }


def _split(numbers: Sequence[int], before: int) -> list[int]:
    """The numbers of days that are shown, after the sum of those that are not."""
    return ([sum(numbers[:before])] if before else []) + list(numbers[before:])


def _lines(found: Measured, days: Sequence[date | None], before: int) -> Iterator[Line]:
    by_kind: dict[Kind, list[Rule]] = {}
    for rule in found.rules:
        by_kind.setdefault(rule.kind, []).append(rule)
    for kind, rules in by_kind.items():
        if kind in _TOGETHER:
            sums = [sum(found.open(day, rule) for rule in rules) for day in days]
            yield _line(f"{many(len(rules), 'column')} {_TOGETHER[kind]}", rules[0].gravity, sums, before)
        for rule in rules:
            if kind in _TOGETHER and not any(found.open(day, rule) for day in days):
                continue
            counts = [found.open(day, rule) for day in days]
            yield _line(clause(rule.column, rule.says), rule.gravity, counts, before, sub=kind in _TOGETHER)


def _line(name: str, gravity: Gravity, counts: Sequence[int], before: int, *, sub: bool = False) -> Line:
    style = {Gravity.CRITICAL: "bad", Gravity.WARNING: "warn", Gravity.INFO: ""}[gravity]
    cells = tuple((number, style if number else "z") for number in _split(counts, before))
    return Line(name, str(gravity), cells, sum(counts), sub)


def _arrivals(found: Measured, days: Sequence[date]) -> Iterator[dict[str, object]]:
    for fresh in found.freshnesses:
        volumes = {volume.day: volume for volume in found.volumes if volume.source == fresh.source}
        cells = []
        for day in days:
            volume = volumes.get(day)
            if volume is None:
                cells.append(("", ""))
                continue
            low = volume.low is not None and volume.rows < volume.low
            high = volume.high is not None and volume.rows > volume.high
            cells.append((f"{volume.rows:,}", "warn" if low or high or volume.ahead > MOST_AHEAD else ""))
        # A day still to come has no limits.
        judged = [volume for volume in volumes.values() if not volume.ahead]
        last = max(judged, key=lambda volume: volume.day, default=None)
        yield {
            "source": fresh.source,
            "cells": cells,
            "limits": _limits(last),
            "newest": fresh.newest.isoformat(),
            "silent": fresh.silent,
            "limit": "ended" if fresh.ended else "no habit yet" if fresh.limit is None else str(fresh.limit),
            "late": fresh.limit is not None and fresh.silent > fresh.limit,
        }


def _limits(last: Volume | None) -> str:
    if last is None or last.high is None:
        return "too few days"
    return f"up to {last.high:,}" if last.low is None else f"{last.low:,} to {last.high:,}"


def many(number: int, noun: str) -> str:
    """A number of something that is named, with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clause(column: str | None, says: str) -> str:
    """What must hold, with the column it is about."""
    return f"{column} {says}" if column else says
