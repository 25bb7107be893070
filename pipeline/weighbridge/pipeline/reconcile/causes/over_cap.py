"""More output was reported than was asked for at most, from a provider whose limit does not bind all of it.

Where the limit on output holds for the visible answer only, hidden reasoning comes on top: what was observed ends at
the limit, and the report exceeds it. Providers that document this are named in `_DOCUMENTED`; of others it is no
explanation, for there the limit binds what is billed.

Worked example (output):

    provider  observed  reported  max_tokens | over_cap
         xai       400       416         400 |       16
      openai       400       416         400 |        -
         xai       400       400         400 |        -
         xai       390       416         400 |        -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, TokenClass

# xAI: reasoning is counted beside the completion, and max_tokens limits the completion.
_DOCUMENTED = ("xai",)


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    limit = nw.col("max_tokens")
    pinned = nw.col("provider").is_in(list(_DOCUMENTED)) & (nw.col("observed") == limit)
    over = nw.when(pinned & (nw.col("reported") > limit)).then(nw.col("reported") - limit)
    return (Candidate(over, TokenClass.REASONING),)


CAUSE = Cause(
    code="over_cap",
    title="Reported beyond the limit that was asked for",
    directions=(Direction.OUTPUT,),
    cure="Limit reasoning by its own parameter where the API has one; the output limit does not bind it here.",
    structural=False,
    order=94,
    candidate=_candidate,
)
