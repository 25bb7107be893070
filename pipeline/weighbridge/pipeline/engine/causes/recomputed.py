"""Tokens computed again after preemption: the engine had to free memory, dropped a request and began it anew.

What was scheduled again, less what the prefix cache still had of it, is in no usage and no counter of prompts.

Worked example:

    counter     counted  done | recomputed
    recomputed     1408     0 |       1408
    recomputed     1408  1408 |          -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Cause
from weighbridge.pipeline.engine.facts import RECOMPUTED, Facts
from weighbridge.schemas.enumerations import Severity


def _exact(facts: Facts) -> int | None:
    if facts.figure.series != RECOMPUTED or facts.across.attempts:
        return None
    others = sum(part.known for part in (facts.done, facts.health, facts.warm_up, facts.unfinished))
    again = facts.counted - others
    return again if again > 0 else None


CAUSE = Cause(
    code="recomputed",
    title="Computed again after preemption",
    cure="Give the engine more memory for keys and values, or let fewer requests run at once.",
    order=80,
    exact=_exact,
    severity=Severity.NOTICE,
)
