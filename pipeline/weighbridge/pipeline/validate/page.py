"""The page of data quality: the gate, what does not hold, every rule of every table with its counts per day, and what
was not checked. One HTML file with its style inside; nothing in it runs or is fetched, and no value of a row is on it.

The names on it are those of tables, columns, rules and sources. A source whose name is none is not named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from weighbridge.pipeline.look.look import look
from weighbridge.pipeline.validate.measure import Measured
from weighbridge.pipeline.validate.page_tables import clause, many, table_of
from weighbridge.pipeline.validate.rule import Gravity, Kind
from weighbridge.pipeline.validate.scope import PAGE
from weighbridge.pipeline.validate.validation import Validation
from weighbridge.pipeline.validate.violation import Violation
from weighbridge.schemas.enumerations import FindingState

TEMPLATES = Path(__file__).parent / "templates"
# Violations that are told in the answer.
TOLD = 10
# Violations that have a line of their own.
LINES = 200
_STYLE = """
thead th.day { white-space: nowrap; }
td.bad { color: var(--bad); background: var(--bad-wash); font-weight: 600; }
td.warn { color: var(--warn); background: var(--warn-wash); font-weight: 600; }
tr.sub th { padding-left: 1.2rem !important; font-weight: 400; color: var(--soft); }
.rule { min-width: 13rem; }
#held tbody th { white-space: nowrap; }
#unjudged td.x { min-width: 14rem; max-width: 34rem; }
.badge.critical { color: var(--bad); background: var(--bad-wash); }
"""


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


@cache
def _room() -> Environment:
    """The templates, compiled once in a process."""
    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)


def render(result: Validation, measured: Sequence[Measured], *, title: str, today: date) -> str:
    """The page. The same result gives the same bytes."""
    worn = look(_STYLE)
    broken = result.broken
    template = _room().get_template("page.html")
    return template.render(
        style=Markup(worn.style),  # noqa: S704 - our own file, not data
        policy=Markup(worn.policy),  # noqa: S704 - our own words and a digest
        title=title if result.scope.whole else f"{title} of a part of the lake",
        part=None if result.scope.whole else result.scope.says,
        whole_page=PAGE,
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
        tables=[table_of(found) for found in measured if found.rows or found.freshnesses or found.table == "segment"],
    )


def _period(days: Sequence[date]) -> str:
    if not days:
        return "no days"
    return f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _answer(result: Validation) -> dict[str, Any]:
    shut = [violation for violation in result.violations if violation.shuts]
    told = shut or [violation for violation in result.broken if violation.state is FindingState.OPEN]
    tone, head = _head(result, shut, told)
    lines = [violation.sentence() for violation in told[:TOLD]]
    if result.unread:
        lines.append(f"{many(result.unread, 'record')} of these days could not be read, and count nowhere")
    return {"tone": tone, "head": head, "lines": lines, "more": max(0, len(told) - TOLD)}


def _head(result: Validation, shut: Sequence[Violation], told: Sequence[Violation]) -> tuple[str, str]:
    if shut:
        rules = len({(violation.table, violation.rule) for violation in shut})
        do = "does" if rules == 1 else "do"
        return "bad", f"The gate is shut: {many(rules, 'critical rule')} {do} not hold."
    if told:
        return "warn", f"The gate is open; {many(len(told), 'finding')} to look at."
    if not any(result.rows.values()):
        return "warn", "There was nothing to check."
    if result.broken:
        return "good", "The gate is open: what does not hold rests by a decision."
    return "good", "The gate is open: every rule holds that could be checked."


def _tiles(result: Validation) -> list[tuple[str, str, str]]:
    broken = {(v.table, v.rule) for v in result.violations if v.gravity is Gravity.CRITICAL}
    warned = {(v.table, v.rule) for v in result.violations if v.gravity is Gravity.WARNING}
    rested = sum(v.gravity is Gravity.CRITICAL and not v.shuts for v in result.violations)
    return [
        (
            "Rows looked at",
            f"{sum(result.rows.values()):,}",
            f"in {many(sum(map(bool, result.rows.values())), 'table')}",
        ),
        ("Rules judged", f"{result.rules:,}", f"on {many(len(result.days), 'day')}"),
        ("Critical rules broken", f"{len(broken):,}", f"{rested:,} of their findings rest by a decision"),
        ("Warnings", f"{len(warned):,}", "rules that do not hold"),
        (
            "In quarantine",
            f"{result.quarantined + result.unread:,}",
            f"{result.unread:,} could not be read; {many(result.released, 'row')} more may stand"
            + ("" if result.scope.whole else f"; of the whole lake {many(result.held_in_lake, 'record')}"),
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
        else clause(violation.column, violation.says),
        "day": "" if violation.day is None else violation.day.isoformat(),
        "rows": many(violation.observed or 0 if limited else violation.rows, violation.unit.removesuffix("s")),
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
