"""Every conceivable meaning of the numbers of one answer, tried one by one.

    input   = prompt (+ tool prompt, unless inside) (+ what was cached, unless inside)
    output  = answer (+ thoughts, unless inside)
    total   = input + output (+ what was cached once more) (- thoughts, where it leaves them out)

A meaning is possible where nothing is negative, nothing is larger than what holds it, and the total is met.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

BOTH = (True, False)


class Convention(NamedTuple):
    """How the numbers of an answer hang together."""

    cache_inside: bool = True
    thought_inside: bool = True
    tool_inside: bool = False
    cache_twice: bool = False
    thought_left_out: bool = False


class Meaning(NamedTuple):
    """One way to understand an answer: disjoint counts that add up to all of its tokens; null where it does not say."""

    fresh: int | None
    read: int | None
    written: int | None
    visible: int | None
    thought: int | None
    input_total: int | None
    output_total: int | None


class Told(NamedTuple):
    """The numbers of one answer by the part they play; null is not told, and cannot be taken for zero.

    `documented` is what the provider says the numbers mean; the rest is what is tried for each question.
    """

    prompt: int | None
    answer: int | None
    total: int | None = None
    read: int | None = 0
    written: int | None = 0
    thought: int | None = None
    tool: int = 0
    fresh: int | None = None
    documented: Convention = Convention()
    cache: tuple[bool, ...] = BOTH
    thoughts: tuple[bool, ...] = BOTH
    tools: tuple[bool, ...] = (False,)
    twice: tuple[bool, ...] = (False,)


def meanings(told: Told) -> tuple[Meaning | None, set[Meaning]]:
    """The documented meaning, null where the numbers refute it, and all possible ones."""
    possible = dict(_possible(told))
    only = next(iter(possible.values())) if len(set(possible.values())) == 1 else None
    return possible.get(told.documented, only), set(possible.values())


def _possible(told: Told) -> Iterator[tuple[Convention, Meaning]]:
    for answers in product(told.cache, told.thoughts, told.tools, told.twice):
        convention = Convention(*answers)
        meaning = _meaning(told, convention)
        if meaning is not None:
            yield convention, meaning


def _meaning(told: Told, convention: Convention) -> Meaning | None:
    cached = (told.read or 0) + (told.written or 0)
    tool = 0 if convention.tool_inside else told.tool
    into = None if told.prompt is None else told.prompt + tool + (0 if convention.cache_inside else cached)
    bare = None if told.total is None else told.total - (cached if convention.cache_twice else 0)
    answer, thought = told.answer, told.thought
    if answer is None and bare is not None and into is not None:
        answer = bare - into - (0 if convention.thought_inside else thought or 0)
    if thought is None and not told.documented.thought_inside and None not in (bare, into, answer):
        thought = (bare or 0) - (into or 0) - (answer or 0)  # shows in the total alone
        convention = convention._replace(thought_inside=False)
    out = answer if convention.thought_inside or answer is None else answer + (thought or 0)
    if into is None and bare is not None and out is not None:
        into = bare - out
    fresh, read, written = _split(into, told.fresh, told.read, told.written)
    visible, thought = _split(out, None, thought)
    meaning = Meaning(fresh, read, written, visible, thought, into, out)
    whole = None if into is None or out is None else into + out
    fits = all(count is None or count >= 0 for count in meaning) and (None in (bare, whole) or bare == whole)
    parts = None in (into, fresh, read, written) or into == (fresh or 0) + (read or 0) + (written or 0)
    held = not (convention.tool_inside and told.tool > (told.prompt or 0))
    return meaning if fits and parts and held else None


def _split(whole: int | None, first: int | None, *rest: int | None) -> tuple[int | None, ...]:
    """The parts of a whole: the one that is not told is what is left; where nothing is left, all of them are zero."""
    if whole is None:
        return (first, *rest)
    left = whole - sum(part or 0 for part in (first, *rest))
    untold = (first, *rest).count(None)
    fill = left if untold == 1 else (0 if left == 0 else None)
    return tuple(fill if part is None else part for part in (first, *rest))
