"""One weight held against another at one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from weighbridge.pipeline.probe.observation import Observation
from weighbridge.pipeline.probe.step import FIRST
from weighbridge.schemas.enumerations import Direction, FinishReason


class Weight(StrEnum):
    """Who counted."""

    USAGE = "usage"
    RECOUNT = "recount"
    ENGINE = "engine"


class Against(StrEnum):
    """What a weight is held against, the best first."""

    RECOUNT = "recount"
    LIMIT = "limit"  # an answer that was cut off has as many tokens as it may have
    ENGINE = "engine"
    CONTENT = "content"  # what the first step was reported to have, and the words beyond it, counted here
    PLAIN = "plain"  # what was reported for the same prompt at the first step
    GROWTH = "growth"  # what the same words weighed elsewhere


@dataclass(frozen=True, slots=True)
class Case:
    """A comparison.

    Attributes:
        seen: the step.
        direction: input or output.
        weight: what is held against it.
        against, expected: against what.
        observed: what it says; null where it says nothing.
    """

    seen: Observation
    direction: Direction
    weight: Weight
    against: Against
    expected: int
    observed: int | None

    @property
    def gap(self) -> int:
        """observed - expected; nothing said is all of it missing."""
        return (self.observed or 0) - self.expected


def usage_cases(seen: Sequence[Observation], direction: Direction) -> list[Case]:
    """Usage against the best that is known at each step; steps where nothing is known are left out."""
    return list(_usage(seen, direction))


def engine_cases(cases: Sequence[Case], direction: Direction) -> list[Case]:
    """The engine against what usage was held against, at steps where the two do not say the same."""
    found = []
    for case in cases:
        counted = case.seen.computed(direction)
        if case.against is Against.ENGINE or case.observed is None:
            continue
        if counted is not None and counted != case.observed:
            found.append(Case(case.seen, direction, Weight.ENGINE, case.against, case.expected, counted))
    return found


def _usage(seen: Sequence[Observation], direction: Direction) -> Iterator[Case]:
    first = next((one for one in seen if one.name == FIRST), None)
    for one in seen:
        best = _best(one, first, direction)
        if best is not None:
            against, expected = best
            yield Case(one, direction, Weight.USAGE, against, expected, one.told(direction))


def _best(one: Observation, first: Observation | None, direction: Direction) -> tuple[Against, int] | None:
    counted, engine = one.counted(direction), one.computed(direction)
    if direction is Direction.OUTPUT:
        cut = one.answer.finish is FinishReason.LENGTH and one.answer.choices == 1
        told = one.told(direction)
        if cut and (told is None or told >= one.answer.limit):
            return Against.LIMIT, one.answer.limit
        if counted is not None and not cut:
            return Against.RECOUNT, counted
        return None if engine is None else (Against.ENGINE, engine)
    if counted is not None:
        # Templates word a request to think each in their own way: such a prompt cannot be counted here.
        return None if one.step.name == "reasoning" else (Against.RECOUNT, counted)
    if engine is not None:
        return Against.ENGINE, engine
    if first is None or one is first or first.usage.input is None:
        return None
    if one.step.text_only and one.prompt is not None and first.prompt is not None:
        return Against.CONTENT, first.usage.input + one.prompt.content - first.prompt.content
    return (Against.PLAIN, first.usage.input) if one.step.same_prompt else None
