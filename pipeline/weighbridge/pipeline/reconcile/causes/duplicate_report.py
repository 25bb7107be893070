"""The same usage was reported more than once.

A further report of one source about one attempt is a repetition; so is the report of another source with the same
counts. What the repetitions add is stated by the reports themselves.

Worked example (output):

    observed  reported  repeated | duplicate_report
         300       600       300 |              300
         300       300         0 |                -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    return (Candidate(nw.when(nw.col("repeated") != 0).then(nw.col("repeated")), priced_as),)


CAUSE = Cause(
    code="duplicate_report",
    title="The same usage reported more than once",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Count each attempt once: stop the sender from repeating reports, or ingest only one of the two sources.",
    structural=True,
    order=30,
    candidate=_candidate,
)
