"""Who shares a cell: the attempts of a day by provider, model and task, merged upward until none is small.

    cell                            attempts        released
    openai     gpt-x     chat            120        openai  gpt-x  chat    120
    openai     gpt-x     summary           4  \\
    openai     gpt-x     agent            15  /      openai  gpt-x  -        19
    anthropic  claude-y  chat             30        anthropic  claude-y  -  38    its other task was too small to name
    anthropic  claude-y  code              8

Cells that are too small are told together as the rest of their model, else of their provider, else of the day. A rest
that is still too small takes the smallest of the cells beside it, for otherwise it could be had by subtraction. So
every attempt stands in exactly one cell, or a day with too few attempts in none. A task that is the only one of its
model is not named: that somebody used the model would tell what for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weighbridge.pipeline.shared.bins import FEWEST

# Provider, model, task: from the coarsest down.
Cell = tuple[str, ...]
Label = tuple[str | None, str | None, str | None]
_LEVELS = 3


@dataclass(slots=True)
class _Group:
    """Cells that are told together: how many attempts, and under which name."""

    label: Label
    attempts: int = 0
    cells: list[Cell] = field(default_factory=list)

    def take(self, other: _Group) -> None:
        self.attempts += other.attempts
        self.cells += other.cells

    @property
    def rank(self) -> tuple[int, tuple[str, ...]]:
        return self.attempts, tuple(name or "" for name in self.label)


def labels(counts: Mapping[Cell, int]) -> dict[Cell, Label]:
    """Cell -> the names it is released under; cells of a day that has too few attempts are left out.

    Args:
        counts: (provider, model, task) -> attempts of one day, each at least one.
    """
    released, _ = _told((), dict(sorted(counts.items())))
    return {cell: group.label for group in released for cell in group.cells}


def _told(inside: Cell, counts: Mapping[Cell, int]) -> tuple[list[_Group], _Group]:
    """The groups inside one provider, model or the whole day that may be told, and what is too small even together."""
    released: list[_Group] = []
    rest = _Group(_label(inside))
    for name, below in _children(len(inside), counts).items():
        within, left = _told((*inside, name), below) if len(inside) < _LEVELS - 1 else _leaf(inside, counts, below)
        released += within
        rest.take(left)
    if not rest.attempts:
        return released, rest
    if rest.attempts < FEWEST and released:
        smallest = min(released, key=lambda group: group.rank)
        released.remove(smallest)
        rest.take(smallest)
    if rest.attempts < FEWEST:
        return released, rest
    return [*released, rest], _Group(_label(inside))


def _leaf(inside: Cell, counts: Mapping[Cell, int], below: Mapping[Cell, int]) -> tuple[list[_Group], _Group]:
    (cell, attempts), *_ = below.items()
    group = _Group(_label(cell if len(counts) > 1 else inside), attempts, [cell])
    if attempts < FEWEST:
        return [], group
    return [group], _Group(_label(inside))


def _children(level: int, counts: Mapping[Cell, int]) -> dict[str, dict[Cell, int]]:
    found: dict[str, dict[Cell, int]] = defaultdict(dict)
    for cell, attempts in counts.items():
        found[cell[level]][cell] = attempts
    return found


def _label(inside: Iterable[str]) -> Label:
    provider, model, task = (*inside, None, None, None)[:_LEVELS]
    return provider, model, task
