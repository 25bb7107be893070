"""What came out of a contract: check by check, in words that hold no text of a prompt or an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a check came out."""

    HELD = "held"
    BROKEN = "broken"
    NOT_OFFERED = "not_offered"


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that does not hold: its code, and what was found, what is wanted, what to do."""

    code: str
    found: str


@dataclass(frozen=True, slots=True)
class Checked:
    """One check.

    Attributes:
        name, outcome: which, and how it came out.
        broken: what does not hold.
        notes: why it is not offered, or which counts the adapter leaves unknown.
    """

    name: str
    outcome: Outcome
    broken: tuple[Broken, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A whole contract."""

    engine: str
    checks: tuple[Checked, ...]

    @property
    def proved(self) -> bool:
        """Whether nothing is broken, and plain calls were among what was checked."""
        outcomes = {check.name: check.outcome for check in self.checks}
        return Outcome.BROKEN not in outcomes.values() and outcomes.get("plain") is Outcome.HELD

    @property
    def broken(self) -> tuple[Broken, ...]:
        """All that does not hold."""
        return tuple(each for check in self.checks for each in check.broken)

    def text(self) -> str:
        """The report, one check a line, what is broken below it."""
        lines = [f"contract of {self.engine}"]
        for check in self.checks:
            lines.append(f"  {check.name:<16} {check.outcome.replace('_', ' ')}")
            lines += [f"      {each.code}: {each.found}" for each in check.broken]
            lines += [f"      {note}" for note in check.notes]
        lines.append(f"  {'proved' if self.proved else 'not proved'}")
        return "\n".join(lines) + "\n"
