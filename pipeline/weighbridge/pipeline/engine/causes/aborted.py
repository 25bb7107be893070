"""Tokens of requests that never finished: their clients went away, and no usage says what had been computed by then.

An engine that keeps sums of finished requests says by itself how many tokens belong to others. Where it does not, the
figures of aborted attempts are added, as far as they are known; what is not known is at least what was delivered, and
at most what was asked for.

Worked example:

    counter            counted  done  finished  unfinished  unknown  low  high | aborted
    generation_tokens      581     -         0           -        4   20     - |     581
    generation_tokens      581   400         -         181        -    -     - |     181
    generation_tokens      581   400         -           -        1   10  2000 |     181
    generation_tokens      405   400         -           -        1   10  2000 |       -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import CACHED, COMPUTED, FINISHED, PROMPT, QUERIES, RECOMPUTED, Facts
from weighbridge.schemas.enumerations import Severity


def _never_finished(facts: Facts) -> int | None:
    """What the engine counted and no finished request has; null where it keeps no such sum."""
    if not facts.whole or facts.finished is None or facts.figure.series == FINISHED:
        return None
    # A prompt that left in prefill was looked up, but counted nowhere else: it is no part of this.
    counted = facts.window.counts.get(PROMPT) if facts.figure.series == QUERIES else facts.counted
    return None if counted is None else counted - facts.finished


def _exact(facts: Facts) -> int | None:
    told = _never_finished(facts)
    return (facts.unfinished.known if told is None else told) or None


def _bounds(facts: Facts) -> Bounds | None:
    part = facts.unfinished
    if not part.unknown or _never_finished(facts) is not None or facts.figure.series == RECOMPUTED:
        return None
    # Of a prompt all or nothing was counted, so what was cached of it is not bounded by what was delivered.
    low = 0 if facts.figure.series in (PROMPT, QUERIES, CACHED, COMPUTED) else part.low
    return Bounds(low, part.high)


CAUSE = Cause(
    code="aborted",
    title="Computed for requests that never finished",
    cure="Stop sending requests that are given up, or end them sooner; their tokens were computed and are in no usage.",
    order=40,
    exact=_exact,
    bounds=_bounds,
    severity=Severity.NOTICE,
)
