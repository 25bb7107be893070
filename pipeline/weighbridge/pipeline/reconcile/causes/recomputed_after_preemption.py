"""Tokens computed again after preemption stand on one side only.

An engine that runs out of memory drops a request and computes it anew. Usage counts a prompt once; an observer that
adds up what was processed counts it again, and the gap is negative by that. A report that counts it again is off the
other way round. Applies to what an engine counted (grade G1).

Worked example (input):

    grade  observed  reported  recomputed | recomputed_after_preemption
       G1      1368       600         768 |                        -768
       G1       600      1368         768 |                         768
       G1       600       600         768 |                           -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    again = nw.when(nw.col("grade") == Grade.G1).then(nw.col("recomputed"))
    return (
        Candidate(tokens(0) - again, TokenClass.INPUT_UNCACHED),
        Candidate(again, TokenClass.INPUT_UNCACHED),
    )


CAUSE = Cause(
    code="recomputed_after_preemption",
    title="Tokens computed again after preemption",
    directions=(Direction.INPUT,),
    cure="Give the engine more memory for keys and values, or let fewer requests run at once; usage counts them once.",
    structural=False,
    order=96,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
