"""What is judged and what came of it: measures become sheets of counts, verdicts about them become violations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

import polars as pl

from weighbridge.pipeline.validate.arrivals import MOST_AHEAD
from weighbridge.pipeline.validate.hold import held
from weighbridge.pipeline.validate.measure import Measured, frame
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule
from weighbridge.pipeline.validate.suite import NoneBreaks, NotBelow, Sheet, Verdict
from weighbridge.pipeline.validate.violation import Violation
from weighbridge.schemas.enumerations import FindingState
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.tables import TABLES


def sheets_of(measured: Sequence[Measured]) -> Iterator[Sheet]:
    """One sheet of counts per table, and one of arrivals where sources keep coming."""
    for found in measured:
        if found.rows or found.table == "segment":
            counts = frame(found)
            columns = {name: counts[name].to_list() for name in counts.columns if name != "day"}
            expected = [NoneBreaks(rule.name, rule.gravity, rule.says) for rule in found.rules if found.asked(rule)]
            yield Sheet(found.table, columns, expected)
        if found.volumes or found.freshnesses:
            yield _arrivals(found)


_SUFFIX = " arrivals"


def _arrivals(found: Measured) -> Sheet:
    volumes, fresh = found.volumes, found.freshnesses
    none_v: list[int | None] = [None] * len(volumes)
    none_f: list[int | None] = [None] * len(fresh)
    columns = {
        "rows": [volume.rows for volume in volumes] + none_f,
        "low": [volume.low for volume in volumes] + none_f,
        "high": [volume.high for volume in volumes] + none_f,
        "ahead": [volume.ahead for volume in volumes] + none_f,
        "most ahead": [MOST_AHEAD] * len(volumes) + none_f,
        "silent": none_v + [each.silent for each in fresh],
        "limit": none_v + [each.limit for each in fresh],
    }
    warning = Gravity.WARNING
    return Sheet(
        found.table + _SUFFIX,
        columns,
        (
            NotBelow(str(Kind.LOW), warning, "is not far below what the days of this source have had", "rows", "low"),
            NotBelow(str(Kind.HIGH), warning, "is not far above what the days of this source have had", "high", "rows"),
            NotBelow(str(Kind.AHEAD), warning, "is of no day that is still to come", "most ahead", "ahead"),
            NotBelow(str(Kind.FRESH), warning, "is not silent for longer than is usual", "limit", "silent"),
        ),
    )


def violations_of(
    measured: Sequence[Measured], verdicts: Sequence[Verdict], lives: pl.DataFrame
) -> tuple[Violation, ...]:
    """What does not hold, gravest first."""
    by_table = {found.table: found for found in measured}
    out: list[Violation] = []
    for verdict in verdicts:
        if verdict.holds:
            continue
        table = verdict.sheet.removesuffix(_SUFFIX)
        found = by_table[table]
        if verdict.sheet.endswith(_SUFFIX):
            out += [_of_arrival(found, Kind(verdict.rule), row) for row in verdict.rows]
        else:
            (rule,) = (rule for rule in found.rules if rule.name == verdict.rule)
            out += _of_rule(found, rule)
    state = dict(lives.select("finding_id", "state").iter_rows())
    known = [
        violation
        if violation.gravity is Gravity.INFO
        else replace(violation, state=FindingState(state.get(violation.finding().finding_id, FindingState.OPEN)))
        for violation in out
    ]
    order = list(Gravity)
    tables = list(TABLES)
    return tuple(
        sorted(
            known,
            key=lambda v: (order.index(v.gravity), tables.index(v.table), v.rule, v.day or date.min, v.source or ""),
        )
    )


def _of_rule(found: Measured, rule: Rule) -> Iterator[Violation]:
    for day in sorted(found.counted, key=lambda day: day or date.min):
        rows = found.open(day, rule)
        if not rows:
            continue
        offence = found.offences.get((day, rule.name))
        files = tuple(sorted(found.files.get(rule.name, {})))
        places = None if offence is None else offence.places
        yield Violation(
            table=found.table,
            rule=rule.name,
            kind=rule.kind,
            gravity=rule.gravity,
            says=rule.says,
            column=rule.column,
            day=day,
            rows=rows,
            released=0 if offence is None else offence.released,
            held=0 if offence is None else held(offence).height,
            unit="files" if files else "rows",
            evidence=() if places is None else _attempts(places),
            segments=files if places is None else tuple(places["segment"].drop_nulls().unique(maintain_order=True)),
        )


def _attempts(places: pl.DataFrame) -> tuple[str, ...]:
    keys = places.select("attempt_hi", "attempt_lo").drop_nulls().unique(maintain_order=True).head(EVIDENCE_ROWS)
    return tuple(sorted(AttemptKey(hi, lo).to_hex() for hi, lo in keys.iter_rows()))


def _of_arrival(found: Measured, kind: Kind, row: int) -> Violation:
    about = {"table": found.table, "rule": str(kind), "kind": kind, "gravity": Gravity.WARNING}
    if kind is Kind.FRESH:
        fresh = found.freshnesses[row - len(found.volumes)]
        return Violation(
            **about,  # type: ignore[arg-type]
            says="is not silent for longer than is usual",
            rows=1,
            source=fresh.source,
            expected=fresh.limit,
            observed=fresh.silent,
            unit="days",
        )
    volume = found.volumes[row]
    if kind is Kind.AHEAD:
        return Violation(
            **about,  # type: ignore[arg-type]
            says="is of no day that is still to come",
            day=volume.day,
            rows=volume.rows,
            source=volume.source,
            expected=MOST_AHEAD,
            observed=volume.ahead,
            unit="days",
        )
    return Violation(
        **about,  # type: ignore[arg-type]
        says="is about as many as the days of this source have had",
        day=volume.day,
        rows=volume.rows,
        source=volume.source,
        expected=volume.low if kind is Kind.LOW else volume.high,
        observed=volume.rows,
    )
