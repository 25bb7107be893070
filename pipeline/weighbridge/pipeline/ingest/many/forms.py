"""Lines sorted by their form: the rows of each template with their numbers, and the lines that have none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weighbridge.pipeline.ingest.json_lines import parse
from weighbridge.pipeline.ingest.many.runs import LONGEST, Block, Ints, block_of
from weighbridge.pipeline.ingest.many.template import Template, template_of, tokens_of
from weighbridge.schemas.leaves import KEYS

# A form that so few lines have is not worth a template.
_FEW = 2
# Forms that differ in the digits of their texts alone: names of models, as a rule.
_VARIANTS = 64
# Where more than one line in so many has a form of its own, texts that are not read are taken out first.
_VARIED = 20
_PEEKED = 40
_READ = frozenset({"provider", "api", "model", "day", "at", "status", "error", "type", "message", "response"}) | KEYS


class Alike(NamedTuple):
    """Lines of one form.

    Attributes:
        template: how they are read.
        numbers: the number of each line.
        integers: per line and leaf the number it has there; anything where the template says the leaf has none.
    """

    template: Template
    numbers: Ints
    integers: Ints


@dataclass(slots=True)
class Forms:
    """What is known about forms, from block to block.

    Attributes:
        known: templates by bare line and places of runs; null where lines of the form are read one by one.
        varied: names of texts at the root of a record that differ from line to line and are not read.
    """

    known: dict[tuple[bytes, bytes, bytes], Template | None] = field(default_factory=dict)
    varied: tuple[str, ...] = ()

    def sorted_out(self, raw: bytes, *, peek: bool = True) -> tuple[list[Alike], Ints, Block]:
        """The lines of a block by form, the numbers of those without a template, and the block.

        Args:
            raw: whole lines, each with its end.
            peek: look for texts that differ from line to line.
        """
        block = block_of(_without(raw, self.varied))
        ids: dict[bytes, int] = {}
        of_line = np.array([ids.setdefault(bare, len(ids)) for bare in block.bare], np.int64)
        if peek and not self.varied and len(ids) > max(_PEEKED, len(of_line) // _VARIED):
            self.varied = _varied(raw)
            if self.varied:
                return self.sorted_out(raw, peek=False)
        alike: list[Alike] = []
        rest: list[Ints] = [np.zeros(0, np.int64)]
        for bare, lines in _grouped(ids, of_line):
            if bare.strip():
                self._of_form(block, bare, lines, alike, rest)
            else:
                rest.append(lines)
        return alike, np.sort(np.concatenate(rest)), block

    def _of_form(self, block: Block, bare: bytes, lines: Ints, alike: list[Alike], rest: list[Ints]) -> None:
        """The lines of one bare form: those whose runs stand alike, and say the same in their texts."""
        for _ in range(_VARIANTS):
            first = int(lines[0])
            runs = _runs(block, first, lines)
            same = _stand_alike(block, first, lines, runs)
            tokens = tokens_of(block.line(first))
            for run in tokens.text:
                same &= _says_the_same(block, runs[:, run])
            found = lines[same]
            key = (bare, block.place[runs[0]].tobytes(), _said(block, runs[0], tokens.text))
            if key not in self.known and len(found) > _FEW:
                self.known[key] = template_of(block.line(first))
            _take(block, self.known.get(key), found, runs[same], alike, rest)
            lines = lines[~same]
            if not lines.size:
                return
        rest.append(lines)


def _take(
    block: Block, template: Template | None, lines: Ints, runs: Ints, alike: list[Alike], rest: list[Ints]
) -> None:
    """Lines of one form to those of their template, where it has one; those with odd numbers to the rest."""
    if template is None:
        rest.append(lines)
        return
    sound = _sound(block, template, runs)
    rest.append(lines[~sound])
    lines, runs = lines[sound], runs[sound]
    if lines.size:
        alike.append(Alike(template, lines, _integers(block, template, runs)))


def _grouped(ids: dict[bytes, int], of_line: Ints) -> Iterable[tuple[bytes, Ints]]:
    order = np.argsort(of_line, kind="stable")
    ends = np.cumsum(np.bincount(of_line, minlength=len(ids)))
    return zip(ids, np.split(order, ends[:-1]), strict=True) if ids else ()


def _runs(block: Block, first: int, lines: Ints) -> Ints:
    """Per line the runs it would have, were they as many as those of the first one."""
    many = int(block.first[first + 1] - block.first[first])
    runs: Ints = block.first[lines][:, None] + np.arange(many)
    return np.minimum(runs, max(0, block.start.size - 1)) if block.start.size else runs


def _stand_alike(block: Block, first: int, lines: Ints, runs: Ints) -> npt.NDArray[np.bool_]:
    """Which lines have as many runs as the first one, in the same places."""
    many = runs.shape[1]
    as_many: npt.NDArray[np.bool_] = block.first[lines + 1] - block.first[lines] == many
    if many:
        as_many &= (block.place[runs] == block.place[block.first[first] : block.first[first] + many]).all(axis=1)
    return as_many


def _says_the_same(block: Block, runs: Ints) -> npt.NDArray[np.bool_]:
    """Which lines have the digits of the first one in one run, as long as that is not longer than any number."""
    length, values = block.length[runs], block.values(runs)
    same: npt.NDArray[np.bool_] = (length == length[0]) & (values == values[0]) & (length <= LONGEST)
    same[0] = True
    return same


def _said(block: Block, runs: Ints, texts: Sequence[int]) -> bytes:
    return b" ".join(
        block.raw[block.start[run] : block.start[run] + block.length[run]] for run in runs[np.array(texts, np.int64)]
    )


def _sound(block: Block, template: Template, runs: Ints) -> npt.NDArray[np.bool_]:
    """Which lines have numbers that JSON allows and that are neither longer nor larger than is read here."""
    tokens = template.tokens
    sound: npt.NDArray[np.bool_] = np.ones(len(runs), np.bool_)
    sound &= ~block.leads(runs[:, tokens.leading]).any(axis=1)
    for kind, longest in ((tokens.whole, LONGEST), (tokens.fraction, _FRACTION), (tokens.exponents, _EXPONENT)):
        sound &= (block.length[runs[:, kind]] <= longest).all(axis=1)
    return sound


# Digits of a part of a fraction, and of its exponent, that stay within what is read.
_FRACTION, _EXPONENT = 30, 2


def _integers(block: Block, template: Template, runs: Ints) -> Ints:
    leaves = template.part.flattened.leaves
    out = np.zeros((len(runs), len(leaves)), np.int64)
    for at, leaf in enumerate(leaves):
        run = int(template.runs[at])
        if run >= 0:
            values = block.values(runs[:, run])
            out[:, at] = -values if template.negative[at] else values
        elif leaf.integer is not None:
            out[:, at] = leaf.integer
    return out


def _varied(raw: bytes) -> tuple[str, ...]:
    """Names at the root of records whose texts differ from line to line, and which nothing reads."""
    said: dict[str, set[str]] = {}
    for line in _peeked(raw):
        record, _ = parse(line)
        for name, value in (record or {}).items():
            if isinstance(value, str) and name not in _READ and name.isidentifier() and name.isascii():
                said.setdefault(name, set()).add(value)
    return tuple(name for name, texts in said.items() if len(texts) > 1)


def _peeked(raw: bytes) -> Iterator[bytes]:
    end = 0
    for _ in range(_PEEKED):
        begin, end = end, raw.find(b"\n", end) + 1
        if not end:
            return
        yield raw[begin:end]


def _without(raw: bytes, names: tuple[str, ...]) -> bytes:
    """The lines with the texts of these names empty. A text with an escape in it stays."""
    for name in names:
        key = name.encode()
        raw = re.sub(rb'"%s"\s*:\s*"[^"\\\n]*"' % key, b'"%s":""' % key, raw)
    return raw
