"""The recount and the report disagree about the special tokens (begin of text and the like).

Usage counts them and the recount did not: the gap is positive by as many. The recount did and usage does not: it is
negative. Applies to recounts only (grade G3); an engine counts what it really saw.

Worked example (input):

    grade  observed  reported  recount_special  recount_has_special | special_tokens
       G3       100       101                1                false |              1
       G3       101       100                1                 true |             -1
       G3       100       101                1                    - |              -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import first_of, tokens
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    size, inside = nw.col("recount_special"), nw.col("recount_has_special")
    amount = first_of([(~inside, size), (inside, tokens(0) - size)], tokens())
    return (Candidate(amount, TokenClass.INPUT_UNCACHED),)


CAUSE = Cause(
    code="special_tokens",
    title="Special tokens counted on one side only",
    directions=(Direction.INPUT,),
    cure="Recount with the tokenizer's special tokens switched on, as the server does.",
    structural=False,
    order=60,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
