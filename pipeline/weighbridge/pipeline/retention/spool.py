"""Erasing from a spool: segments that name the subject, and notes of ids that were expected.

    a segment the lake has read     goes as a whole: its rows are in the lake, where they are erased too
    one it has not read             is written anew without the subject's rows, under its name and with a new digest
    a note of expected ids (.ids)   is emptied of the subject's attempts, in place
    what is not sealed yet          is left and named: seal it, then run the erasure again

A segment is exchanged by two renames. Cut off between them it lies hidden beside its place, and is put there first
thing next time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.facts import FACTS
from weighbridge.pipeline.retention.folders import NOTES, Sealed, holds_segment
from weighbridge.pipeline.retention.request import RULE
from weighbridge.pipeline.retention.subject import HIT, KEY, NO_ATTEMPTS, Reach, Subject
from weighbridge.pipeline.retention.work import Work
from weighbridge.schemas.identity import AttemptKey, erased
from weighbridge.schemas.segment import SUFFIX, read_manifest, read_table, write_segment
from weighbridge.schemas.tables import TABLES

_NEW = ".erasing"


class Segment:
    """The tables of one sealed segment, as a lake has them."""

    def __init__(self, path: Path) -> None:
        """Name a segment; nothing is read yet."""
        self.path = path
        self.manifest, self.digest = read_manifest(path)

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table; see `Lake.scan`."""
        if table not in self.manifest.files:
            frame = pl.DataFrame(schema=polars_schema(table))
        else:
            frame = pl.DataFrame(read_table(self.path, table)).cast(polars_schema(table))  # type: ignore[arg-type]
        if first is not None:
            frame = frame.filter(pl.col("day") >= first)
        if last is not None:
            frame = frame.filter(pl.col("day") <= last)
        return frame.lazy() if columns is None else frame.lazy().select(columns)

    def days(self, table: str) -> list[date]:
        """The days a table has rows of."""
        return self.scan(table, columns=["day"]).collect()["day"].unique().sort().to_list()


def tenants(sealed: Iterable[Sealed]) -> set[str]:
    """The pseudonyms of the tenants that segments name."""
    found: set[str] = set()
    for one in sealed:
        segment = Segment(one.path)
        for table in segment.manifest.files:
            if "tenant" in TABLES[table].names:
                found.update(segment.scan(table, columns=["tenant"]).collect()["tenant"].drop_nulls().unique())
    return found


def attempts(sealed: Iterable[Sealed], subject: Subject) -> pl.DataFrame:
    """The attempts of a subject that segments name: attempt_hi, attempt_lo."""
    return pl.concat([NO_ATTEMPTS, *(Reach(Segment(one.path), subject).attempts for one in sealed)]).unique()


def hashed(sealed: Iterable[Sealed], hashes: frozenset[str]) -> pl.DataFrame:
    """The attempts in segments whose hashes are these: attempt_hi, attempt_lo."""
    found: set[tuple[int, int]] = set()
    for one in sealed:
        segment = Segment(one.path)
        for table in segment.manifest.files:
            if set(KEY) <= set(TABLES[table].names):
                keys = segment.scan(table, columns=KEY).drop_nulls().unique().collect()
                found.update(key for key in keys.iter_rows() if erased(AttemptKey(*key).to_hex()) in hashes)
    return pl.DataFrame(sorted(found), schema=NO_ATTEMPTS.schema, orient="row")


def erase(work: Work, erasing: Erasing, sealed: Sequence[Sealed]) -> list[Path]:
    """Erase the subject from the segments of a spool; those that a hold keeps."""
    about = {"rule": RULE, "scope": erasing.request.scope}
    kept, whole, rows = [], [], 0
    for one, segment, marks, hits in _hit(erasing, sealed):
        if holds_segment([hold for hold, _ in erasing.holds], one.path):
            kept.append(one.path)
        elif one.taken_in:
            whole.append(one.path)
            rows += one.rows
        else:
            gone = {table: count for table, count in hits.items() if erasing.erases(FACTS[table])}
            if gone:
                marked = {table: marks[table] for table in gone}
                work.segment(
                    one.path, one.digest, sum(gone.values()),
                    lambda segment=segment, marked=marked: _exchange(segment, marked),  # type: ignore[misc]
                    **about,  # type: ignore[arg-type]
                )  # fmt: skip
    work.files("spool", whole, rows=rows, **about)  # type: ignore[arg-type]
    return kept


