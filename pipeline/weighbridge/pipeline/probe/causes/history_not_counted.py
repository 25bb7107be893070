"""Earlier turns are left out of the prompt or of its count.

an earlier turn of 12 tokens: recount 27, usage 15     ->  -12
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _part(case: Case) -> int:
    return -added(case, "history")


CAUSE = Cause(
    code="history_not_counted",
    title="The history is not counted",
    cure="Check that the server passes all turns on: what is not counted may not be served either.",
    order=44,
    directions=(Direction.INPUT,),
    amounts=(_part,),
)
