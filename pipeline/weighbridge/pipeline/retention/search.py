"""A search for what was erased, byte by byte: in files as they lie there, and in what compressed files hold.

An id is looked for in every form it is written in anywhere: hexadecimal, as a UUID, the eight bytes of its second half
in both orders, that half as a decimal number, and the pair of integers in the columns of a table. What is found is told
as a kind and a place, never as a value.
"""

from __future__ import annotations

import gzip
import io
import json
import mmap
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from weighbridge.schemas.identity import AttemptKey

# Of more ids than this, evenly spread ones are looked for in raw bytes; columns are compared with all of them.
RAW_IDS = 20_000
_WORD = 8
_CHUNK = 64 << 20
_FILTER_BITS = 22
# Halves this small are numbers that occur anywhere; only the id as a whole is looked for then.
_SMALL = 2**40
# A file that could not be searched -> why.
Unread = dict[Path, str]
_PAIRS = (("attempt_hi", "attempt_lo"), ("alias_hi", "alias_lo"), ("request_hi", "request_lo"))


@dataclass(frozen=True, slots=True)
class Found:
    """Something that should not be there any more: what kind, and in which file."""

    what: str
    path: Path


class Needles:
    """What is looked for.

    Args:
        texts: bytes -> what they are, in words.
        ids: what they are, in words -> pairs of integers (columns hi, lo).
    """

    def __init__(self, texts: Mapping[bytes, str], ids: Mapping[str, pl.DataFrame]) -> None:
        """Take what is looked for."""
        self.ids = {what: pairs for what, pairs in ids.items() if pairs.height}
        self._texts = {needle: what for needle, what in texts.items() if needle}
        for what, pairs in self.ids.items():
            every = max(1, -(-pairs.height // RAW_IDS))
            for key in pairs.gather_every(every).iter_rows():
                self._texts.update(dict.fromkeys(_forms(AttemptKey(*key)), what))

    def only(self, what: str) -> Needles:
        """Those of one kind."""
        kept = Needles({}, {name: pairs for name, pairs in self.ids.items() if name == what})
        kept._texts |= {needle: name for needle, name in self._texts.items() if name == what}
        return kept

    @property
    def any(self) -> bool:
        """Whether anything is looked for."""
        return bool(self._texts)

    @cached_property
    def _long(self) -> dict[int, list[bytes]]:
        """Last eight bytes, as a number -> needles that end so: ids of one hour begin alike."""
        found: dict[int, list[bytes]] = {}
        for needle in self._texts:
            if len(needle) >= _WORD:
                found.setdefault(int.from_bytes(needle[-_WORD:], "little"), []).append(needle)
        return found

    @cached_property
    def _short(self) -> list[bytes]:
        return [needle for needle in self._texts if len(needle) < _WORD]

    @cached_property
    def _tails(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return np.array(sorted(self._long), dtype=np.uint64)

    @cached_property
    def _filter(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        table = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
        table[_folded(self._tails)] = True
        return table

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest needle."""
        return max(map(len, self._texts), default=0)

    def within(self, data: bytes | memoryview) -> set[str]:
        """What is found in these bytes, in words."""
        raw = bytes(data)
        found = {self._texts[needle] for needle in self._short if needle in raw}
        if not self._long:
            return found
        for shift in range(min(_WORD, len(raw))):
            count = (len(raw) - shift) // _WORD
            words = np.frombuffer(raw, dtype="<u8", count=count, offset=shift)
            likely = np.flatnonzero(self._filter[_folded(words)])
            for at in likely[self._is_tail(words[likely])]:
                end = shift + (int(at) + 1) * _WORD
                for needle in self._long[int(words[at])]:
                    if raw.endswith(needle, 0, end):
                        found.add(self._texts[needle])
        return found

    def _is_tail(
        self, words: np.ndarray[tuple[int], np.dtype[np.uint64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        at = np.minimum(np.searchsorted(self._tails, words), len(self._tails) - 1)
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = self._tails[at] == words
        return found


def _folded(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    mixed = words * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - _FILTER_BITS)).astype(np.int64)


def _forms(key: AttemptKey) -> Iterator[bytes]:
    raw, text = key.to_bytes(), key.to_hex()
    yield from (text.encode(), text.upper().encode(), raw, raw[_WORD:] + raw[:_WORD])
    yield f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode()
    if abs(key.lo) >= _SMALL:
        yield from (raw[_WORD:], raw[_WORD:][::-1], str(key.lo).encode())


def search(folders: Iterable[Path], needles: Needles, unread: Unread | None = None) -> list[Found]:
    """Look through every file below some folders, hidden ones too; in order of paths.

    Args:
        folders: where; a file is looked through itself.
        needles: what is looked for.
        unread: what could not be looked through is added to it, and why.
    """
    found: set[tuple[str, Path]] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            found.update((what, path) for what in needles.within(str(path.relative_to(folder.parent)).encode()))
            if not path.is_symlink() and path.is_file():
                found.update((what, path) for what in within_file(path, needles, unread))
    return [Found(*each) for each in sorted(found, key=lambda each: (str(each[1]), each[0]))]


def within_file(path: Path, needles: Needles, unread: Unread | None = None) -> set[str]:
    """What is found in one file: in its bytes, and in what it holds where it is compressed.

    Whatever is wrong with a file stops no search: it is added to `unread`. One that is not what its name says is
    searched as it lies there.
    """
    found: set[str] = set()
    why = "it cannot be read"
    try:
        found |= _within_bytes(path, needles)
        why = "it is not what its name says, and was searched as it lies there only"
        found |= _within_compressed(path, needles)
    except FileNotFoundError:
        return set()  # it went while we looked
    except Exception:  # noqa: BLE001 - a damaged file makes its library raise whatever it likes
        if unread is not None:
            unread[path] = why
    return found


def _within_compressed(path: Path, needles: Needles) -> set[str]:
    found: set[str] = set()
    if path.suffix == ".parquet":
        return _within_parquet(path, needles)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                found |= needles.within(archive.read(name))
    elif path.suffix == ".gz":
        with gzip.open(path) as file:
            found |= needles.within(file.read())
    return found


def _within_bytes(path: Path, needles: Needles) -> set[str]:
    size = path.stat().st_size
    if not size:
        return set()
    found: set[str] = set()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for start in range(0, size, _CHUNK):
            found |= needles.within(data[start : start + _CHUNK + needles.longest])
    return found


def _within_parquet(path: Path, needles: Needles) -> set[str]:
    found: set[str] = set()
    file = pq.ParquetFile(io.BytesIO(path.read_bytes()))
    for batch in file.iter_batches(batch_size=1 << 18):
        if any(kind.startswith(("struct", "map")) for kind in map(str, batch.schema.types)):
            found |= needles.within(json.dumps(batch.to_pylist(), default=str, ensure_ascii=False).encode())
            continue
        rows = pl.DataFrame(batch)
        for high, low in _PAIRS:
            if {high, low} <= set(rows.columns):
                held = rows.select(hi=pl.col(high), lo=pl.col(low)).drop_nulls()
                found |= {
                    what
                    for what, pairs in needles.ids.items()
                    if held.join(
                        pairs.rename(dict(zip(pairs.columns, ("hi", "lo"), strict=True))), on=["hi", "lo"], how="semi"
                    ).height
                }
        for column in rows.select(pl.col(pl.String, pl.Binary, pl.List(pl.String))):
            values = column.explode() if isinstance(column.dtype, pl.List) else column
            texts = values.cast(pl.Binary) if values.dtype == pl.String else values
            found |= needles.within(b"\0".join(texts.drop_nulls().unique().to_list()))
    return found
