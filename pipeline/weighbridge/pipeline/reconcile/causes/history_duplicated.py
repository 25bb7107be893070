"""Earlier turns of the conversation were counted twice.

A client that sends the history although the server keeps it, or a meter that adds the running total of the session to
each call, counts them again: the gap is positive by their tokens. A recount (grade G3) that put them in twice is too
large by as many.

Worked example (input):

    grade  observed  reported  history | history_duplicated
       G1       900      1500      600 |                600
       G3      1500       900      600 |               -600
       G1      1500       900      600 |                  -
       G1       900       901      600 |                  -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, Grade, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    history, recount = nw.col("history"), nw.col("grade") == Grade.G3
    return (
        Candidate(history, TokenClass.INPUT_UNCACHED),
        Candidate(nw.when(recount).then(tokens(0) - history), TokenClass.INPUT_UNCACHED),
    )


CAUSE = Cause(
    code="history_duplicated",
    title="Earlier turns counted twice",
    directions=(Direction.INPUT,),
    cure="Send earlier turns once: either the client sends them, or the server keeps them; meter calls, not sessions.",
    structural=False,
    order=62,
    candidate=_candidate,
)
