"""Another template than the one that was counted with: so many tokens more for each message, and for each request.

one message: usage 16, recount 15; three messages: 42 and 39     ->  +1 a message
"""

from collections.abc import Sequence

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Amount, Cause, Left
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.schemas.enumerations import Direction


def _messages(case: Case) -> int:
    return len(case.seen.step.ask(prompts()).messages())


def _line(left: Left) -> Sequence[Amount]:
    """The lines through this difference and that of each other number of messages."""
    here, found = _messages(left.case), {}
    for other, rest in zip(left.told, left.rest, strict=True):
        apart, rise = _messages(other) - here, rest - left.tokens
        if apart and rise and rise % apart == 0:
            found[rise // apart] = left.tokens - rise // apart * here
    return [_along(each, once) for each, once in found.items()]


def _along(each: int, once: int) -> Amount:
    return lambda case: once + each * _messages(case)


CAUSE = Cause(
    code="template_version",
    title="Another chat template than the one counted with",
    cure="Compare the fingerprint of the server's chat template with that of the tokenizer you count with.",
    order=80,
    directions=(Direction.INPUT,),
    learn=_line,
)
