"""Tokens that were computed and then cut off with a stop string are missing from the report.

An engine counts every token it verified; a server that removes the stop string, and whatever the last step brought
beyond it, may report only what is left. The gap is then negative by the withheld tokens. A recount of the delivered
text cannot see them, so this applies to what an engine counted (grade G1).

Worked example (output):

    grade  observed  reported  withheld_stop_trimmed | stop_trimmed
       G1         9         7                      2 |           -2
       G1         9         9                      2 |            -
       G1         9         8                      2 |            -
       G3         9         7                      2 |            -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    trimmed = nw.when(nw.col("grade") == Grade.G1).then(tokens(0) - nw.col("withheld_stop_trimmed"))
    return (Candidate(trimmed, TokenClass.OUTPUT_VISIBLE),)


CAUSE = Cause(
    code="stop_trimmed",
    title="Tokens cut off with a stop string and not reported",
    directions=(Direction.OUTPUT,),
    cure="Nothing is owed for them; where your own engine bills by usage, count what it computed, not what was left.",
    structural=False,
    order=90,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
