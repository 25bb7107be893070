"""Usage was reported for a try of a request that nobody here observed, while another try of it was observed.

Clients, SDKs and gateways send a request again by themselves. Whoever counts above them sees one attempt, the provider
sees all of them. Which attempts are tries of one request is known by the key of the request, or by one client request
id within a short time (`match.links`); a try on the same provider and model is a retry.

Worked example (input):

    observed  reported     relation | retry
           -       800        retry |   800
           -         0        retry |     0
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.match.relation import Relation, is_related
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    own = nw.col("reported") - nw.col("repeated")
    return (Candidate(nw.when(is_related(Relation.RETRY)).then(own), priced_as),)


CAUSE = Cause(
    code="retry",
    title="A further try below the one who counts",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Count tries where they are sent: record below the client that repeats them, or hand the request id down.",
    structural=True,
    order=12,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
