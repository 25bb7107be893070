"""Usage was reported for a try on another provider or model of a request that was observed elsewhere.

A router that falls back sends the same request to somebody else. Both tries are used and paid; the agent beside one of
them cannot see the other.

Worked example (input):

    observed  reported     relation | fallback
           -       800     fallback |      800
           -         0     fallback |        0
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.match.relation import Relation, is_related
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    own = nw.col("reported") - nw.col("repeated")
    return (Candidate(nw.when(is_related(Relation.FALLBACK)).then(own), priced_as),)


CAUSE = Cause(
    code="fallback",
    title="A try on another model or provider that nobody observed",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Attach the agent to the deployment that is fallen back to as well, and price both tries: both were used.",
    structural=True,
    order=14,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
