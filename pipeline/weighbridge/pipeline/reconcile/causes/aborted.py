"""The client went away before the answer was over, and the report is missing or covers only what was delivered.

A stream carries its usage at the end, so one that is left early has none: the gap is all that was computed. Where the
server reports what had been delivered by then, the gap is what it had computed beyond that. One that left before its
first token is `aborted_in_prefill`.

Worked example (output):

    grade  attempt_status  missing  observed  reported  withheld_aborted  generated | aborted
       G1         aborted     true        40         -                 3         40 |     -40
       G1         aborted    false        40        37                 3         40 |      -3
       G1         aborted    false        40        40                 3         40 |       -
       G1         aborted    false        40        39                 3         40 |       -
       G1       succeeded    false        40        37                 -         40 |       -
       G1         aborted     true         0         -                 -          0 |       -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import first_of, tokens
from weighbridge.pipeline.reconcile.match.side import left_in_prefill, was_aborted
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    beyond = nw.col("withheld_aborted")
    fits = (nw.col("reported") - nw.col("observed") == tokens(0) - beyond) & (beyond > 0)
    amount = first_of(
        [
            (was_aborted() & nw.col("missing") & ~left_in_prefill(), tokens(0) - nw.col("observed")),
            (was_aborted() & fits.fill_null(value=False), tokens(0) - beyond),
        ],
        tokens(),
    )
    return (Candidate(amount, priced_as),)


CAUSE = Cause(
    code="aborted",
    title="The client went away before usage was sent",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Read streams to their end, or have the server report usage of aborted calls; the tokens were computed.",
    structural=True,
    order=5,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
