"""Model calls inside an answer (iterations of a server-side loop, compactions) are on one side only.

The engine counts every iteration; a report of the last one alone falls short by what the others computed. A recount of
the delivered text (grade G3) sees the last answer alone; a report that holds the others too exceeds it by what it names
for them.

Worked example (output):

    grade  observed  reported  iterations  children | iterations_left_out
       G1       525       400         125         - |                -125
       G3       400       525           -       125 |                 125
       G1       525       524         125         - |                   -
       G1       400       525           -       125 |                   -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    delivered = nw.col("grade") == Grade.G3
    left_out = tokens(0) - nw.col("iterations")
    return Candidate(left_out, priced_as), Candidate(nw.when(delivered).then(nw.col("children")), priced_as)


CAUSE = Cause(
    code="iterations_left_out",
    title="Iterations inside an answer counted on one side only",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Add up every iteration the answer lists; the figures at its top may be those of the last one alone.",
    structural=False,
    order=42,
    candidate=_candidate,
)
