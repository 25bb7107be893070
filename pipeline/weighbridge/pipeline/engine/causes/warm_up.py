"""Tokens a server computed before anybody used it.

Calls whose task or route says so (`warm_up`) are told exactly. Beyond them, in a window that begins when counting began
and in which no attempt came to its end, whatever finished was a warm-up nobody recorded.

Worked example:

    counter        counted  done  warm_up  starts  finished  unseen | warm_up
    prompt_tokens      116   100       16   false       116       0 |      16
    prompt_tokens       16     -        -    true        16       3 |      16
    prompt_tokens       16     -        -   false        16       3 |       -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import Facts


def _unrecorded(facts: Facts) -> bool:
    nobody = not (facts.done.attempts or facts.unfinished.attempts or facts.failed.attempts)
    return facts.window.starts and facts.whole and nobody


def _exact(facts: Facts) -> int | None:
    unrecorded = 0
    if _unrecorded(facts) and facts.finished is not None:
        unrecorded = facts.finished - facts.health.known - facts.warm_up.known
    return (facts.warm_up.known + unrecorded) or None


def _bounds(facts: Facts) -> Bounds | None:
    return Bounds(0, None) if _unrecorded(facts) and facts.finished is None else None


CAUSE = Cause(
    code="warm_up",
    title="Computed before anybody used the server",
    cure="Nothing is wrong; mark warm-up calls with the task warm_up, so that they are told from calls nobody saw.",
    order=20,
    exact=_exact,
    bounds=_bounds,
)
