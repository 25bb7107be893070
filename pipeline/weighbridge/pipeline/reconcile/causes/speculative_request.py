"""Usage was reported for a copy of a request that ran at the same time as the one that was observed.

Hedging sends a request twice and takes the faster answer; the slower one is computed and paid all the same. It is told
from a retry by its time: it begins before the observed one ends.

Worked example (input):

    observed  reported     relation | speculative_request
           -       800  speculative |                 800
           -         0  speculative |                   0
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.match.relation import Relation, is_related
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    own = nw.col("reported") - nw.col("repeated")
    return (Candidate(nw.when(is_related(Relation.SPECULATIVE)).then(own), priced_as),)


CAUSE = Cause(
    code="speculative_request",
    title="A copy of a request sent while the first was running",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Nothing is wrong with the report; weigh what hedging costs against what it wins, and cancel the slower copy.",
    structural=True,
    order=16,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
