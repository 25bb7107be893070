"""Prompts that were counted and not looked up in the prefix cache.

Log probabilities of their own tokens were asked for; those need every position computed, so the engine does not read
the cache for them.

Worked example:

    counter               counted  done  scored | not_looked_up
    prefix_cache_queries       49    52       3 |            -3
    prefix_cache_queries       52    52       0 |             -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Cause
from weighbridge.pipeline.engine.facts import QUERIES, Facts


def _exact(facts: Facts) -> int | None:
    return -facts.scored or None if facts.figure.series == QUERIES else None


CAUSE = Cause(
    code="not_looked_up",
    title="Prompts that were not looked up in the prefix cache",
    cure="Nothing is wrong; ask for log probabilities of prompts only where they are needed: nothing is cached then.",
    order=60,
    exact=_exact,
)
