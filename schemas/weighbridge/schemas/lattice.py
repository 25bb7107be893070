"""The token lattice as data: which inclusive figures a provider may report, and which disjoint cells they contain.

A *cell* is (token class, modality). A *unit* is what a provider reports: a set of cells, written as constraints.
One unit contains another when its constraints are a subset of the other's. Exclusive counts follow by subtraction,
most specific first; a negative remainder is a contradiction, never clamped.

    prompt_tokens                {input}
    cached_tokens                {input, class cache_read}
    audio_tokens (prompt)        {input, modality audio}
    cached audio_tokens          {input, class cache_read, modality audio}
"""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.schemas.enumerations import Direction, Modality, TokenClass

INPUT_CLASSES: tuple[TokenClass, ...] = (
    TokenClass.INPUT_UNCACHED,
    TokenClass.CACHE_READ,
    TokenClass.CACHE_WRITE_5M,
    TokenClass.CACHE_WRITE_1H,
    TokenClass.CACHE_WRITE_UNKNOWN,
)
OUTPUT_CLASSES: tuple[TokenClass, ...] = (TokenClass.OUTPUT_VISIBLE, TokenClass.REASONING)
ENGINE_OUTPUT_CLASSES: tuple[TokenClass, ...] = (*OUTPUT_CLASSES, TokenClass.OUTPUT_WITHHELD)
REPORTED_CLASSES: tuple[TokenClass, ...] = (*INPUT_CLASSES, *OUTPUT_CLASSES)

# Modalities other than text that a provider may split out. Text is what is left.
SPLIT_MODALITIES: tuple[Modality, ...] = (Modality.AUDIO, Modality.IMAGE, Modality.VIDEO)
# Classes that are crossed with a modality in the `reading` table; no provider splits writes or reasoning.
CROSSED_CLASSES: tuple[TokenClass, ...] = (
    TokenClass.INPUT_UNCACHED,
    TokenClass.CACHE_READ,
    TokenClass.OUTPUT_VISIBLE,
)


def direction_of(token_class: TokenClass) -> Direction:
    """The direction in which tokens of this class travel."""
    return Direction.INPUT if token_class in INPUT_CLASSES else Direction.OUTPUT


@dataclass(frozen=True, slots=True)
class Cell:
    """One disjoint cell: a class and a modality. `name` is its column in the `reading` table."""

    token_class: TokenClass
    modality: Modality

    @property
    def name(self) -> str:
        """`input_uncached_audio` for a split modality, the class name alone for text."""
        return self.token_class if self.modality is Modality.TEXT else f"{self.token_class}_{self.modality}"


CROSSED_CELLS: tuple[Cell, ...] = tuple(Cell(c, m) for c in CROSSED_CLASSES for m in SPLIT_MODALITIES)
CELLS: tuple[Cell, ...] = (*(Cell(c, Modality.TEXT) for c in REPORTED_CLASSES), *CROSSED_CELLS)


@dataclass(frozen=True, slots=True)
class Unit:
    """An inclusive figure: every cell that satisfies all of its constraints."""

    direction: Direction
    classes: frozenset[TokenClass] = frozenset()  # empty: any class of the direction
    modalities: frozenset[Modality] = frozenset()  # empty: any modality

    def cells(self) -> frozenset[Cell]:
        """The disjoint cells this figure counts."""
        return frozenset(
            cell
            for cell in CELLS
            if direction_of(cell.token_class) is self.direction
            and (not self.classes or cell.token_class in self.classes)
            and (not self.modalities or cell.modality in self.modalities)
        )

    def contains(self, other: Unit) -> bool:
        """Whether every token counted by `other` is counted by this figure too."""
        return other.cells() <= self.cells()


def exclusive(inclusive: dict[str, tuple[Unit, int]]) -> dict[str, int]:
    """What each figure counts that no figure inside it counts.

    Args:
        inclusive: name -> (unit, tokens). The units must form a tree: any two are disjoint or one contains the other.

    Returns:
        name -> tokens left after the figures directly inside were taken away. The sum over all names is the sum of
        the outermost figures. A negative remainder is returned as it is: it is the proof of a contradiction.

    Raises:
        ValueError: two units overlap without one containing the other, or two names have the same cells.
    """
    cells = {name: unit.cells() for name, (unit, _) in inclusive.items()}
    names = sorted(cells, key=lambda name: (len(cells[name]), name))
    left = {name: tokens for name, (_, tokens) in inclusive.items()}
    for index, name in enumerate(names):
        for outer in names[index + 1 :]:
            if cells[name] < cells[outer]:
                left[outer] -= inclusive[name][1]
                break
            if cells[name] == cells[outer] or cells[name] & cells[outer]:
                raise ValueError(
                    f"the figures {name} and {outer} overlap: {sorted(c.name for c in cells[name] & cells[outer])}; "
                    "give the figure for the overlap as well, or leave one of them out"
                )
    return left
