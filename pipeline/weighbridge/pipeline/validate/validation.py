"""What a validation came to, as a value: counts, names and paths, and no value of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from weighbridge.pipeline.validate.holdings import Holding
from weighbridge.pipeline.validate.rule import Gravity
from weighbridge.pipeline.validate.scope import Scope
from weighbridge.pipeline.validate.violation import Violation


@dataclass(frozen=True, slots=True)
class Unjudged:
    """What was not judged, and why."""

    table: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The outcome.

    Attributes:
        gate: whether it is open: no critical rule is broken whose finding is open.
        violations: what does not hold, gravest first.
        unjudged: what was not judged, and why.
        rows: table -> how many of its rows were looked at.
        days: the UTC days that were looked at.
        rules: how many rules were judged.
        quarantined: how many rows the quarantine holds of those looked at, once for each rule they break.
        released: how many rows a person let stand of those that break a rule, once for each rule.
        holdings: what the quarantine holds on these days, records that could not be read among it.
        findings: how many findings there are of what was looked at.
        scope: what was asked for.
        held_in_lake: how many records the quarantine holds of the whole lake, once for each reason.
        page: the page, null where none was asked for.
    """

    gate: bool
    violations: tuple[Violation, ...]
    unjudged: tuple[Unjudged, ...]
    rows: Mapping[str, int]
    days: tuple[date, ...]
    rules: int
    quarantined: int
    released: int
    holdings: tuple[Holding, ...]
    findings: int
    scope: Scope
    held_in_lake: int
    page: Path | None = None

    @property
    def broken(self) -> tuple[Violation, ...]:
        """What does not hold and is more than a note."""
        return tuple(violation for violation in self.violations if violation.gravity is not Gravity.INFO)

    @property
    def unread(self) -> int:
        """How many records are held because they could not be read; one with several reasons counts for each."""
        return sum(holding.records for holding in self.holdings if not holding.read)

    @property
    def why(self) -> tuple[str, ...]:
        """Why the gate is shut, a line each; empty where it is open."""
        return tuple(violation.sentence() for violation in self.violations if violation.shuts)
