"""A usage report was expected and none came, or one came without counts.

The whole of what was observed is then missing from the report. Where nothing was observed either, the attempt is
counted in the finding, but there is no gap to speak of.

Worked example (input):

    observed  reported  missing | usage_missing
        1200         -     true |         -1200
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.pipeline.reconcile.match.side import has_failed, was_aborted
from weighbridge.schemas.enumerations import Direction, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    owed = nw.col("missing") & ~was_aborted() & ~has_failed()
    return (Candidate(nw.when(owed).then(tokens(0) - nw.col("observed")), priced_as),)


CAUSE = Cause(
    code="usage_missing",
    title="Usage was expected and not reported",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Ask for usage in every call (for streams `stream_options.include_usage`), and read the stream to its end.",
    structural=True,
    order=10,
    candidate=_candidate,
)
