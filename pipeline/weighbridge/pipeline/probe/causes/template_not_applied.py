"""The bare text is counted, without the chat template (and without the special tokens it holds).

content 8, template 6, begin token 1: recount 15, usage 8     ->  -7
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction


def _bare(case: Case) -> int:
    prompt = case.seen.prompt
    if prompt is None or prompt.total is None or prompt.template == 0:
        return 0
    return prompt.content - prompt.total


def _with_special(case: Case) -> int:
    prompt = case.seen.prompt
    return 0 if prompt is None or prompt.template is None else -prompt.template


CAUSE = Cause(
    code="template_not_applied",
    title="The chat template is not counted",
    cure="Serve the model with its chat template (vLLM: --chat-template), and count prompts as they are rendered.",
    order=20,
    directions=(Direction.INPUT,),
    amounts=(_bare, _with_special),
)
