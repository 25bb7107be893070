"""Reasoning was reported and counted, as it should be, but its text never reached the client that counted again.

A recount of the delivered text (grade G3) cannot see hidden reasoning, so the gap is positive by what the report
itself names as reasoning. Nothing is wrong with such a report; these tokens are *consistent*, never *verified*: they
rest on the provider's word alone, and how many they are is what the finding says. An engine sees its own reasoning,
so this applies to recounts only.

Worked example (output):

    grade  observed  reported  reasoning | reasoning_not_delivered
       G3       200       520        320 |                     320
       G3       520       520        320 |                       -
       G1       200       520        320 |                       -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    hidden = nw.when(nw.col("grade") == Grade.G3).then(nw.col("reasoning"))
    return (Candidate(hidden, TokenClass.REASONING),)


CAUSE = Cause(
    code="reasoning_not_delivered",
    title="Reasoning that the client never saw",
    directions=(Direction.OUTPUT,),
    cure="Nothing to mend: this reasoning rests on the provider's word alone, so watch its baseline for inflation.",
    structural=False,
    order=55,
    candidate=_candidate,
    severity=Severity.INFO,
    at_stake=False,
)
