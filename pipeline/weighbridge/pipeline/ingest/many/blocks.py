"""The lines of a file, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from weighbridge.pipeline.ingest.json_lines import BOM, MAX_LINE
from weighbridge.pipeline.ingest.many.places import Codes, Raw

# Bytes that are looked at together: what is worked out of so many stays in the processor's cache.
_CHUNK = 2 * 2**20
_BLOCK = 8 * 2**20  # bytes taken apart at once,
_WHOLE_BLOCK = 16 * 2**20  # and where most of them are not read
# Lines that are longer than this on average hold more than usage.
_USAGE_ONLY = 700
_NEWLINE = 10


@dataclass(slots=True)
class Lines:
    """Lines by their number, of chunks of whole lines that are split where one of them is asked for.

    Attributes:
        chunks: whole lines, each with its end.
        buffer: what the chunks stand in.
    """

    chunks: Sequence[Raw]
    buffer: Codes
    _first: list[int] = field(default_factory=list)
    _split: dict[int, list[bytes]] = field(default_factory=dict)

    def __getitem__(self, number: int) -> bytes:
        """One line without its end."""
        if not self._first:
            counts = [_lines_of(np.frombuffer(chunk, np.uint8)) for chunk in self.chunks]
            self._first = [0, *np.cumsum(counts).tolist()]
        at = int(np.searchsorted(self._first, number, "right")) - 1
        if at not in self._split:
            self._split[at] = bytes(self.chunks[at]).split(b"\n")
        return self._split[at][number - self._first[at]]


def blocks(file: BinaryIO, spare: list[Codes]) -> Iterator[Lines]:
    """The lines of a file as blocks of chunks of whole lines, each with its end; of one that is too long its begin.

    Args:
        file: opened for reading.
        spare: buffers to be written over. A page of memory costs more the first time than what is read into it, so
            whoever is done with a block leaves its buffer here.
    """
    buffer, chunks = _buffer(spare), list[Raw]()
    held = limit = 0
    begun = False
    while many := file.readinto(buffer.data[held : held + min(_CHUNK, _BLOCK)]):  # type: ignore[attr-defined]
        end = held + many
        if buffer[end - 1] != _NEWLINE:
            rest = _rest_of_line(file)
            buffer[end : end + len(rest)] = np.frombuffer(rest, np.uint8)
            end += len(rest)
        chunk = buffer.data[held:end]
        if not begun and bytes(chunk[: len(BOM)]) == BOM:
            chunk = chunk[len(BOM) :]
        begun = True
        if not chunks:
            limit = _WHOLE_BLOCK if len(chunk) > _USAGE_ONLY * _lines_of(buffer[held:end]) else _BLOCK
        chunks.append(chunk)
        held = end
        if held >= limit:
            yield Lines(chunks, buffer)
            buffer, chunks, held = _buffer(spare), [], 0
    if chunks:
        yield Lines(chunks, buffer)


def _buffer(spare: list[Codes]) -> Codes:
    """Room for a block that ends with a line of any length; what is not written to takes no memory."""
    return spare.pop() if spare else np.empty(max(_BLOCK, _WHOLE_BLOCK) + _CHUNK + MAX_LINE + 2, np.uint8)


def _lines_of(codes: Codes) -> int:
    return int(np.count_nonzero(codes == _NEWLINE))


def _rest_of_line(file: BinaryIO) -> bytes:
    """The rest of a line and its end; of one that is too long no more than shows it."""
    rest = file.readline(MAX_LINE + 1)
    more = rest
    while more and not more.endswith(b"\n"):
        more = file.readline(MAX_LINE)
    return rest if rest.endswith(b"\n") else rest + b"\n"
