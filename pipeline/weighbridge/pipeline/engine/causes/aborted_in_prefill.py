"""Prompts that left before their first token: no counter of tokens has them, only the prefix cache was asked for them.

An engine looks a prompt up when it schedules it, and counts it when its first token is there. So what was looked up
less what was counted are prompts that left in between. Prompts whose tokens' log probabilities were asked for are
counted without being looked up; they are added.

Worked example:

    counter               counted  prompt  scored | aborted_in_prefill
    prefix_cache_queries     8355     741       0 |               7614
    prefix_cache_queries       49      52       3 |                  -
    prefix_cache_queries       60      52       3 |                 11
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Cause
from weighbridge.pipeline.engine.facts import PROMPT, QUERIES, Facts
from weighbridge.schemas.enumerations import Severity


def _exact(facts: Facts) -> int | None:
    prompt = facts.window.counts.get(PROMPT)
    if facts.figure.series != QUERIES or prompt is None or not facts.whole:
        return None
    left = facts.counted - prompt + facts.scored
    return left if left > 0 else None


CAUSE = Cause(
    code="aborted_in_prefill",
    title="Prompts that left before their first token",
    cure="Give prompts of that length more time, or refuse them at the door: they are computed, and nobody is told.",
    order=50,
    exact=_exact,
    severity=Severity.NOTICE,
)
