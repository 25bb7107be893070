"""Prompts that differ in their text alone are off by different numbers: other text, other tokens.

English agrees; Chinese: recount 21, usage 27     ->  +6
"""

from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.schemas.enumerations import Direction


def _texts_differ(left: Left) -> bool:
    texts = {rest for one, rest in zip(left.told, left.rest, strict=True) if one.seen.step.text_only}
    return len(texts) > 1


CAUSE = Cause(
    code="tokenizer_version",
    title="Another tokenizer than the one counted with",
    cure="Count with the tokenizer of the served revision: compare its fingerprint and that of the model's files.",
    order=90,
    directions=(Direction.INPUT,),
    names=_texts_differ,
)
