"""Laws that need neither tokenizer nor engine: the same words weigh the same in every place, twice weighs double.

plain 15, longer 22: the addition weighs 7      system 24, system_longer 38: there it weighs 14, twice as much
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weighbridge.pipeline.probe.case import Against, Weight
from weighbridge.pipeline.probe.cause import cause
from weighbridge.pipeline.probe.explain import Parting
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.schemas.enumerations import Confidence, Direction, Severity

# Where counts are multiplied by a factor and rounded, growth is uneven by less than two: four roundings, each within
# half a token or one side of it.
ROUNDING = 1
# How often the words were counted -> why.
_CODES: Mapping[str, Mapping[int, str]] = {
    "system_longer": {0: "system_not_counted", 2: "system_counted_twice"},
    "tools_longer": {0: "tools_not_counted"},
    "history_longer": {0: "history_not_counted", 2: "history_duplicated"},
}


def paired(seen: Sequence[Observation]) -> list[Parting]:
    """Partings of the steps whose prompt could not be counted here, so that only its growth can be judged."""
    by_name = {one.name: one for one in seen}
    found = []
    for one in seen:
        if one.step.grows_by is None or one.counted(Direction.INPUT) is not None:
            continue
        told = [None if name not in by_name else by_name[name].usage.input for name in one.step.grows_by]
        if None in told:
            continue
        start, end, like_start, like_end = (count or 0 for count in told)
        grown, expected = end - start, like_end - like_start
        if grown != expected:
            found.append(_parting(one, start, grown, expected))
    return found


def _parting(one: Observation, start: int, grown: int, expected: int) -> Parting:
    times = grown // expected if expected > 0 and grown % expected == 0 else -1
    code = _CODES.get(one.step.name, {}).get(times, "unexplained")
    if one.step.name == "history_again" and grown - expected > ROUNDING:
        code = "history_duplicated"  # what was there before is counted again with what came
    why = cause(code)
    rounded = code == "unexplained" and abs(grown - expected) <= ROUNDING
    return Parting(
        step=one.name,
        direction=Direction.INPUT,
        cause=why,
        weights=(Weight.USAGE,),
        against=Against.GROWTH,
        expected=start + expected,
        observed=start + grown,
        difference=grown - expected,
        share=grown - expected,
        confidence=Confidence.NONE if code == "unexplained" else Confidence.PROBABLE,
        alternatives=(),
        severity=Severity.NOTICE if rounded else why.severity,
    )
