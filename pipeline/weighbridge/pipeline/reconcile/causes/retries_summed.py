"""One report holds the tokens of several tries of a request.

A client that repeats a failed call and reports once may report the sum of all tries. The amount is what was observed of
the other attempts of the request that have no usage report of their own.

Worked example (input):

    observed  reported  tries | retries_summed
        1000      1600    600 |            600
        1000      1000    600 |              -
        1000      1600      - |              -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    return (Candidate(nw.col("tries"), priced_as),)


CAUSE = Cause(
    code="retries_summed",
    title="Several tries of a request reported as one",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Have the client report each try by itself, so that usage that failed calls cost can be told apart.",
    structural=False,
    order=38,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
