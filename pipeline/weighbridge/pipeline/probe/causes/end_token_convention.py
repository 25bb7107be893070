"""The end token of an answer that ended by itself is counted on one side: no text shows it.

"yes" is 1 token by the recount: usage says 2     ->  +1
"""

from weighbridge.pipeline.probe.case import Against, Case, Weight
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction, FinishReason, Severity


def _one_each(case: Case) -> int:
    answer = case.seen.answer
    return answer.choices if answer.finish is FinishReason.STOP else 0


def _by_engine(case: Case) -> int:
    return -_one_each(case) if case.against is Against.ENGINE else 0


CAUSE = Cause(
    code="end_token_convention",
    title="End tokens are counted on one side",
    cure="Nothing to mend: declare it as this API's convention, one token for each answer that ended by itself.",
    order=70,
    directions=(Direction.OUTPUT,),
    weights=(Weight.USAGE, Weight.ENGINE),
    # Where a stop string ended the answer, what is cut off is that string's; the convention shows at other steps.
    begins=lambda case: not case.seen.answer.stop_asked,
    amounts=(_one_each, _by_engine),
    severity=Severity.NOTICE,
)
