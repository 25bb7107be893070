"""From comparisons to partings: at each step what is left is explained by the guess that explains most of all steps.

    gap of a step = amounts of the guesses that were taken before + what is left

A guess that was taken at one step goes on to all others: a template that is missing is missing everywhere, so the
steps behind it part anew only where something else happens. A guess that undoes elsewhere what it explains here is
none, nor is one that explains a prompt and not most others that differ from it in their text alone. Of guesses that
explain equally many steps the first in order is taken, and the other causes are kept as alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.pipeline.probe.case import Against, Case, Weight
from weighbridge.pipeline.probe.cause import Amount, Cause, Left, all_causes, cause
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.schemas.enumerations import Confidence, Direction, Severity

LEAST_EXPLAINED = 3  # comparisons, for a guess that is made from them


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A step at which weights part for a reason that was not there before.

    Attributes:
        step: its name, with the round where it is sent several times.
        direction: input or output.
        cause: why.
        weights: who is off.
        against: from what.
        expected, observed, difference: tokens; observed is null where nothing was said, the others where nothing is
            known that it could be held against.
        share: the part of the difference that this cause explains.
        confidence: AMBIGUOUS where other causes explain as much, NONE where none does.
        alternatives: their codes.
        severity: how much it matters.
    """

    step: str
    direction: Direction
    cause: Cause
    weights: tuple[Weight, ...]
    against: Against | None
    expected: int | None
    observed: int | None
    difference: int | None
    share: int | None
    confidence: Confidence
    alternatives: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True)
class _Guess:
    cause: Cause
    amount: Amount
    learnt: bool


def explain(cases: Sequence[Case]) -> list[Parting]:
    """The partings of one series of comparisons, in the order of their steps."""
    found: list[Parting] = []
    taken: list[_Guess] = []
    told = [one for one in cases if one.observed is not None]
    for case in cases:
        if case.observed is None:
            if not case.seen.unasked:
                found.append(_parting(case, cause("usage_missing"), case.gap, Confidence.CERTAIN, ()))
            continue
        rest = [_rest(one, taken) for one in told]
        left = Left(case, _rest(case, taken), told, rest)
        if not left.tokens:
            continue
        best = _best(left, taken)
        if best:
            taken.append(best[0])
            others = tuple(sorted({guess.cause.code for guess in best} - {best[0].cause.code}))
            sure = Confidence.AMBIGUOUS if others else Confidence.PROBABLE
            found.append(_parting(case, best[0].cause, left.tokens, sure, others))
        else:
            found.append(_named(left))
    return found


def _rest(case: Case, taken: Sequence[_Guess]) -> int:
    return case.gap - sum(guess.amount(case) for guess in taken)


def _best(left: Left, taken: Sequence[_Guess]) -> list[_Guess]:
    """The guesses that explain what is left here and most elsewhere, the first in order first."""
    scored = []
    before = left.rest.count(0)
    for guess in _guesses(left):
        if guess.amount(left.case) != left.tokens:
            continue
        explained = [one for one in left.told if _rest(one, [*taken, guess]) == 0]
        if len(explained) <= before:  # it would undo elsewhere what it explains here
            continue
        if left.case.seen.step.text_only and not _holds_of_texts(explained, left.told):
            continue
        if guess.learnt and len({one.seen.name for one in explained if guess.amount(one)}) < LEAST_EXPLAINED:
            continue
        scored.append((len(explained), guess))
    # What is learnt from the differences fits many of them by construction: it goes before a cause that states its
    # amount only where it leaves nothing at all, and is no alternative to it.
    stated = [(score, guess) for score, guess in scored if not guess.learnt]
    fitted = [(score, guess) for score, guess in scored if guess.learnt and score == len(left.told)]
    most = max((score for score, _ in stated), default=0)
    if stated and (most == len(left.told) or not fitted):
        return [guess for score, guess in stated if score == most]
    most = max((score for score, guess in scored if guess.learnt), default=0)
    return [guess for score, guess in scored if guess.learnt and score == most][:1]


def _holds_of_texts(explained: Sequence[Case], told: Sequence[Case]) -> bool:
    """Whether most prompts that differ in their text alone are explained; else it is the text that does it."""
    return 2 * sum(one.seen.step.text_only for one in explained) > sum(one.seen.step.text_only for one in told)


def _guesses(left: Left) -> list[_Guess]:
    found = []
    for one in all_causes():
        if one.applies(left.case) and one.begins(left.case):
            found += [_Guess(one, amount, learnt=False) for amount in one.amounts]
            if one.learn is not None:
                found += [_Guess(one, amount, learnt=True) for amount in one.learn(left)]
    return found


def _named(left: Left) -> Parting:
    for one in all_causes():
        if one.applies(left.case) and one.names is not None and one.names(left):
            sure = Confidence.NONE if one.code == "unexplained" else Confidence.PROBABLE
            return _parting(left.case, one, left.tokens, sure, ())
    raise AssertionError("the last cause names whatever is left")


def _parting(case: Case, why: Cause, share: int, confidence: Confidence, alternatives: tuple[str, ...]) -> Parting:
    counted = case.seen.computed(case.direction)
    together = case.weight is Weight.USAGE and case.against is not Against.ENGINE and counted == case.observed
    weights = (Weight.USAGE, Weight.ENGINE) if together and counted is not None else (case.weight,)
    return Parting(
        step=case.seen.name,
        direction=case.direction,
        cause=why,
        weights=weights,
        against=case.against,
        expected=case.expected,
        observed=case.observed,
        difference=case.gap,
        share=share,
        confidence=confidence,
        alternatives=alternatives,
        severity=why.weighs(case),
    )


def bare(seen: Observation, direction: Direction, code: str) -> Parting:
    """A parting that is none of figures: usage did not come, or contradicts itself."""
    why = cause(code)
    return Parting(
        step=seen.name,
        direction=direction,
        cause=why,
        weights=(Weight.USAGE,),
        against=None,
        expected=None,
        observed=seen.told(direction),
        difference=None,
        share=None,
        confidence=Confidence.CERTAIN,
        alternatives=(),
        severity=why.severity,
    )
