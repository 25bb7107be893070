"""The report counts the width of a padded batch instead of the tokens of the prompt or the answer.

A batch is padded to its longest row. A server that reports the width of its tensors charges the shorter ones for
padding. The engine knows how many padding positions the attempt had; where all of them lie in one direction, that is
the gap.

Worked example (input):

    grade  observed  reported  padding | padding_counted
       G1        12        20        8 |               8
       G1        12        12        8 |               -
       G1        12        19        8 |               -
       G3        12        20        8 |               -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, Grade, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    return (Candidate(nw.when(nw.col("grade") == Grade.G1).then(nw.col("padding")), priced_as),)


CAUSE = Cause(
    code="padding_counted",
    title="Padding of a batch counted as tokens",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Count prompts by the attention mask and answers up to their first end token, not by the tensor's width.",
    structural=False,
    order=45,
    candidate=_candidate,
)
