"""What an installation asks of its baselines, and the task table: what a request of a task is declared to take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from weighbridge.schemas.enumerations import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBand:
    """The declared tokens of one request of a task.

    Attributes:
        input, output: lowest and highest tokens of a direction.
        tolerance: how far beyond either end is still within the band.
    """

    input: tuple[int, int]
    output: tuple[int, int]
    tolerance: Fraction

    def band(self, direction: Direction) -> tuple[int, int]:
        """The least and the largest whole number of tokens in [low x (1 - tolerance), high x (1 + tolerance)]."""
        low, high = self.input if direction is Direction.INPUT else self.output
        return math.ceil(low * (1 - self.tolerance)), math.floor(high * (1 + self.tolerance))


def _declared(inputs: tuple[int, int], outputs: tuple[int, int], percent: int) -> TaskBand:
    return TaskBand(input=inputs, output=outputs, tolerance=Fraction(percent, 100))


TASKS: Mapping[str, TaskBand] = {
    "short_classification": _declared((50, 100), (5, 10), 10),
    "document_summary": _declared((1000, 2000), (100, 200), 15),
    "code_generation": _declared((200, 500), (50, 150), 20),
    "complex_reasoning": _declared((500, 1000), (100, 300), 25),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinePolicy:
    """The `[baseline]` table of the settings.

    Attributes:
        reference_days: days before the judged one that limits are made of.
        season_days: days before the judged one that the season and the scores of whole days are learnt from.
        false_share: q, the share of false cells among those reported in a day.
        request_rate: how many single requests may lie beyond their limit.
        floor: least cost of what is more than expected, of a cell in a day, for it to be reported.
        tasks: the task table.
    """

    reference_days: int = 28
    season_days: int = 84
    false_share: Fraction = Fraction(5, 100)
    request_rate: Fraction = Fraction(1, 100)
    floor: Decimal = Decimal(1)
    tasks: Mapping[str, TaskBand] = field(default_factory=lambda: TASKS)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> BaselinePolicy:
        """From the resolved settings table `baseline`."""
        tasks = {
            name: TaskBand(
                input=tuple(lines["input"]),
                output=tuple(lines["output"]),
                tolerance=Fraction(lines["tolerance"]),
            )
            for name, lines in table["tasks"].items()
        }
        return cls(
            reference_days=table["reference_days"],
            season_days=table["season_days"],
            false_share=Fraction(table["false_share"]),
            request_rate=Fraction(table["request_rate"]),
            floor=Decimal(table["floor"]),
            tasks=tasks,
        )
