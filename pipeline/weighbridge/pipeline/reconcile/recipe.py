"""What a pure function does to lazy frames of Polars, noted the first time and done again without asking Narwhals.

A month of a few rows costs next to nothing to compute; saying what is to be computed costs more, for every expression
is built and translated anew, some thousands of them. The functions of this room look at no row and at no type: what
they do depends on their arguments alone. So the first call writes down the steps they take, and later calls repeat
these.

    latest(frame, key)    filter, group_by and agg, join, filter, drop    five steps, done on whatever frame is given

A function that asks a frame anything (its columns, its rows) cannot be noted, and is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.engine import Frame

_STEPS = frozenset({"with_columns", "select", "filter", "drop", "unique", "join", "rename", "drop_nulls", "unpivot"})
_CONCAT, _GROUPED = "concat", "group_by"


@dataclass(frozen=True, slots=True)
class _Place:
    """A frame among those of a recipe: what it was given first, then what each step made."""

    number: int


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]


@dataclass(slots=True)
class Recipe:
    """The steps from some frames to the last one.

    Attributes:
        given: how many frames it starts from.
        result: the number of the frame it ends with.
    """

    given: int
    steps: list[_Step] = field(default_factory=list)
    result: int = 0

    def note(self, name: str, args: Iterable[Any], options: dict[str, Any]) -> Noted:
        """Write a step down; what it would make."""
        told = tuple(_told(each) for each in args)
        self.steps.append(_Step(name, told, {key: _told(value) for key, value in options.items()}))
        return Noted(self, self.given + len(self.steps) - 1)

    def made(self, frames: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
        """The steps, done on these frames."""
        held = list(frames)

        def own(value: Any) -> Any:
            if isinstance(value, _Place):
                return held[value.number]
            return [own(each) for each in value] if isinstance(value, list) else value

        for step in self.steps:
            args = [own(each) for each in step.args]
            options = {key: own(value) for key, value in step.options.items()}
            if step.name == _CONCAT:
                held.append(pl.concat(args[0], **options))
            elif step.name == _GROUPED:
                held.append(args[0].group_by(args[1]).agg(args[2]))
            else:
                held.append(getattr(args[0], step.name)(*args[1:], **options))
        return held[self.result]


class CannotNoteError(Exception):
    """A function wants something of a frame that is no step."""


class Noted(pl.LazyFrame):
    """Stands for a frame while a function is noted: it has no rows, and every step asked of it is written down."""

    def __init__(self, recipe: Recipe, number: int) -> None:
        """The frame of that number."""
        super().__init__()
        self.recipe, self.number = recipe, number

    def __getattribute__(self, name: str) -> Any:
        """The step of that name; nothing else can be asked."""
        if name in _STEPS:
            recipe: Recipe = self.recipe
            return lambda *args, **options: recipe.note(name, (self, *args), options)
        if name == _GROUPED:
            return lambda by: _Groups(self, by)
        if name in _OWN or name.startswith("__"):
            return super().__getattribute__(name)
        raise _refusal(name)


_OWN = frozenset({"recipe", "number", "_ldf"})


@dataclass(frozen=True, slots=True)
class _Groups:
    frame: Noted
    by: Any

    def agg(self, aggregated: Iterable[pl.Expr]) -> Noted:
        """One row per group."""
        return self.frame.recipe.note(_GROUPED, (self.frame, self.by, list(aggregated)), {})


def stacked(frames: Sequence[Frame]) -> Frame:
    """The rows of all of them, one after the other; they have the same columns."""
    natives = [frame.to_native() for frame in frames]
    if isinstance(natives[0], Noted):
        if not all(isinstance(native, Noted) for native in natives):
            raise _refusal("rows that were not given")
        return nw.from_native(natives[0].recipe.note(_CONCAT, (natives,), {"how": "vertical"}))
    return nw.concat(frames, how="vertical")


def by_recipe(function: Callable[..., Frame], *args: Any) -> Frame:
    """`function(*args)`, for a function that looks at no row: its frames, whatever else it gets, decide what it does.

    Args:
        function: one of a module, so that it is the same in every call.
        args: lazy frames of one engine, and other values that can be compared (a direction, null).
    """
    natives = [arg.to_native() for arg in args if isinstance(arg, nw.LazyFrame)]
    if not natives or not all(type(native) is pl.LazyFrame for native in natives):
        return function(*args)
    known: Hashable = (function, *(_FRAME if isinstance(arg, nw.LazyFrame) else arg for arg in args))
    if known not in _RECIPES:
        _RECIPES[known] = _noted(function, args)
    recipe = _RECIPES[known]
    return function(*args) if recipe is None else nw.from_native(recipe.made(natives))


_FRAME = "a frame"
_RECIPES: dict[Hashable, Recipe | None] = {}


def _noted(function: Callable[..., Frame], args: Sequence[Any]) -> Recipe | None:
    """What the function does to frames; null where that cannot be noted."""
    recipe = Recipe(sum(isinstance(arg, nw.LazyFrame) for arg in args))
    blanks = iter([Noted(recipe, number) for number in range(recipe.given)])
    try:
        made = function(*(nw.from_native(next(blanks)) if isinstance(arg, nw.LazyFrame) else arg for arg in args))
    except CannotNoteError:
        return None
    last = made.to_native()
    if not isinstance(last, Noted) or last.recipe is not recipe:
        return None
    recipe.result = last.number
    return recipe


def _told(value: Any) -> Any:
    """An argument as it is written down: frames by their place, what can be read only once as a list."""
    if isinstance(value, Noted):
        return _Place(value.number)
    if isinstance(value, pl.LazyFrame | pl.DataFrame | pl.Series):
        raise _refusal("rows that were not given")
    if isinstance(value, Iterable) and not isinstance(value, str | pl.Expr | dict):
        return [_told(each) for each in value]
    return value


def _refusal(name: str) -> CannotNoteError:
    return CannotNoteError(f"{name} is no step of a recipe")
