"""The report counts with another tokenizer than the one the observation rests on.

Somebody counted the same text with another tokenizer (its fingerprint differs), and the report is what that one makes
of it. The gap is the difference of both counts.

Worked example (input):

    observed  reported  other_tokenizer | tokenizer_version
         100       104              104 |                 4
         100        97               97 |                -3
         100       104                - |                 -
         100       105              104 |                 -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(direction: Direction) -> tuple[Candidate, ...]:
    priced_as = TokenClass.INPUT_UNCACHED if direction is Direction.INPUT else TokenClass.OUTPUT_VISIBLE
    return (Candidate(nw.col("other_tokenizer") - nw.col("observed"), priced_as),)


CAUSE = Cause(
    code="tokenizer_version",
    title="Counted with another version of the tokenizer",
    directions=(Direction.INPUT, Direction.OUTPUT),
    cure="Count with the tokenizer the served model revision names, on both sides, and record its fingerprint.",
    structural=False,
    order=65,
    candidate=_candidate,
    severity=Severity.NOTICE,
)
