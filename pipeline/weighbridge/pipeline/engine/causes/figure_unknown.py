"""Attempts that came to their end and do not say this figure: streams without usage, caches that are not shown.

What they add is nothing, or up to the figure that holds it, where that one is known.

Worked example:

    counter               counted  done  unknown_done  high_done | figure_unknown
    prompt_tokens             453   400             1          - |             53
    prompt_tokens_cached      384     0             1        401 |            384
    prompt_tokens_cached      500     0             1        401 |              -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import RECOMPUTED, Facts


def _bounds(facts: Facts) -> Bounds | None:
    if facts.figure.series == RECOMPUTED:
        return None
    parts = [part for part in (facts.done, facts.health, facts.warm_up) if part.unknown]
    if not parts:
        return None
    return Bounds(0, None if any(part.high is None for part in parts) else sum(part.high or 0 for part in parts))


CAUSE = Cause(
    code="figure_unknown",
    title="Attempts that do not say this figure",
    cure="Ask for usage in every call and let the server show cached tokens, or read the engine's own records.",
    order=110,
    bounds=_bounds,
)
