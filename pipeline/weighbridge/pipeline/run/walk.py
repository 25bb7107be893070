"""Going through steps in their order, all units of a step at once, until a gate refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Span, Step, Work
from weighbridge.pipeline.run.turn import patiently


@dataclass(slots=True)
class Walk:
    """What was done.

    Attributes:
        units: step -> the days or months it worked on, in order.
        work: step -> what it did.
        refused: the step whose gate refused, null where none did.
    """

    units: dict[str, tuple[str, ...]] = field(default_factory=dict)
    work: dict[str, Work] = field(default_factory=dict)
    refused: str | None = None

    def count(self, step: Step, name: str) -> int:
        """A count of a step; 0 where it had nothing to do."""
        return self.work.get(step.name, Work()).counts.get(name, 0)


def walk(home: Home, steps: Sequence[Step], *, today: date, span: Span | None = None, wait_s: float = 0) -> Walk:
    """Do what is due of each step, or everything within a span of days.

    Args:
        home: the installation; the caller holds its turn.
        steps: in their order: each reads what the ones before it wrote.
        today: the UTC day it is.
        span: which days; null means what is due.
        wait_s: how long to wait for another writer of the lake, seconds.

    Raises:
        LakeBusyError: something else was writing for longer than that.
        DiskFullError: the disk is full; what was done stays done.
    """
    done = Walk()
    for step in steps:
        units = step.asked(home, span, today)
        work = patiently(lambda step=step, units=units: step.run(home, units, today), wait_s)  # type: ignore[misc]
        done.units[step.name], done.work[step.name] = tuple(units), work
        if work.refused:
            done.refused = step.name
            break
    return done
