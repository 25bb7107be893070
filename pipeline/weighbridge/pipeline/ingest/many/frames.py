"""Readings of lines that have a form, as columns: what lines say alike is one word for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa

from weighbridge.pipeline.ingest.many.columns import COUNTS, SCHEMA, TEXTS
from weighbridge.pipeline.ingest.many.linear import Sum
from weighbridge.pipeline.ingest.many.places import Bits, Ints
from weighbridge.pipeline.ingest.many.tree import Found

# What stands in the columns that are not counts.
Words = tuple[object, ...]
WORDS = (*TEXTS, "flags")


class Piece(NamedTuple):
    """Readings that say the same but for their counts.

    Attributes:
        records: the number of the record of each.
        child: which reading of its record it is.
        words: what stands in the columns of texts.
        counts: per column that is not null its counts, one for each or the same for all.
    """

    records: Ints
    child: int
    words: Words
    counts: Mapping[str, Ints | int]


def pieces(found: Found, numbers: Ints) -> list[Piece]:
    """The readings of lines that are read alike.

    Args:
        found: the lines, which have rows.
        numbers: of all lines of the form, the number of the record.
    """
    records = numbers[found.places]
    out = []
    for child, row in enumerate(found.rows):
        counts: dict[str, Ints | int] = {}
        for name in COUNTS:
            cell = row.get(name)
            if cell is not None:
                counts[name] = found.column(cell) if isinstance(cell, Sum) else cast("int", cell)
        words = tuple(tuple(cast("Sequence[str]", row[name])) if name == "flags" else row.get(name) for name in WORDS)
        out.append(Piece(records, child, words, counts))
    return out


@dataclass(slots=True)
class Rows:
    """Readings in the order of their records, the words of each as a number.

    Attributes:
        record, child: which record, and which of its readings.
        said: of each, which of `lexicon`.
        lexicon: what stands in the columns of texts.
        counts: per column its counts and where they are unknown; null where they all are.
    """

    record: Ints
    child: Ints
    said: Ints
    lexicon: list[Words]
    counts: dict[str, tuple[Ints, Bits | None] | None]

    def frame(self) -> pl.DataFrame:
        """The readings as a frame with all columns."""
        places = pl.Series(self.said)
        columns: dict[str, pl.Series] = {
            "record": pl.Series(self.record, dtype=pl.Int64),
            "child": pl.Series(self.child, dtype=pl.Int32),
        }
        for at, name in enumerate(WORDS):
            values = [list(cast("Sequence[str]", one[at])) if name == "flags" else one[at] for one in self.lexicon]
            columns[name] = pl.Series(values, dtype=SCHEMA[name]).gather(places)
        for name, told in self.counts.items():
            if told is None:
                columns[name] = pl.repeat(None, len(self.record), dtype=pl.Int64, eager=True)
            else:
                columns[name] = cast("pl.Series", pl.from_arrow(_array(*told)))
        return pl.DataFrame({name: columns[name] for name in SCHEMA})


def _array(values: Ints, unknown: Bits | None) -> pa.Array:
    """Counts as an array of Arrow."""
    known = None if unknown is None else pa.py_buffer(np.packbits(~unknown, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [known, pa.py_buffer(values)])


def rows_of(found: Sequence[Piece]) -> Rows:
    """Pieces as one."""
    record = np.concatenate([piece.records for piece in found])
    child = np.repeat(np.array([piece.child for piece in found]), [len(piece.records) for piece in found])
    order = np.lexsort((child, record)) if child.any() else np.argsort(record, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    at = np.split(places, np.cumsum([len(piece.records) for piece in found])[:-1])
    ids: dict[Words, int] = {}
    said = np.empty(len(order), np.int64)
    for piece, where in zip(found, at, strict=True):
        said[where] = ids.setdefault(piece.words, len(ids))
    counts = {name: _column(name, found, at, len(order)) for name in COUNTS}
    return Rows(record[order], child[order], said, list(ids), counts)


def _column(name: str, found: Sequence[Piece], at: Sequence[Ints], many: int) -> tuple[Ints, Bits | None] | None:
    """The counts of a column and where they are unknown."""
    known = [name in piece.counts for piece in found]
    if not any(known):
        return None
    values = np.zeros(many, np.int64)
    unknown = None if all(known) else np.zeros(many, np.bool_)
    for piece, where, told in zip(found, at, known, strict=True):
        if told:
            count = piece.counts[name]
            if not isinstance(count, int) or count:
                values[where] = count
        elif unknown is not None:
            unknown[where] = True
    return values, unknown
