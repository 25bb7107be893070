"""Lines sorted by their form and read: what is alike of many lines is worked out once, from one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from weighbridge.pipeline.ingest.json_lines import MAX_LINE
from weighbridge.pipeline.ingest.many.frames import Piece, pieces
from weighbridge.pipeline.ingest.many.places import Bits, Ints, Raw
from weighbridge.pipeline.ingest.many.runs import (
    LEADS,
    LONGEST,
    NO_COUNT,
    NO_EXPONENT,
    NO_FRACTION,
    Block,
    block_of,
    runs_of,
)
from weighbridge.pipeline.ingest.many.template import Template, template_of, tokens_of
from weighbridge.pipeline.ingest.many.texts import bare_of_texts
from weighbridge.pipeline.ingest.many.tree import Tree

# A form that so few lines have is not worth a template.
_FEW = 2
# Forms that differ in digits of their texts alone, which stand there as those of a number do.
_VARIANTS = 64
# Where more than one line in so many has a form of its own, texts that are not read are left out first.
_VARIED = 20
_PEEKED = 40
_NONE = np.zeros(0, np.int64)


class Sorted(NamedTuple):
    """What became of the lines of a block: readings, the numbers of those that have none, and how many lines it has."""

    pieces: list[Piece]
    rest: Ints
    many: int


@dataclass(slots=True)
class Forms:
    """What is known about forms, from block to block.

    Attributes:
        known: by bare line and digits of texts; null where lines of the form are read one by one.
        varied: whether texts that are not read keep lines apart.
        texts: by bare line the runs that stand in texts.
    """

    known: dict[tuple[bytes, bytes], Tree | None] = field(default_factory=dict)
    varied: bool = False
    texts: dict[bytes, list[int]] = field(default_factory=dict)

    def sorted_out(self, chunks: Sequence[Raw]) -> Sorted:
        """The lines of a block: read where others are of their form.

        Args:
            chunks: whole lines, each with its end.
        """
        block, odd = self._block(chunks)
        out = Sorted([], _NONE, len(block.of_line))
        rest = [odd]
        for bare, lines in _grouped(block):
            if not bare.strip():
                rest.append(lines)
                continue
            even = lines[~np.isin(lines, odd, assume_unique=True)] if odd.size else lines
            if even.size:
                rest += self._of_form(block, bare, even, out.pieces)
        return out._replace(rest=np.unique(np.concatenate(rest)))

    def _block(self, chunks: Sequence[Raw]) -> tuple[Block, Ints]:
        """The block, without texts where these differ, and the lines that have to be read as they stand."""
        if not self.varied:
            block = block_of(chunks)
            self.varied = len(block.bare) > max(_PEEKED, len(block.of_line) // _VARIED)
            if not self.varied:
                return block, block.longer(MAX_LINE)
        bare, odd = bare_of_texts(chunks, MAX_LINE)
        return block_of(bare), odd

    def _of_form(self, block: Block, bare: bytes, lines: Ints, made: list[Piece]) -> list[Ints]:
        """Read the lines of one bare form, those together that say the same in their texts; the lines that are left."""
        rest: list[Ints] = []
        # What is learnt of a form that few lines have would be kept for ever, and there may be as many as lines.
        if len(lines) <= _FEW and bare not in self.texts:
            return [lines]
        texts = self._texts(bare)
        for _ in range(_VARIANTS):
            first = block.first[lines]
            same = np.ones(len(lines), np.bool_)
            for run in texts:
                same &= _says_the_same(block, first + run)
            if same.all():
                return rest + self._alike(block, bare, lines, first, texts, made)
            rest += self._alike(block, bare, lines[same], first[same], texts, made)
            lines = lines[~same]
        return [*rest, lines]

    def _texts(self, bare: bytes) -> list[int]:
        """The runs that stand in texts."""
        if bare not in self.texts:
            self.texts[bare] = tokens_of(bare).text
        return self.texts[bare]

    def _alike(
        self, block: Block, bare: bytes, lines: Ints, first: Ints, texts: Sequence[int], made: list[Piece]
    ) -> list[Ints]:
        """Read lines that differ in their numbers alone, the runs of each from `first` on; those that are left."""
        key = (bare, _said(block, int(lines[0]), texts))
        if key not in self.known and len(lines) > _FEW:
            template = template_of(block.line(int(lines[0])))
            self.known[key] = None if template is None else Tree(template)
        tree = self.known.get(key)
        if tree is None:
            return [lines]
        numbers, sound = _numbers(block, tree.template, first)
        rest = []
        if not sound.all():
            rest.append(lines[~sound])
            lines, numbers = lines[sound], numbers[:, sound]
        for found in tree.read(numbers) if lines.size else ():
            if found.rows:
                made += pieces(found, lines)
            else:
                rest.append(lines[found.places])
        return rest


def _grouped(block: Block) -> Iterable[tuple[bytes, Ints]]:
    many = len(block.bare)
    # Numbers of 16 bits are sorted by their digits, without comparing them.
    of_line = block.of_line.astype(np.uint16) if many < 2**16 else block.of_line
    order = np.argsort(of_line, kind="stable")
    ends = np.cumsum(np.bincount(block.of_line, minlength=many))
    return zip(block.bare, np.split(order, ends[:-1]), strict=True) if many else ()


def _says_the_same(block: Block, runs: Ints) -> Bits:
    """Which lines have the digits of the first one in one run, as long as that is not longer than any number."""
    length, values = block.lengths[runs], block.values[runs]
    same = (length == length[0]) & (values == values[0]) & (length <= LONGEST)
    same[0] = True
    return cast("Bits", same)


def _said(block: Block, line: int, texts: Sequence[int]) -> bytes:
    runs = runs_of(block.line(line)) if texts else []
    return b" ".join(runs[run][0] for run in texts)


def _numbers(block: Block, template: Template, first: Ints) -> tuple[Ints, Bits]:
    """Per number of the form and line its value; which lines have numbers that JSON allows and that are read here."""
    out = block.values[np.add.outer(np.array(template.runs, np.int64), first)]
    if any(template.negative):
        out[list(template.negative)] *= -1
    forbidden = _forbidden(template)
    runs = np.array(list(forbidden), np.int64)
    odd = block.odd[np.add.outer(runs, first)] & np.array(list(forbidden.values()), np.uint8)[:, None]
    return out, ~odd.any(axis=0)


def _forbidden(template: Template) -> dict[int, int]:
    """Per run what must not be odd about it."""
    tokens = template.tokens
    out = dict.fromkeys(tokens.leading, LEADS)
    for runs, bit in (
        (template.runs, NO_COUNT),
        (tokens.fraction, NO_FRACTION),
        (tokens.exponents, NO_EXPONENT),
    ):
        for run in runs:
            out[run] = out.get(run, 0) | bit
    return out