def held_by(erasing: Erasing, sealed: Sequence[Sealed]) -> list[Path]:
    """The segments with rows of the subject that a hold keeps; nothing is changed."""
    holds = [hold for hold, _ in erasing.holds]
    return [one.path for one, *_ in _hit(erasing, sealed) if holds_segment(holds, one.path)] if holds else []


def _hit(
    erasing: Erasing, sealed: Sequence[Sealed]
) -> Iterator[tuple[Sealed, Segment, dict[str, pl.Series], dict[str, int]]]:
    """The segments with rows of the subject; of each table whether each row is its own, and how many are."""
    for one in sealed:
        segment = Segment(one.path)
        reach = Reach(segment, erasing.reach.subject, erasing.reach.attempts)
        marks = {table: _marks(segment, reach, table) for table in segment.manifest.files}
        hits = {table: int(mark.sum()) for table, mark in marks.items() if mark.any()}
        if hits:
            yield one, segment, marks, hits


def _marks(segment: Segment, reach: Reach, table: str) -> pl.Series:
    if table not in FACTS:
        return pl.Series([], dtype=pl.Boolean)
    return reach.marked(table, segment.scan(table)).select(HIT).collect().to_series()


def _exchange(segment: Segment, marked: dict[str, pl.Series]) -> None:
    """Write a segment anew without the rows that are marked."""
    path, manifest = segment.path, segment.manifest
    place = path.with_name(f".{path.name}{_NEW}")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    tables = {}
    for table in manifest.files:
        rows = read_table(path, table)
        tables[table] = rows.filter((~marked[table]).to_arrow()) if table in marked else rows
    first, last = manifest.sequence_first, manifest.sequence_last
    write_segment(
        place, path.name.removesuffix(SUFFIX), tables, writer=manifest.writer, end=manifest.end,
        sequence=None if first is None or last is None else (first, last),
        labels={**(manifest.labels or {}), "erased": "true"}, key_id=manifest.key_id,
    )  # fmt: skip
    gone = path.with_name(f".{path.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    _settle(path)


def settle(spools: Iterable[Path]) -> None:
    """Put segments into place whose exchange was cut off, and take away what such a one left."""
    for spool in spools:
        for place in sorted(spool.glob(f".*{SUFFIX}{_NEW}")) if spool.is_dir() else ():
            _settle(spool / place.name.removeprefix(".").removesuffix(_NEW))
        for gone in sorted(spool.glob(f".*{SUFFIX}.gone")) if spool.is_dir() else ():
            shutil.rmtree(gone)


def _settle(path: Path) -> None:
    place = path.with_name(f".{path.name}{_NEW}")
    made = place / path.name
    if not path.exists() and made.exists():
        made.rename(path)
        _sync(path.parent)
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(path.with_name(f".{path.name}.gone"), ignore_errors=True)


def forget_expected(spools: Iterable[Path], hexes: Iterable[str]) -> int:
    """Take attempts out of the notes of ids that were expected or came; how many entries went.

    A note is overwritten where it stands, at its length: the process that seals may take it away meanwhile.
    """
    gone = set(hexes)
    count = 0
    for spool in spools:
        for path in sorted(spool.glob(f"*{NOTES}")) if spool.is_dir() else ():
            try:
                with path.open("r+b") as file:
                    count += _emptied(file, gone)
            except FileNotFoundError:
                continue
    return count


def _emptied(file: object, gone: set[str]) -> int:
    handle = file.fileno()  # type: ignore[attr-defined]
    raw = os.pread(handle, os.fstat(handle).st_size, 0)
    note = json.loads(raw)
    count = 0
    for told in (note.get("expected"), note.get("came")):
        for attempt in gone & set(told or ()):
            del told[attempt]
            count += 1
    if count:
        os.pwrite(handle, json.dumps(note).encode().ljust(len(raw)), 0)
        os.fsync(handle)
    return count


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
