"""Calls that were answered with an error: nobody knows what the engine had done by then, nothing or all of it.

Where the engine's own record of the request is at hand, its figures are those of the attempt, and no gap is left here.

Worked example:

    counter            counted  done  failed | failed_after_generation
    generation_tokens      419   100       1 |                     319
    generation_tokens      100   100       1 |                       -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import RECOMPUTED, Facts
from weighbridge.schemas.enumerations import Severity


def _bounds(facts: Facts) -> Bounds | None:
    told = facts.failed.attempts and facts.figure.series != RECOMPUTED
    return Bounds(0, None) if told else None


CAUSE = Cause(
    code="failed_after_generation",
    title="Computed for calls that failed",
    cure="Look at what these calls failed of (arguments of tools, schemas): their tokens were computed for nothing.",
    order=100,
    bounds=_bounds,
    severity=Severity.NOTICE,
)
