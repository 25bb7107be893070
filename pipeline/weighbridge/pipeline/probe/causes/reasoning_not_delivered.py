"""Reasoning is reported, and its text was not delivered: nothing is wrong, and nothing can be verified.

answer 4 by the recount, usage 16, of it reasoning 12     ->  +12
"""

from weighbridge.pipeline.probe.case import Against, Case
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction, Severity


def _hidden(case: Case) -> int:
    seen = case.seen
    hidden = case.against is Against.RECOUNT and not seen.answer.reasoning
    return seen.usage.reasoning or 0 if hidden else 0


CAUSE = Cause(
    code="reasoning_not_delivered",
    title="Reasoning whose text was not delivered",
    cure="Nothing to mend: this reasoning rests on the provider's word alone, so watch its baseline for inflation.",
    order=52,
    directions=(Direction.OUTPUT,),
    amounts=(_hidden,),
    severity=Severity.INFO,
)
