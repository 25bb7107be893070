"""Reasoning is left out of an output that should hold it, or stands in it twice.

reasoning 12, answer 4: usage says 4, of it reasoning 12     ->  -12
"""

from weighbridge.pipeline.probe.case import Against, Case
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction


def _left_out(case: Case) -> int:
    return -(case.seen.usage.reasoning or 0)


def _left_out_unsaid(case: Case) -> int:
    return -(case.seen.answer.reasoning or 0)


def _twice(case: Case) -> int:
    # Beside a recount of an answer whose reasoning was not delivered it is no doubling.
    seen = case.seen
    hidden = case.against is Against.RECOUNT and not seen.answer.reasoning
    return 0 if hidden else seen.usage.reasoning or 0


CAUSE = Cause(
    code="reasoning_convention",
    title="Reasoning is counted by another convention than the API's",
    cure="Declare where this API counts reasoning, and compare it with the engine's own count before paying.",
    order=51,
    directions=(Direction.OUTPUT,),
    amounts=(_left_out, _left_out_unsaid, _twice),
)
