"""A text need not encode to the ids it was decoded from, so a recount of an answer may be near and not equal.

the engine drew " sc" + "ale", the recount finds " scale": usage 2, recount 1     ->  +1
"""

from weighbridge.pipeline.probe.case import Against
from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.schemas.enumerations import Direction, Severity


def _of_text(left: Left) -> bool:
    case, answer = left.case, left.case.seen.answer
    return case.against is Against.RECOUNT and (case.observed or 0) <= answer.limit * answer.choices


CAUSE = Cause(
    code="retokenised",
    title="An answer that encodes to another number of tokens than were drawn",
    cure="Compare with the engine's own count (--metrics): a recount of generated text is no proof.",
    order=92,
    directions=(Direction.OUTPUT,),
    names=_of_text,
    severity=Severity.NOTICE,
)
