"""A stream's running totals were put together wrongly: added up, or the first was taken instead of the last.

Some servers send usage with every chunk, each time for the whole answer so far. Only the last of them is the answer's.
What the parts of the stream say is kept, so both mistakes are exact: the sum less the last, the first less the last.

Worked example (output):

    observed  reported  running_first  running_last  running_sum | stream_merge
         100       180             20           100          180 |           80
         100        20             20           100          180 |          -80
         100       101             20           100          180 |            -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    last = nw.col("running_last")
    return tuple(Candidate(nw.col(f"running_{which}") - last, priced_as) for which in ("sum", "first"))


CAUSE = Cause(
    code="stream_merge",
    title="Running totals of a stream put together wrongly",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Take the last usage of a stream, not their sum and not the first: each is a total of the answer so far.",
    structural=False,
    order=35,
    candidate=_candidate,
)
