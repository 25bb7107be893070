"""One call, several choices or beams: the prompt counts once on one side and once for each of them on the other.

An engine reads the prompt anew for each choice, usage counts it once: the gap is negative by the prompts of all but the
first, which the engine's own requests state (`child`), or n - 1 times what was reported. A server that shares the
prompt and charges it n times is off the other way round. A beam search computes each step of each beam once and
usage counts every beam it returns whole, so beams that go together for a while are counted more often than computed.

Worked example (input):

    grade  observed  reported  choices  shared_input | parallel_choices
       G1      1203       401        3           802 |             -802
       G1      1203       401        3             - |             -802
       G1       685        40        3           645 |             -645
       G1       401      1203        3             - |              802
       G1       401       401        3             - |                -
       G3      1203       401        3             - |                -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import Expr, tokens, within
from weighbridge.schemas.enumerations import Direction, Grade, Severity, TokenClass

# More choices than any call can ask for; so many prompts of the largest size still fit into 64 bits.
_MOST = 2**20


def _seen(amount: Expr) -> Expr:
    return nw.when(nw.col("grade") == Grade.G1).then(amount)


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    if direction is Direction.OUTPUT:
        beams = within(nw.col("choices"), _MOST) * within(nw.col("beam_depth")) - nw.col("beam_output")
        return (Candidate(_seen(beams), TokenClass.OUTPUT_VISIBLE),)
    further = within(nw.col("choices"), _MOST) - tokens(1)
    more = nw.when(further > 0).then(further)
    amounts = (
        tokens(0) - nw.col("shared_input"),
        tokens(0) - more * within(nw.col("reported")),
        more * within(nw.col("observed")),
    )
    return tuple(Candidate(_seen(amount), TokenClass.INPUT_UNCACHED) for amount in amounts)


CAUSE = Cause(
    code="parallel_choices",
    title="A prompt counted once for several choices",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Count a prompt once per choice where computed tokens are paid for, and once per call where usage is.",
    structural=False,
    order=39,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
