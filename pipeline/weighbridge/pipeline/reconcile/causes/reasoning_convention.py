"""Reasoning tokens were left out of an output total that should hold them, or counted in it twice.

The amount is what the report itself names as reasoning, or, where it names nothing that fits, what the engine counted
as reasoning. A recount (grade G3) that falls short by the reasoning is no sign of it: see `reasoning_not_delivered`.

Money: reasoning that the report names was subtracted from (or stayed in) the visible remainder, so the difference is
charged at the price of visible output. Where only the engine knows of it, it is valued at the price of reasoning.

Worked example (output):

    grade  observed  reported  reasoning  reasoning_engine | reasoning_convention
       G1       500       380        120                 - |                 -120
       G1       500       620        120               120 |                  120
       G1       500       380          -               120 |                 -120
       G1       500       499        120               120 |                    -
       G3       500       620        120                 - |                    -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    seen = nw.col("grade") == Grade.G1
    sizes = (
        (nw.col("reasoning"), TokenClass.OUTPUT_VISIBLE),
        (nw.col("reasoning_engine"), TokenClass.REASONING),
    )
    left_out = tuple(Candidate(tokens(0) - size, priced_as) for size, priced_as in sizes)
    put_in = tuple(Candidate(nw.when(seen).then(size), priced_as) for size, priced_as in sizes)
    return left_out + put_in


CAUSE = Cause(
    code="reasoning_convention",
    title="Reasoning tokens counted by another convention",
    directions=(Direction.OUTPUT,),
    cure="Declare where this API counts reasoning, and compare it with the engine's own count before paying.",
    structural=False,
    order=50,
    candidate=_candidate,
)
