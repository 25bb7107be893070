"""What an installation asks of its baselines, and the task table: what a request of a task is declared to take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from weighbridge.pipeline.settings import ALERTS, BASELINE
from weighbridge.schemas.enumerations import Direction, Severity
from weighbridge.schemas.errors import ConfigError


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinePolicy:
    """The `[baseline]` table of the settings.

    Attributes:
        reference_days: days before the judged one that limits are made of.
        season_days: days before the judged one that the season and the scores of whole days are learnt from.
        false_share: q, the share of false cells among those reported in a day.
        request_rate: how many single requests may lie above their limit.
        floor: least cost of what is more than expected, of a cell in a day, for it to be reported.
        tasks: the task table.
    """

    reference_days: int
    season_days: int
    false_share: Fraction
    request_rate: Fraction
    floor: Decimal
    tasks: Mapping[str, TaskBand]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> BaselinePolicy:
        """From the resolved settings table `baseline`.

        Raises:
            ConfigError: a task of one's own lacks a line, or the season is shorter than the reference.
        """
        if table["season_days"] < table["reference_days"]:
            raise ConfigError(
                f"baseline.season_days is {table['season_days']}, less than the {table['reference_days']} of "
                "reference_days; a season is learnt from at least as many days"
            )
        tasks = {name: _band(name, lines) for name, lines in table["tasks"].items()}
        return cls(**{name: value for name, value in table.items() if name != "tasks"}, tasks=tasks)

    @classmethod
    def default(cls) -> BaselinePolicy:
        """As it stands where nothing is set."""
        return cls.of(BASELINE.parse({}, Path()))


def _band(name: str, lines: Mapping[str, Any]) -> TaskBand:
    lacking = [line for line in ("input", "output", "tolerance") if line not in lines]
    if lacking:
        raise ConfigError(
            f"baseline.tasks.{name} has no {lacking[0]}; a task of your own has input, output and tolerance, "
            "such as input = [50, 100], output = [5, 10], tolerance = 0.1"
        )
    return TaskBand(**lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    """The `[alerts]` table of the settings.

    Attributes:
        webhook: address that new findings are posted to; empty: none are. It may hold a secret, so it is shown nowhere.
        timeout_s: seconds the receiver has for an answer.
        attempts: how often a post is tried.
        severity: least severity that is posted.
        textfile: file for the textfile collector of Prometheus, null where there is none.
    """

    webhook: str
    timeout_s: int
    attempts: int
    severity: Severity
    textfile: Path | None

    def __repr__(self) -> str:
        """Everything but the address."""
        shown = "set" if self.webhook else "none"
        return f"AlertPolicy(webhook={shown}, severity={self.severity!s}, textfile={self.textfile!s})"

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> AlertPolicy:
        """From the resolved settings table `alerts`."""
        return cls(**table)

    @classmethod
    def default(cls) -> AlertPolicy:
        """As it stands where nothing is set: no alerts go anywhere."""
        return cls.of(ALERTS.parse({}, Path()))
