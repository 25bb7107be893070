"""The lines of a file, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from weighbridge.pipeline.ingest.json_lines import BOM, MAX_LINE

# Bytes that are looked at together: what is worked out of so many stays in the processor's cache.
_CHUNK = 2 * 2**20
_BLOCK = 8 * 2**20  # bytes taken apart at once,
_WHOLE_BLOCK = 16 * 2**20  # and where most of them are not read
# Lines that are longer than this on average hold more than usage.
_USAGE_ONLY = 700


@dataclass(slots=True)
class Lines:
    """Lines by their number, of chunks of whole lines that are split where one of them is asked for."""

    chunks: Sequence[bytes]
    _first: list[int] = field(default_factory=list)
    _split: dict[int, list[bytes]] = field(default_factory=dict)

    def __getitem__(self, number: int) -> bytes:
        """One line without its end."""
        if not self._first:
            self._first = [0, *np.cumsum([chunk.count(b"\n") for chunk in self.chunks]).tolist()]
        at = int(np.searchsorted(self._first, number, "right")) - 1
        if at not in self._split:
            self._split[at] = self.chunks[at].split(b"\n")
        return self._split[at][number - self._first[at]]


def blocks(file: BinaryIO) -> Iterator[list[bytes]]:
    """The lines of a file as blocks of chunks of whole lines, each with its end; of one that is too long its begin."""
    chunks: list[bytes] = []
    held = limit = 0
    begun = False
    while raw := file.read(min(_CHUNK, _BLOCK)):
        raw = raw if begun else raw.removeprefix(BOM)
        begun = True
        if not raw.endswith(b"\n"):
            raw += _rest_of_line(file)
        if not chunks:
            limit = _WHOLE_BLOCK if len(raw) > _USAGE_ONLY * raw.count(b"\n") else _BLOCK
        chunks.append(raw)
        held += len(raw)
        if held >= limit:
            yield chunks
            chunks, held = [], 0
    if chunks:
        yield chunks


def _rest_of_line(file: BinaryIO) -> bytes:
    """The rest of a line and its end; of one that is too long no more than shows it."""
    rest = file.readline(MAX_LINE + 1)
    more = rest
    while more and not more.endswith(b"\n"):
        more = file.readline(MAX_LINE)
    return rest if rest.endswith(b"\n") else rest + b"\n"
