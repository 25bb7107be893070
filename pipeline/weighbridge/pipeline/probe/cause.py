"""What a cause of a parting is, and all of them in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from weighbridge.pipeline.probe import causes
from weighbridge.pipeline.probe.case import Against, Case, Weight
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.enumerations import Direction, Severity

# What a cause makes of a comparison: the tokens by which the weight is off because of it; 0 where it plays no part.
Amount = Callable[[Case], int]
_BOTH = (Direction.INPUT, Direction.OUTPUT)


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a difference once the guesses that were taken are off.

    Attributes:
        case: the comparison.
        tokens: what is left of it.
        told: all comparisons of the series in which something was said.
        rest: what is left of each of them, in their order.
    """

    case: Case
    tokens: int
    told: Sequence[Case]
    rest: Sequence[int]

    @property
    def due(self) -> int:
        """What should have been said, given the guesses that were taken."""
        return (self.case.observed or 0) - self.tokens


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a weight parts from what it is held against.

    Attributes:
        code: stable, snake_case; that of reconciliation where one fits.
        title: what happened, as a headline.
        cure: what to do, in one sentence.
        order: of two that explain as much, the lower goes first.
        directions, weights: where it can occur.
        amounts: exact amounts it may stand for, each a guess of its own.
        begins: whether it can be found here first; once found, it is looked for everywhere.
        learn: guesses that are made from the differences themselves; each must explain at least three of them.
        names: whether it names what no guess explains, this one difference alone.
        severity, engine_severity: of its finding, where usage is off and where the engine alone is.
        engine_more: usage that falls short of the engine means that the engine did more, and nothing of usage.
    """

    code: str
    title: str
    cure: str
    order: int
    directions: tuple[Direction, ...] = _BOTH
    weights: tuple[Weight, ...] = (Weight.USAGE,)
    amounts: tuple[Amount, ...] = ()
    begins: Callable[[Case], bool] = lambda _: True
    learn: Callable[[Left], Sequence[Amount]] | None = None
    names: Callable[[Left], bool] | None = None
    severity: Severity = Severity.WARNING
    engine_severity: Severity = Severity.NOTICE
    engine_more: bool = False

    def applies(self, case: Case) -> bool:
        """Whether it can occur here."""
        return case.direction in self.directions and case.weight in self.weights

    def weighs(self, case: Case) -> Severity:
        """How much it matters in this comparison."""
        more = self.engine_more and case.against is Against.ENGINE and case.gap < 0
        return self.engine_severity if more or case.weight is Weight.ENGINE else self.severity


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every cause of the folder, in order."""
    return tuple(sorted(declared(causes, "CAUSE", Cause).values(), key=lambda cause: (cause.order, cause.code)))


def cause(code: str) -> Cause:
    """The cause of a code."""
    return next(one for one in all_causes() if one.code == code)


def added(case: Case, part: str) -> int:
    """What a part of the prompt adds by the recount; 0 where it is not there or cannot be told."""
    return 0 if case.seen.prompt is None else case.seen.prompt.added.get(part, 0)
