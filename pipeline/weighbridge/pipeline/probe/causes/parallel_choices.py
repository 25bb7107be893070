"""A prompt with several answers is counted once for each of them, or only one of the answers is counted.

two answers to a prompt of 15: usage says 30                 ->  input +15
two answers of 4 and 5: usage says 4                         ->  output -5
usage says 15 and the engine worked on 30                    ->  the engine: input +15
"""

from weighbridge.pipeline.probe.case import Against, Case, Weight
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction


def _multiplied(case: Case) -> int:
    return (case.seen.answer.choices - 1) * case.expected


def _by_engine(case: Case) -> int:
    if case.against is not Against.ENGINE or case.direction is Direction.OUTPUT:
        return 0
    once, rest = divmod(case.expected, case.seen.answer.choices)
    return 0 if rest else once - case.expected


def _only_first(case: Case) -> int:
    return -sum(case.seen.answer.of_choices[1:]) if case.direction is Direction.OUTPUT else 0


def _only_last(case: Case) -> int:
    return -sum(case.seen.answer.of_choices[:-1]) if case.direction is Direction.OUTPUT else 0


CAUSE = Cause(
    code="parallel_choices",
    title="Several answers to one prompt are counted by another rule",
    cure="Count the prompt once and every answer; where the engine prefills it for each, that is GPU time, no usage.",
    order=61,
    weights=(Weight.USAGE, Weight.ENGINE),
    engine_more=True,
    amounts=(_multiplied, _by_engine, _only_first, _only_last),
)
