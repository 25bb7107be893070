"""Usage was reported for an attempt that no agent saw, on a day for which agents admit they lost attempts.

An attempt the agent names as lost is covered by that. Otherwise the reports without an attempt are counted against
the attempts lost in the same stretch of days: as long as there is room for all of them, the loss explains them; if
there are more reports than losses, it cannot be said which ones are explained, so none is.

Worked example (input):

    observed  reported     loss | capture_gap
           -       800  covered |         800
           -       800 exceeded |           -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.match.side import is_covered
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    return (Candidate(nw.when(is_covered()).then(nw.col("reported") - nw.col("repeated")), priced_as),)


CAUSE = Cause(
    code="capture_gap",
    title="Reported, but lost by the agent",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Mend what made the agent lose records (the finding gap_records says why); these tokens are not in dispute.",
    structural=True,
    order=20,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
