"""All partings of a probe, in the order of its steps."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.pipeline.probe.case import Against, engine_cases, usage_cases
from weighbridge.pipeline.probe.explain import Parting, bare, explain
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.pipeline.probe.pairs import paired
from weighbridge.schemas.enumerations import Direction, Severity, Verdict

_SCALE = tuple(Severity)


def judge(seen: Sequence[Observation]) -> list[Parting]:
    """The partings: usage against the best that is known, the engine where it says other than usage, and growth.

    A difference by growth is left out where the same cause was found by a count already. A report that contradicts
    itself is told where no difference tells why.
    """
    found: list[Parting] = []
    for direction in Direction:
        told = usage_cases(seen, direction)
        # What moves usage away from a recount need not move it away from the engine.
        found += explain([case for case in told if case.against is not Against.ENGINE])
        found += explain([case for case in told if case.against is Against.ENGINE])
        found += explain(engine_cases(told, direction))
    found += _silent(seen, found)
    found += _contradictory(seen, found)
    named = {parting.cause.code for parting in found}
    if "constant_factor" not in named:  # it is rounded, so growth is not even
        found += [parting for parting in paired(seen) if parting.cause.code not in named]
    place = {one.name: at for at, one in enumerate(seen)}
    return sorted(found, key=lambda parting: (place[parting.step], parting.direction is Direction.OUTPUT))


def first(partings: Sequence[Parting]) -> Parting | None:
    """The first that is at least a warning; where there is none, the first of all."""
    heavy = [one for one in partings if is_heavy(one)]
    return next(iter([*heavy, *partings]), None)


def is_heavy(parting: Parting) -> bool:
    """Whether it is at least a warning."""
    return _SCALE.index(parting.severity) >= _SCALE.index(Severity.WARNING)


def _silent(seen: Sequence[Observation], found: Sequence[Parting]) -> list[Parting]:
    """Usage that did not come although it was asked for, where nothing else was there to hold against it."""
    known = {(parting.step, parting.direction) for parting in found}
    return [
        bare(one, direction, "usage_missing")
        for one in seen
        for direction in Direction
        if one.told(direction) is None and not one.unasked and (one.name, direction) not in known
    ]


def _contradictory(seen: Sequence[Observation], found: Sequence[Parting]) -> list[Parting]:
    """The first report that contradicts itself, unless a parting before it or at it says why."""
    parted = {parting.step for parting in found if is_heavy(parting)}
    for one in seen:
        if one.name in parted:
            break
        if one.usage.verdict is Verdict.CONTRADICTORY:
            return [bare(one, Direction.INPUT, "usage_contradictory")]
    return []
