"""Calls that look after a server: gateways and load balancers send small ones, and the engine counts them as any.

An attempt is one where its task, or the last part of its route, says so (`health`, `health_check`, `readiness`, ...).
Its tokens are no use of anybody's, so they stand beside the attempts.

Worked example:

    counter        counted  done  health | health_checks
    prompt_tokens      108   100       8 |             8
    prompt_tokens      100   100       - |             -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Cause
from weighbridge.pipeline.engine.facts import Facts


def _exact(facts: Facts) -> int | None:
    return facts.health.known or None


CAUSE = Cause(
    code="health_checks",
    title="Calls that look after the server",
    cure="Nothing is wrong; where they cost more than they are worth, ask the server's own health endpoint instead.",
    order=10,
    exact=_exact,
)
