"""What a cause is, and all of them in the documented order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from weighbridge.pipeline.reconcile import causes
from weighbridge.pipeline.reconcile.frames import Expr
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One exact amount a cause may stand for.

    Attributes:
        amount: signed tokens, in the sense of the gap (reported - observed); null where it cannot apply.
        priced_as: the class whose price these tokens were charged at, or would have been.
    """

    amount: Expr
    priced_as: TokenClass


@dataclass(frozen=True, slots=True)
class Cause:
    """A named reason for part of a gap.

    Attributes:
        code: stable, snake_case; also the code of its finding, and the name of its module.
        title: what happened, as a headline.
        directions: where it can occur.
        cure: what to do, in one sentence.
        structural: true where the evidence states the amount by itself. Structural causes are taken off the gap
            first and are CERTAIN; the others are candidates for what is left.
        order: its place in the documented order; breaks ties between explanations of the same size.
        candidate: the exact amounts it may stand for in one direction, over the columns of `side`. A structural
            cause gives exactly one.
        severity: of its finding.
        at_stake: false where the report is right as it stands and only the observation falls short of it, or a
            convention moves the same token on every answer: then the finding puts no money in question.
    """

    code: str
    title: str
    directions: tuple[Direction, ...]
    cure: str
    structural: bool
    order: int
    candidate: Callable[[Direction], tuple[Candidate, ...]]
    severity: Severity = Severity.WARNING
    at_stake: bool = True


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every cause of the folder, in the documented order."""
    return tuple(sorted(declared(causes, "CAUSE", Cause).values(), key=lambda cause: (cause.order, cause.code)))


def causes_of(direction: Direction, *, structural: bool) -> tuple[Cause, ...]:
    """The structural causes, or the candidate ones, that can occur in one direction."""
    return tuple(c for c in all_causes() if direction in c.directions and c.structural is structural)
