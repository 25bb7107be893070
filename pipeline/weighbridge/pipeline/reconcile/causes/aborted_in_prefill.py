"""The client went away before the first token: its prompt was worked on, and nothing at all is said about it.

No usage, no finished request and no counter of tokens has such a prompt. What is known of it comes from the prefix
cache, which was asked for it when it was scheduled (see `engine_share`).

Worked example (input):

    grade  attempt_status  missing  observed  reported  generated | aborted_in_prefill
       G1         aborted     true      3912         -          0 |              -3912
       G1         aborted     true        40         -         10 |                  -
       G1       succeeded     true        40         -          0 |                  -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.pipeline.reconcile.match.side import left_in_prefill
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    nothing_came = left_in_prefill() & nw.col("missing") & (nw.col("observed") > 0)
    return (Candidate(nw.when(nothing_came).then(tokens(0) - nw.col("observed")), TokenClass.INPUT_UNCACHED),)


CAUSE = Cause(
    code="aborted_in_prefill",
    title="The client went away before the first token",
    directions=(Direction.INPUT,),
    cure="Give prompts of that length more time, or refuse them at the door: they are computed, and nobody is told.",
    structural=True,
    order=6,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
