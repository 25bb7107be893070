"""Counts that remember where they come from: a sum of the numbers of a line, with what was asked of it on the way.

The pure reading of one record adds, subtracts and compares counts, and does nothing else with them. Done with these,
it tells how any line of the same form is read: as long as every question has the same answer, every count of the
reading is the same sum.

    prompt 9, completion 21, total 30: is 0 + #0 + #1 - #2 equal to 0? yes     ->  output_total is #1, total is #0 + #1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Never, cast

# The largest sum of factors with which a sum of counts of up to 2**53 stays within 64 bits.
_FACTORS = 500
# The numbers that are traced: others are read one by one.
LARGEST = 2**53


class NotTracedError(TypeError):
    """Something else was done with a count than adding and comparing."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of numbers: `factors` by which the numbers of a line are multiplied, (number, factor), and a constant."""

    factors: tuple[tuple[int, int], ...]
    constant: int
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.factors, self.constant)))

    def __hash__(self) -> int:  # looked up for every block, worked out once
        return self._hash

    def plus(self, other: Sum | int, times: int = 1) -> Sum:
        """This sum and so many times another one."""
        if isinstance(other, int):
            return Sum(self.factors, self.constant + times * other)
        factors = dict(self.factors)
        for number, factor in other.factors:
            factors[number] = factors.get(number, 0) + times * factor
        left = tuple(sorted((number, factor) for number, factor in factors.items() if factor))
        if sum(abs(factor) for _, factor in left) > _FACTORS:
            raise NotTracedError
        return Sum(left, self.constant + times * other.constant)

    def value(self, numbers: Sequence[int]) -> int:
        """What it is for the numbers of one line."""
        return self.constant + sum(numbers[number] * factor for number, factor in self.factors)


class Question(NamedTuple):
    """Whether a sum is below zero or, with `equal`, whether it is zero."""

    of: Sum
    equal: bool


class Rest(NamedTuple):
    """What is left of a sum that is divided; a number like those of the line, made from them."""

    of: Sum
    divisor: int


@dataclass(slots=True)
class Trace:
    """One line, read with counts that remember.

    Attributes:
        numbers: those of the line, then those that are made from them.
        bounds: the least and the largest each can be in a line of this form.
        rests: the numbers that are made, in lines of this form; further ones are added.
        asked: the questions and their answers, each once.
    """

    numbers: list[int]
    bounds: list[tuple[int, int]]
    rests: list[Rest]
    asked: dict[Question, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rest in self.rests:
            self._make(rest)

    def count(self, number: int) -> Count:
        """A number of the line as a count."""
        return Count(self, Sum(((number, 1),), 0))

    def rest(self, of: Sum, divisor: int) -> Count:
        """What is left of a sum once it is divided."""
        made = Rest(of, divisor)
        if made not in self.rests:
            self.rests.append(made)
            self._make(made)
        return self.count(len(self.numbers) - len(self.rests) + self.rests.index(made))

    def _make(self, rest: Rest) -> None:
        self.numbers.append(rest.of.value(self.numbers) % rest.divisor)
        self.bounds.append((0, rest.divisor - 1))

    def below(self, of: Sum) -> bool:
        """Whether a sum is below zero."""
        least, largest = self._bounds(of)
        return largest < 0 or (least < 0 and self._answer(Question(of, equal=False)))

    def zero(self, of: Sum) -> bool:
        """Whether a sum is zero."""
        least, largest = self._bounds(of)
        if of.factors and of.factors[0][1] < 0:
            of = Sum((), 0).plus(of, -1)
        return least <= 0 <= largest and self._answer(Question(of, equal=True))

    def _bounds(self, of: Sum) -> tuple[int, int]:
        least = largest = of.constant
        for number, factor in of.factors:
            low, high = self.bounds[number]
            least += factor * (low if factor > 0 else high)
            largest += factor * (high if factor > 0 else low)
        return least, largest

    def _answer(self, question: Question) -> bool:
        if question not in self.asked:
            found = question.of.value(self.numbers)
            self.asked[question] = found == 0 if question.equal else found < 0
        return self.asked[question]


def _compared(asked: Callable[[Trace, Sum], bool]) -> Callable[[Count, object], bool]:
    def compare(self: Count, other: object) -> bool:
        if not isinstance(other, (Count, int)):
            return cast("bool", NotImplemented)
        return asked(self.trace, self.of.plus(other.of if isinstance(other, Count) else int(other), -1))

    return compare


class Count:  # noqa: PLW1641 - to be looked up it would have to be a number
    """A count of a traced line; it stands for an integer where the reading of one record takes one."""

    __slots__ = ("of", "trace")

    def __init__(self, trace: Trace, of: Sum) -> None:
        self.trace, self.of = trace, of

    def _with(self, of: Sum) -> Count | int:
        return Count(self.trace, of) if of.factors else of.constant

    def __add__(self, other: Count | int) -> Count | int:
        return self._with(self.of.plus(other.of if isinstance(other, Count) else other))

    def __sub__(self, other: Count | int) -> Count | int:
        return self._with(self.of.plus(other.of if isinstance(other, Count) else other, -1))

    def __rsub__(self, other: int) -> Count | int:
        return self._with(Sum((), other).plus(self.of, -1))

    def __neg__(self) -> Count | int:
        return 0 - self

    def __mod__(self, divisor: int) -> Count:
        return self.trace.rest(self.of, divisor)

    def __bool__(self) -> bool:
        return not self.trace.zero(self.of)

    __radd__ = __add__
    __lt__ = _compared(Trace.below)
    __gt__ = _compared(lambda trace, of: trace.below(Sum((), 0).plus(of, -1)))
    __le__ = _compared(lambda trace, of: not trace.below(Sum((), 0).plus(of, -1)))
    __ge__ = _compared(lambda trace, of: not trace.below(of))
    __eq__ = _compared(Trace.zero)
    __ne__ = _compared(lambda trace, of: not trace.zero(of))

    def _refused(self, *_: object) -> Never:
        raise NotTracedError

    # What would take the number of one line for that of all.
    __int__ = __index__ = __hash__ = __str__ = __repr__ = __format__ = _refused
