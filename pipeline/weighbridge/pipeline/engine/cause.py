"""What a cause of this gap is, and all of them in the documented order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from weighbridge.pipeline.engine import causes
from weighbridge.pipeline.engine.facts import Facts
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.enumerations import Severity


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a cause may stand for where its amount is not told: from `low` to `high`, both inclusive; null is open."""

    low: int | None
    high: int | None

    def holds(self, amount: int) -> bool:
        """Whether the amount is one of them."""
        return (self.low is None or amount >= self.low) and (self.high is None or amount <= self.high)


def _nothing(_: Facts) -> None:
    return None


def _never(_: Facts) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Cause:
    """A named reason for part of what an engine counted beside its attempts.

    Attributes:
        code: stable, snake_case; also the end of the code of its finding, and the name of its module.
        title: what happened, as a headline.
        cure: what to do, in one sentence.
        order: its place in the documented order.
        exact: the amount, where the evidence states it by itself; null where it does not apply.
        bounds: what it may stand for, where the evidence only bounds it; null where it does not apply.
        provisional: what it explains may yet be told otherwise, as data may still come.
        severity: of its finding.
        doubt: whether an exact amount is less than certain, for attempts may be told under another name.
    """

    code: str
    title: str
    cure: str
    order: int
    exact: Callable[[Facts], int | None] = _nothing
    bounds: Callable[[Facts], Bounds | None] = _nothing
    provisional: bool = False
    severity: Severity = Severity.INFO
    doubt: Callable[[Facts], bool] = _never


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every cause of the folder, in the documented order."""
    return tuple(sorted(declared(causes, "CAUSE", Cause).values(), key=lambda cause: (cause.order, cause.code)))
