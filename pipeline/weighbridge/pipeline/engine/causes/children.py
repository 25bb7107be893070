"""One call, several requests of the engine: each choice reads the prompt again, each step of a beam as well.

Where the engine's own records of the requests are at hand, what they add up to beyond the figure of the attempt is
exact. Where only the answer is, each further choice adds nothing, or at most the whole prompt: some servers ignore `n`.

Worked example:

    counter        counted  done  more  several | children
    prompt_tokens     1203   401   802        0 |      802
    prompt_tokens     1203   401     0      802 |      802
    prompt_tokens      401   401     0      802 |        -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import Facts


def _exact(facts: Facts) -> int | None:
    return facts.more or None


def _bounds(facts: Facts) -> Bounds | None:
    return Bounds(0, facts.several) if facts.several else None


CAUSE = Cause(
    code="children",
    title="Choices and beams that read their prompt again",
    cure="Nothing is wrong: count a prompt once per choice where computed tokens are paid for, as your own GPUs do.",
    order=30,
    exact=_exact,
    bounds=_bounds,
)
