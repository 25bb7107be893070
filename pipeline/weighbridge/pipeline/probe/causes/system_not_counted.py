"""The system message is left out of the prompt or of its count.

system message 9 tokens with its frame: recount 24, usage 15     ->  -9
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _part(case: Case) -> int:
    return -added(case, "system")


CAUSE = Cause(
    code="system_not_counted",
    title="The system message is not counted",
    cure="Check that the chat template renders system messages: what is not counted may not be served either.",
    order=41,
    directions=(Direction.INPUT,),
    amounts=(_part,),
)
