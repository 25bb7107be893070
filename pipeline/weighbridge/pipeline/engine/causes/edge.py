"""Attempts that run across an end of the window: part of what they add was counted in it, and part outside.

Each adds from nothing to all it has. The amount is what is left, where it lies between; the interval stands beside it.

Worked example:

    counter            counted  done  across | edge
    generation_tokens      160   100     100 |   60
    generation_tokens      100   100     100 |    -
    generation_tokens      260   100     100 |    -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import Facts


def _bounds(facts: Facts) -> Bounds | None:
    part = facts.across
    if not part.attempts:
        return None
    boundless = part.unknown and part.high is None
    return Bounds(0, None if boundless else part.known + (part.high or 0) + facts.several)


CAUSE = Cause(
    code="edge",
    title="Attempts that run across the end of the window",
    cure="Nothing is wrong; the day before or after has the other part. Scrape more often for shorter windows.",
    order=120,
    bounds=_bounds,
    provisional=True,
)
