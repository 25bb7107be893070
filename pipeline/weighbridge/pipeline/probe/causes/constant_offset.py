"""Every count is off by the same number: a convention, or a prefix that the server puts before every prompt.

15 becomes 22, 24 becomes 31 and 100 becomes 107     ->  +7
"""

from collections.abc import Sequence

from weighbridge.pipeline.probe.cause import Amount, Cause, Left
from weighbridge.schemas.enumerations import Direction, Severity


def _learn(left: Left) -> Sequence[Amount]:
    return [lambda _: left.tokens]


CAUSE = Cause(
    code="constant_offset",
    title="Every prompt is off by the same number of tokens",
    cure="Ask what the server puts before every prompt; as a constant it is a convention, and no inflation.",
    order=82,
    directions=(Direction.INPUT,),
    learn=_learn,
    severity=Severity.NOTICE,
)
