"""Many records to readings: `read_usage_batch` for records, `read_usage_file` for a file of them.

A record without anything odd about it is read as columns, together with all others of its form; whatever cannot be
read so, a stream, a header, a number beyond 64 bits, is read by `read_usage` itself. Both give the same.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.ingest.dialects import all_dialects
from weighbridge.pipeline.ingest.json_lines import BOM, MAX_LINE, opened, parse
from weighbridge.pipeline.ingest.many.columns import SCHEMA, Told, of_alike, one_by_one
from weighbridge.pipeline.ingest.many.forms import Alike, Forms
from weighbridge.pipeline.ingest.many.runs import Ints
from weighbridge.pipeline.ingest.many.small import ESCAPE, compact, packed
from weighbridge.schemas.enumerations import QuarantineReason

_BLOCK = 16 * 2**20  # bytes taken apart at once,
_WHOLE_BLOCK = 64 * 2**20  # and where most of them are not read
_TOGETHER = 500_000  # lines solved at once
_BATCH = 100_000  # records
# Lines that are longer than this on average hold more than usage: what is not read is taken out first.
_USAGE_ONLY = 700


class Lines(NamedTuple):
    """A block of whole lines, each with its end; the number of the first one, and how many there are."""

    raw: bytes
    first: int
    many: int


def read_usage_batch(records: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """The readings of many records, as `read_usage` reads each.

    Args:
        records: as for `read_usage`.

    Returns:
        A row per reading, in the order of the records: `record` counts them from 0, `child` is 0 for the answer
        itself and counts calls beside it from 1; then the fields of `UsageReading`, classes and cells as columns of
        their own. Null is unknown. `error` is null: a record is an object already.
    """
    forms, waiting = Forms(), iter(records)
    frames: list[pl.DataFrame] = []
    while chunk := list(islice(waiting, _BATCH)):
        frames.append(_batch(forms, len(frames) * _BATCH, chunk))
    return _whole(frames)


def _batch(forms: Forms, first: int, records: list[Mapping[str, object]]) -> pl.DataFrame:
    lines = _Small(first)
    for number, record in enumerate(records):
        small = packed(record) if isinstance(record, dict) else None
        lines.add(number, small)
    alike, rest = lines.sorted_out(forms)
    told: Iterator[Told] = ((first + number, records[number]) for number in rest)
    return _whole([*of_alike(alike), one_by_one(told)])


def read_usage_file(path: Path | str, *, threads: int = 2) -> Iterator[pl.DataFrame]:
    """The readings of a JSON Lines file, some lines at a time, in the order of the lines.

    Args:
        path: one record a line; may be gzip-compressed.
        threads: how many read. Each takes some hundred MiB.

    Yields:
        Frames as `read_usage_batch` gives them, `record` counting lines from 0, blank ones too. A line that holds no
        record has a row with its reason in `error` and nothing else.

    Raises:
        ContractError: the compressed file is damaged.
    """
    all_dialects()  # found once, before threads ask for them
    own = threading.local()
    with opened(Path(path)) as file, ThreadPoolExecutor(max(1, threads)) as pool:
        ready: list[_Apart] = []
        waiting: deque[Future[_Apart]] = deque()
        for lines in _blocks(file):
            waiting.append(pool.submit(_in_thread, own, lines))
            if len(waiting) > threads:
                ready.append(waiting.popleft().result())
            if sum(apart.many for apart in ready) >= _TOGETHER:
                yield _read(ready)
                ready = []
        yield _read([*ready, *(future.result() for future in waiting)])


class _Apart(NamedTuple):
    """A block taken apart: how many lines it has, those with a template, and the readings of the others."""

    many: int
    alike: list[Alike]
    others: pl.DataFrame


def _in_thread(own: threading.local, lines: Lines) -> _Apart:
    """Forms are learnt by each thread for itself."""
    if not hasattr(own, "forms"):
        own.forms = Forms()
    alike, told = _taken_apart(lines, own.forms)
    return _Apart(lines.many, alike, one_by_one(told))


def _read(ready: list[_Apart]) -> pl.DataFrame:
    alike = [one for apart in ready for one in apart.alike]
    return _whole([*of_alike(alike), *(apart.others for apart in ready)])


def _taken_apart(lines: Lines, forms: Forms) -> tuple[list[Alike], Iterator[Told]]:
    """The lines of a block that have a form in common with others, and those to be read one by one."""
    alike: list[Alike] = []
    if len(lines.raw) > _USAGE_ONLY * lines.many:
        rest, split = np.arange(lines.many), lines.raw.split(b"\n")
        line: Callable[[int], bytes] = split.__getitem__
    else:
        alike, rest, block = forms.sorted_out(lines.raw)
        line = block.line
    if rest.size > lines.many // 1000:
        again, rest = _smaller(lines.raw, line, rest, forms)
        alike += again
    return [one._replace(numbers=one.numbers + lines.first) for one in alike], _strictly(line, rest, lines.first)


def _smaller(raw: bytes, line: Callable[[int], bytes], which: Ints, forms: Forms) -> tuple[list[Alike], Ints]:
    """These lines of a block without what is not read of them, sorted by form."""
    escapes = ESCAPE in raw
    small = _Small()
    for number in which.tolist():
        found = line(number)
        small.add(number, compact(found, escapes=escapes) if len(found) <= MAX_LINE else None)
    return small.sorted_out(forms)


@dataclass(slots=True)
class _Small:
    """Lines of records without what is not read, and the numbers of those that have none."""

    first: int = 0
    numbers: list[int] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    without: list[int] = field(default_factory=list)

    def add(self, number: int, line: bytes | None) -> None:
        if line is None:
            self.without.append(number)
        else:
            self.numbers.append(number)
            self.lines.append(line)

    def sorted_out(self, forms: Forms) -> tuple[list[Alike], Ints]:
        rest = np.array(self.without, np.int64)
        if not self.lines:
            return [], rest
        numbers = np.array(self.numbers, np.int64)
        self.lines.append(b"")
        alike, left, _ = forms.sorted_out(b"\n".join(self.lines), peek=False)
        told = [one._replace(numbers=numbers[one.numbers] + self.first) for one in alike]
        return told, np.sort(np.concatenate([rest, numbers[left]]))


def _strictly(line: Callable[[int], bytes], which: Ints, first: int) -> Iterator[Told]:
    """Lines as they are read one by one: their record, or why there is none. Blank ones are passed over."""
    for number in which.tolist():
        found = line(number)
        if len(found) > MAX_LINE:
            yield first + number, QuarantineReason.TOO_LARGE
        elif found.strip():
            record, reason = parse(found)
            yield first + number, reason or record or {}


def _blocks(file: BinaryIO) -> Iterator[Lines]:
    number, size = 0, _BLOCK
    while raw := file.read(size):
        raw = raw.removeprefix(BOM) if number == 0 else raw
        if not raw.endswith(b"\n"):
            raw += _rest_of_line(file)
        many = raw.count(b"\n")
        yield Lines(raw, number, many)
        number += many
        size = _WHOLE_BLOCK if len(raw) > _USAGE_ONLY * many else _BLOCK


def _rest_of_line(file: BinaryIO) -> bytes:
    """The rest of a line and its end; of one that is too long no more than shows it."""
    rest = file.readline(MAX_LINE + 1)
    more = rest
    while more and not more.endswith(b"\n"):
        more = file.readline(MAX_LINE)
    return rest if rest.endswith(b"\n") else rest + b"\n"


def _whole(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=dict(SCHEMA)), *frames]).sort("record", "child")
