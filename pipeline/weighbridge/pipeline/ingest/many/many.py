"""Many records to readings: `read_usage_batch` for records, `read_usage_file` for a file of them.

A record without anything odd about it is read as columns, together with all others of its form; whatever cannot be
read so, a stream, a header, a number beyond 64 bits, is read by `read_usage` itself. Both give the same.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.ingest.dialects import all_dialects
from weighbridge.pipeline.ingest.json_lines import MAX_LINE, opened, parse
from weighbridge.pipeline.ingest.many.blocks import Lines, blocks
from weighbridge.pipeline.ingest.many.columns import SCHEMA, Told, one_by_one
from weighbridge.pipeline.ingest.many.forms import Forms
from weighbridge.pipeline.ingest.many.frames import Piece, rows_of
from weighbridge.pipeline.ingest.many.places import Codes, Ints
from weighbridge.pipeline.ingest.many.small import ESCAPE, compact, packed
from weighbridge.schemas.enumerations import QuarantineReason

_TOGETHER = 500_000  # lines solved at once
_BATCH = 100_000  # records
_SET_IN = 100  # rows that are set among others without sorting all of them


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
    return pl.concat([pl.DataFrame(schema=dict(SCHEMA)), *frames])


def _batch(forms: Forms, first: int, records: list[Mapping[str, object]]) -> pl.DataFrame:
    lines = _Small()
    for number, record in enumerate(records):
        small = packed(record) if isinstance(record, dict) else None
        lines.add(number, small)
    made, rest = lines.sorted_out(forms)
    told: Iterator[Told] = ((number, records[number]) for number in rest.tolist())
    return _read([_Apart(len(records), made, [one_by_one(told)])], first)


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
        spare: list[Codes] = []
        first = 0
        for lines in blocks(file, spare):
            waiting.append(pool.submit(_in_thread, own, lines, spare))
            if len(waiting) > threads:
                ready.append(waiting.popleft().result())
            if sum(apart.many for apart in ready) >= _TOGETHER:
                yield _read(ready, first)
                first += sum(apart.many for apart in ready)
                ready = []
        yield _read([*ready, *(future.result() for future in waiting)], first)


class _Apart(NamedTuple):
    """A block taken apart: how many lines it has, readings of those with a form, and of the others."""

    many: int
    made: list[Piece]
    others: list[pl.DataFrame]


def _in_thread(own: threading.local, lines: Lines, spare: list[Codes]) -> _Apart:
    """Forms are learnt by each thread for itself."""
    if not hasattr(own, "forms"):
        own.forms = Forms()
    made, rest, many = own.forms.sorted_out(lines.chunks)
    if rest.size > many // 1000:
        again, rest = _smaller(lines, rest, own.forms)
        made += again
    apart = _Apart(many, made, [one_by_one(_strictly(lines, rest))] if rest.size else [])
    spare.append(lines.buffer)
    return apart


def _read(ready: list[_Apart], first: int) -> pl.DataFrame:
    """Blocks as one frame, the lines numbered from `first`."""
    made: list[Piece] = []
    others: list[pl.DataFrame] = []
    for apart in ready:
        made += [piece._replace(records=piece.records + first) for piece in apart.made]
        others += [frame.with_columns(pl.col("record") + first) for frame in apart.others]
        first += apart.many
    return _whole(rows_of(made).frame() if made else None, others)


def _smaller(lines: Lines, which: Ints, forms: Forms) -> tuple[list[Piece], Ints]:
    """These lines of a block without what is not read of them, sorted by form."""
    escapes = any(ESCAPE in bytes(chunk) for chunk in lines.chunks)
    small = _Small()
    for number in which.tolist():
        line = lines[number]
        small.add(number, compact(line, escapes=escapes) if len(line) <= MAX_LINE else None)
    return small.sorted_out(forms)


@dataclass(slots=True)
class _Small:
    """Lines of records without what is not read, and the numbers of those that have none."""

    numbers: list[int] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    without: list[int] = field(default_factory=list)

    def add(self, number: int, line: bytes | None) -> None:
        if line is None:
            self.without.append(number)
        else:
            self.numbers.append(number)
            self.lines.append(line)

    def sorted_out(self, forms: Forms) -> tuple[list[Piece], Ints]:
        rest = np.array(self.without, np.int64)
        if not self.lines:
            return [], rest
        numbers = np.array(self.numbers, np.int64)
        self.lines.append(b"")
        made, left, _ = forms.sorted_out([b"\n".join(self.lines)])
        told = [piece._replace(records=numbers[piece.records]) for piece in made]
        return told, np.sort(np.concatenate([rest, numbers[left]]))


def _strictly(lines: Lines, which: Ints) -> Iterator[Told]:
    """Lines as they are read one by one: their record, or why there is none. Blank ones are passed over."""
    for number in which.tolist():
        line = lines[number]
        if len(line) > MAX_LINE:
            yield number, QuarantineReason.TOO_LARGE
        elif line.strip():
            record, reason = parse(line)
            yield number, reason or record or {}


def _whole(made: pl.DataFrame | None, others: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Readings of lines that have a form, in their order, and those of others as one frame."""
    apart = pl.concat([pl.DataFrame(schema=dict(SCHEMA)), *others]).sort("record", "child")
    if made is None or not apart.height:
        return apart if made is None else made
    if apart.height > _SET_IN:
        return pl.concat([made, apart]).sort("record", "child")
    slices: list[pl.DataFrame] = []
    begin = 0
    for nth, end in enumerate(made["record"].search_sorted(apart["record"]).to_list()):
        slices += [made[begin:end], apart[nth : nth + 1]]
        begin = end
    return pl.concat([*slices, made[begin:]])
