"""Special tokens are counted twice, not at all, or as the text a user wrote.

the template begins with <s>, and encoding it adds another: recount 15, usage 16     ->  +1
"</s>" in a message is a token here and three tokens of text there                   ->  +2
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause, added
from weighbridge.schemas.enumerations import Direction


def _twice(case: Case) -> int:
    return 0 if case.seen.prompt is None else case.seen.prompt.special


def _left_out(case: Case) -> int:
    return -_twice(case)


def _as_text(case: Case) -> int:
    return added(case, "as_text")


CAUSE = Cause(
    code="special_tokens",
    title="Special tokens are counted by another rule",
    cure="Encode the rendered template with add_special_tokens off, and user text as text: a doubled begin token also "
    "changes answers.",
    order=30,
    directions=(Direction.INPUT,),
    amounts=(_twice, _left_out, _as_text),
)
