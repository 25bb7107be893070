"""The system message is rendered or counted twice.

system message 9 tokens with its frame: recount 24, usage 33     ->  +9
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _again(case: Case) -> int:
    return added(case, "system_again")


def _part(case: Case) -> int:
    return added(case, "system")


CAUSE = Cause(
    code="system_counted_twice",
    title="The system message is counted twice",
    cure="Let either the gateway or the server put the system message in, not both.",
    order=40,
    directions=(Direction.INPUT,),
    amounts=(_again, _part),
)
