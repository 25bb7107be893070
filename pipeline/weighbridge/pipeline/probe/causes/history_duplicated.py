"""Earlier turns are sent or counted more than once.

an earlier turn of 12 tokens: recount 27, usage 39                                     ->  +12
a session's prompts added up: 14 of the first turn and 27 of the second, usage 41      ->  +14
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _again(case: Case) -> int:
    return added(case, "history_again")


def _resent(case: Case) -> int:
    return added(case, "history_resent")


CAUSE = Cause(
    code="history_duplicated",
    title="The history is counted more than once",
    cure="Let one side keep the history: a gateway that adds stored turns must not be sent them again.",
    order=43,
    directions=(Direction.INPUT,),
    amounts=(_again, _resent),
)
