"""The report counts only the positions that a sparse strategy kept.

The engine read the whole prompt; a press then evicted the entries of some positions in every layer and head. A server
that reports the length of its cache leaves those out. How many positions that were follows from the entries evicted and
appended, where it is a whole number. Applies to what an engine counted (grade G1).

Worked example (input):

    grade  observed  reported  pruned | sparse_counted
       G1       256       128     128 |           -128
       G1       256       256     128 |              -
       G3       256       128     128 |              -
       G1       256       129     128 |              -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    dropped = nw.when(nw.col("grade") == Grade.G1).then(tokens(0) - nw.col("pruned"))
    return (Candidate(dropped, TokenClass.INPUT_UNCACHED),)


CAUSE = Cause(
    code="sparse_counted",
    title="Only the positions a sparse strategy kept were counted",
    directions=(Direction.INPUT,),
    cure="Report the tokens of the prompt, not the length of the cache after eviction; all of them were computed.",
    structural=False,
    order=92,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
