"""The call was answered with an error after the engine had worked for it: a 400 may have cost as much as an answer.

Arguments of a tool that do not fit their schema, a filter behind the model, a server that failed on its own answer:
the tokens were computed, and an error carries no usage.

Worked example (output):

    grade  attempt_status  missing  observed  reported | failed_after_generation
       G1        rejected     true       319         - |                    -319
       G1          failed     true       319         - |                    -319
       G1       succeeded     true       319         - |                       -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.pipeline.reconcile.match.side import has_failed
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    wasted = has_failed() & nw.col("missing") & (nw.col("observed") > 0)
    return (Candidate(nw.when(wasted).then(tokens(0) - nw.col("observed")), priced_as),)


CAUSE = Cause(
    code="failed_after_generation",
    title="Computed for a call that failed",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Look at what these calls failed of (arguments of tools, schemas, filters): they cost what an answer costs.",
    structural=True,
    order=7,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
