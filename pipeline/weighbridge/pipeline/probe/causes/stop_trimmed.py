"""What was computed for a stop string was cut off: the text ends before it, and one side counts it.

"... three " and the stop string of 1 token: recount 6, usage 8     ->  +2
"""

from weighbridge.pipeline.probe.case import Against, Weight
from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.schemas.enumerations import Direction, FinishReason, Severity


def _cut_off(left: Left) -> bool:
    """Whether it may be: a token has at least a byte, one may begin before the string and one close the answer."""
    answer = left.case.seen.answer
    if not answer.stop_asked or answer.finish is not FinishReason.STOP:
        return False
    beyond = -left.tokens if left.case.against is Against.ENGINE else left.tokens
    return 0 < beyond <= len(prompts().texts["stop"].encode()) + 2


CAUSE = Cause(
    code="stop_trimmed",
    title="Tokens of a stop string are counted on one side",
    cure="Nothing is owed for what was cut off and not reported; for your own engine count what it computed.",
    order=71,
    directions=(Direction.OUTPUT,),
    weights=(Weight.USAGE, Weight.ENGINE),
    names=_cut_off,
    severity=Severity.NOTICE,
)
