"""The end token that closes an answer is counted on one side only.

An engine counts it and withholds it from the client; where usage leaves it out, the gap is negative by the withheld
tokens. A recount of the delivered text (grade G3) cannot see it; where usage counts it, the gap is positive by one per
choice that came to its own end. How many did is known from the choices, or from an attempt that ended by itself.

Worked example (output):

    grade  observed  reported  withheld_end_token  ended_choices | end_token_convention
       G1       120       119                   1              - |                   -1
       G3       119       120                   -              1 |                    1
       G3       119       122                   -              3 |                    3
       G3       119       120                   -              - |                    -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import first_of, tokens
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    withheld, grade = nw.col("withheld_end_token"), nw.col("grade")
    amount = first_of(
        [
            (grade == Grade.G1, tokens(0) - withheld),
            ((grade == Grade.G3) & withheld.is_null(), nw.col("ended_choices")),
        ],
        tokens(),
    )
    return (Candidate(amount, TokenClass.OUTPUT_VISIBLE),)


CAUSE = Cause(
    code="end_token_convention",
    title="End tokens counted on one side only",
    directions=(Direction.OUTPUT,),
    cure="Declare whether this API counts the end token; the difference is one token per finished choice.",
    structural=False,
    order=80,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
