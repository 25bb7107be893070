"""The running totals of a stream were added up, where the last of them is the whole.

four pieces that report 1, 2, 3 and 4: usage says 10         ->  output +6
the prompt of 15 stands in each of them: usage says 60       ->  input +45
"""

from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.schemas.enumerations import Direction


def _summed(left: Left) -> bool:
    """Whether what is said is a sum of totals: so many times the prompt, or 1 + 2 + ... + the output."""
    answer, usage, said = left.case.seen.answer, left.case.seen.usage, left.case.observed or 0
    if not answer.pieces:
        return False
    if left.case.direction is Direction.OUTPUT:
        # What should have been said may lack the end token, which is in the last total.
        counted = {*range(left.due, left.due + answer.choices + 1), answer.pieces}
        seen = (usage.running, usage.running[:-1])
        return said in {
            *(count * (count + 1) // 2 for count in counted),
            *(sum(each) for each in seen if len(each) > 1),
        }
    return left.due > 0 and said > left.due and said % left.due == 0


CAUSE = Cause(
    code="stream_merge",
    title="Running totals of a stream were added up",
    cure="Take the last usage of a stream, not the sum of all: each is the total up to that piece.",
    order=60,
    names=_summed,
)
