"""Drafted tokens that were thrown away are in the report: speculation is charged for, and not only what came of it.

The engine verified so many tokens and rejected so many drafts; where the report exceeds what was verified by just the
rejected ones, they were counted. Applies to what an engine counted (grade G1).

Worked example (output):

    grade  observed  reported  rejected | draft_billed
       G1        40        65        25 |           25
       G1        40        40        25 |            -
       G1        40        64        25 |            -
       G3        40        65        25 |            -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, Grade, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    thrown_away = nw.when(nw.col("grade") == Grade.G1).then(nw.col("rejected"))
    return (Candidate(thrown_away, TokenClass.OUTPUT_VISIBLE),)


CAUSE = Cause(
    code="draft_billed",
    title="Rejected drafts counted as output",
    directions=(Direction.OUTPUT,),
    cure="Count only verified tokens as output; drafts that were rejected never were part of an answer.",
    structural=False,
    order=95,
    candidate=_candidate,
)
