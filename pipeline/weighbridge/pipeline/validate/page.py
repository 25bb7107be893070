"""The page of data quality: the gate, what does not hold, every rule of every table with its counts per day, and what
was not checked. One HTML file with its style inside; nothing in it runs or is fetched, and no value of a row is on it.

The names on it are those of tables, columns, rules and sources. A source whose name is none is not named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from weighbridge.pipeline.look.look import look
from weighbridge.pipeline.validate.measure import Measured
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule
from weighbridge.pipeline.validate.validation import Validation
from weighbridge.pipeline.validate.violation import Violation
from weighbridge.schemas.tables import TABLES

TEMPLATES = Path(__file__).parent / "templates"
# Days with a column of their own; those before them are added up in one.
DAYS = 14
# Violations that have a line of their own.
LINES = 200
# What rules of one kind are called together, where a table has several of them.
_TOGETHER = {
    Kind.NULL: "columns that are never unknown",
    Kind.MINIMUM: "columns with a least value",
    Kind.FINITE: "columns of real numbers",
    Kind.WORD: "columns of closed words",
    Kind.PATTERN: "columns of patterned text",
}
_STYLE = """
thead th.day { white-space: nowrap; }
td.bad { color: var(--bad); background: var(--bad-wash); font-weight: 600; }
td.warn { color: var(--warn); background: var(--warn-wash); font-weight: 600; }
tr.sub th { padding-left: 1.2rem !important; font-weight: 400; color: var(--soft); }
.rule { min-width: 13rem; }
.lines { margin: 0; padding-left: 1.1rem; }
.badge.critical, .badge.shut { color: var(--bad); background: var(--bad-wash); }
.badge.clean { color: var(--good); background: var(--good-wash); }
"""


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


def write_page(path: Path, result: Validation, measured: Sequence[Measured], *, title: str, today: date) -> None:
    """Write the page, whole or not at all; its folder is made where it is not there."""
    text = render(result, measured, title=title, today=today)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def render(result: Validation, measured: Sequence[Measured], *, title: str, today: date) -> str:
    """The page. The same result gives the same bytes."""
    room = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    worn = look(_STYLE)
    broken = result.broken
    return room.get_template(
        "page.html"
    ).render(
        style=Markup(worn.style),  # noqa: S704 - our own file, not data
        policy=Markup(worn.policy),  # noqa: S704 - our own words and a digest
        title=title,
        today=today,
        period=_period(result.days),
        result=result,
        answer=_answer(result),
        tiles=_tiles(result),
        violations=[_told(violation) for violation in broken[:LINES]],
        left_off=max(0, len(broken) - LINES),
        unjudged=list(_unjudged(result)),
        holdings=result.holdings[:LINES],
        holdings_left_off=max(0, len(result.holdings) - LINES),
        tables=[_table(found) for found in measured if found.rows or found.table == "segment"],
    )


def _period(days: Sequence[date]) -> str:
    if not days:
        return "no days"
    return f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _answer(result: Validation) -> dict[str, Any]:
    shut = [violation for violation in result.violations if violation.shuts]
    warned = [violation for violation in result.violations if violation.gravity is Gravity.WARNING]
    if shut:
        rules = len({(violation.table, violation.rule) for violation in shut})
        head = f"The gate is shut: {_many(rules, 'critical rule')} {'does' if rules == 1 else 'do'} not hold."
        return {"tone": "bad", "head": head, "lines": [violation.sentence() for violation in shut[:10]]}
    if not any(result.rows.values()):
        return {"tone": "warn", "head": "There was nothing to check.", "lines": []}
    if warned:
        head = f"The gate is open; {_many(len(warned), 'finding')} to look at."
        return {"tone": "warn", "head": head, "lines": [violation.sentence() for violation in warned[:10]]}
    return {"tone": "good", "head": "The gate is open: every rule holds that could be checked.", "lines": []}


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _tiles(result: Validation) -> list[tuple[str, str, str]]:
    broken = {(v.table, v.rule) for v in result.violations if v.gravity is Gravity.CRITICAL}
    warned = {(v.table, v.rule) for v in result.violations if v.gravity is Gravity.WARNING}
    rested = sum(v.gravity is Gravity.CRITICAL and not v.shuts for v in result.violations)
    return [
        (
            "Rows looked at",
            f"{sum(result.rows.values()):,}",
            f"in {_many(sum(map(bool, result.rows.values())), 'table')}",
        ),
        ("Rules judged", f"{result.rules:,}", f"on {_many(len(result.days), 'day')}"),
        ("Critical rules broken", f"{len(broken):,}", f"{rested:,} of their findings rest by a decision"),
        ("Warnings", f"{len(warned):,}", "rules that do not hold"),
        (
            "In quarantine",
            f"{result.quarantined + result.unread:,}",
            f"{result.unread:,} could not be read; {result.released:,} rows were released",
        ),
        ("Not checked", f"{len(result.unjudged):,}", "with the reason below"),
    ]


def _told(violation: Violation) -> dict[str, object]:
    limited = violation.kind in {Kind.LOW, Kind.HIGH, Kind.FRESH}
    return {
        "gravity": str(violation.gravity),
        "table": violation.table,
        "rule": violation.rule,
        "what": f"{violation.source}: {violation.says}"
        if violation.source
        else _clause(violation.column, violation.says),
        "day": "" if violation.day is None else violation.day.isoformat(),
        "rows": _many(violation.observed or 0 if limited else violation.rows, violation.unit.removesuffix("s")),
        "limit": f"{violation.expected:,}" if limited else "0",
        "held": f"{violation.held:,}",
        "released": f"{violation.released:,}",
        "state": str(violation.state),
        "id": violation.finding().finding_id[:8],
    }


def _unjudged(result: Validation) -> Iterator[tuple[str, str, str]]:
    """Tables, what and why; tables that share both are named together."""
    together: dict[tuple[str, str], list[str]] = {}
    for each in result.unjudged:
        together.setdefault((each.what, each.why), []).append(each.table)
    for (what, why), tables in together.items():
        yield ", ".join(tables), what, why


def _clause(column: str | None, says: str) -> str:
    return f"{column} {says}" if column else says


def _table(found: Measured) -> dict[str, object]:
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
            yield _line(f"{len(rules)} {_TOGETHER[kind]}", rules[0].gravity, sums, before)
        for rule in rules:
            if kind in _TOGETHER and not any(found.open(day, rule) for day in days):
                continue
            counts = [found.open(day, rule) for day in days]
            yield _line(_clause(rule.column, rule.says), rule.gravity, counts, before, sub=kind in _TOGETHER)


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
            cells.append((f"{volume.rows:,}", "warn" if low or high else ""))
        last = max(volumes.values(), key=lambda volume: volume.day, default=None)
        yield {
            "source": fresh.source,
            "cells": cells,
            "limits": "too few days" if last is None or last.high is None else f"{last.low or 0:,} to {last.high:,}",
            "newest": fresh.newest.isoformat(),
            "silent": fresh.silent,
            "limit": "ended" if fresh.ended else "no habit yet" if fresh.limit is None else str(fresh.limit),
            "late": fresh.limit is not None and fresh.silent > fresh.limit,
        }
