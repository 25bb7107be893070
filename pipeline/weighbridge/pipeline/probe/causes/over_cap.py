"""An answer that was cut off at its limit is reported with more tokens than the limit.

max_tokens 16, finish reason length: usage 19     ->  +3
"""

from weighbridge.pipeline.probe.case import Against
from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.schemas.enumerations import Direction


def _beyond(left: Left) -> bool:
    return left.case.against is Against.LIMIT and left.tokens > 0


CAUSE = Cause(
    code="over_cap",
    title="More tokens than the limit of the answer",
    cure="Ask the provider what is counted beyond max_tokens; what it does not document is not owed.",
    order=91,
    directions=(Direction.OUTPUT,),
    names=_beyond,
)
