"""The server was started anew: what the old one counted after its last scrape nobody knows.

The counters of the window are then a lower bound, and fall short of its attempts by what was lost.

Worked example:

    counter            counted  done  reset | counter_reset
    generation_tokens       20   140   true |          -120
    generation_tokens       20   140  false |             -
    generation_tokens      160   140   true |             -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import Facts
from weighbridge.schemas.enumerations import Severity


def _bounds(facts: Facts) -> Bounds | None:
    if not facts.window.reset:
        return None
    parts = (facts.done, facts.health, facts.warm_up, facts.unfinished, facts.across)
    boundless = any(part.unknown and part.high is None for part in parts)
    most = sum(part.known + (part.high or 0) for part in parts) + facts.more + facts.several
    return Bounds(None if boundless else -most, 0)


CAUSE = Cause(
    code="counter_reset",
    title="Counted before a restart and never read",
    cure="Scrape servers more often, and once more before they are stopped.",
    order=90,
    bounds=_bounds,
    severity=Severity.NOTICE,
)
