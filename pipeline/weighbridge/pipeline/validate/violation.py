"""What did not hold, as a value: one rule of one table on one day, or one source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from weighbridge.pipeline.validate.codes import CURES, SEVERITY
from weighbridge.pipeline.validate.rule import Gravity, Kind
from weighbridge.schemas.enumerations import FindingOrigin, FindingState
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import NAME

# What stands for the name of a source that is none: it may be text.
NO_NAME = "not-a-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that does not hold.

    Attributes:
        table: the table.
        rule: the name of the rule.
        kind: what was looked at; its value is the code of the finding.
        gravity: what follows.
        column: the column it is about, null where it is about more than one.
        says: what should hold.
        day: the UTC day; null for a table that is not kept by day and for a silent source.
        rows: rows that break it and were not released; of `rows_missing` and `rows_surplus`, files.
        released: rows that break it and were.
        held: how many of `rows` are in quarantine with their place.
        source: who delivered too little, too much or nothing; null for other rules.
        expected, observed: limit and figure of volume and freshness.
        unit: rows, files or days.
        state: the state of its finding: only an open one shuts the gate.
        evidence: attempt ids of the first rows.
        segments: digests of the files they came from.
    """

    table: str
    rule: str
    kind: Kind
    gravity: Gravity
    says: str
    rows: int
    column: str | None = None
    day: date | None = None
    released: int = 0
    held: int = 0
    source: str | None = None
    expected: int | None = None
    observed: int | None = None
    unit: str = "rows"
    state: FindingState = FindingState.OPEN
    evidence: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()

    @property
    def shuts(self) -> bool:
        """Whether it shuts the gate."""
        return self.gravity is Gravity.CRITICAL and self.state is FindingState.OPEN

    @property
    def period(self) -> str:
        """The UTC month of its finding, or all."""
        return "all" if self.day is None else f"{self.day:%Y-%m}"

    def finding(self) -> Finding:
        """It as a finding. A note never becomes one.

        Raises:
            KeyError: it is a note.
        """
        subject = {"table": self.table, "rule": self.rule}
        if self.source is not None:
            subject["source"] = self.source
        if self.day is not None:
            subject["day"] = self.day.isoformat()
        known = self.expected is not None and self.observed is not None
        return Finding(
            code=str(self.kind),
            severity=SEVERITY[self.gravity],
            period=self.period,
            subject=subject,
            rows=self.rows,
            expected=self.expected,
            observed=self.observed,
            difference=(self.observed or 0) - (self.expected or 0) if known else None,
            unit=self.unit,
            evidence=self.evidence[:EVIDENCE_ROWS],
            segments=self.segments[:EVIDENCE_ROWS],
            first_day=self.day,
            last_day=self.day,
            cure=f"{CURES[self.kind]}{self._beyond()}",
            origin=FindingOrigin.VALIDATE,
        )

    def _beyond(self) -> str:
        """What to do where more rows break it than are held, in the same words each day: cures are grouped by them."""
        if not 0 < self.held < self.rows:
            return ""
        return (
            f" More rows break it than are held by their place: `weighbridge quarantine release --table {self.table} "
            f"--rule {self.rule}` and `retry` are about all of them."
        )

    def sentence(self) -> str:
        """It in one line, without any value of a row."""
        when = f" on {self.day}" if self.day else ""
        who = f" of {self.source}" if self.source else ""
        if self.kind is Kind.FRESH:
            return f"{self.table}: {self.source} has been silent for {self.observed} days; {self.expected} are usual"
        if self.kind in {Kind.LOW, Kind.HIGH}:
            return f"{self.table}: {self.observed:,} rows{who}{when}; the limit is {self.expected:,}"
        what = f".{self.column} " if self.column else ": "
        let = f"; {self.released:,} more were released" if self.released else ""
        unit = self.unit.removesuffix("s") if self.rows == 1 else self.unit
        left = f"; {self.rows - self.held:,} of them are not held" if 0 < self.held < self.rows else ""
        return f"{self.table}{what}{self.says}: not so for {self.rows:,} {unit}{when}{let}{left}"


def named(source: object) -> str:
    """A source as it may be shown."""
    return source if isinstance(source, str) and NAME.fullmatch(source) else NO_NAME
