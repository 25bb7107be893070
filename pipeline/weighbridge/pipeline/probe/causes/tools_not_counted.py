"""The tools are left out of the prompt or of its count.

tools 40 tokens: recount 55, usage 15     ->  -40
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _part(case: Case) -> int:
    return -added(case, "tools")


CAUSE = Cause(
    code="tools_not_counted",
    title="Tools are not counted",
    cure="Check that tools are switched on and that the chat template renders them (vLLM: --enable-auto-tool-choice).",
    order=42,
    directions=(Direction.INPUT,),
    amounts=(_part,),
)
