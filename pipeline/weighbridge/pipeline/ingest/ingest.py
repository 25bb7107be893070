"""Ingest: files in, rows of the lake out, each of them exactly once.

    check     every file of the call is looked at first; one that cannot be read at all stops it, nothing is written
    stage     files become rows, about half a million at a time
    resolve   records that are about a known attempt take its key (`resolve`, `adopt`)
    settle    what the lake has already is left out (`settle`)
    commit    one commit per table, then readings, then the account of each file in `segment`, last of all

Each sealed segment is then acknowledged, so that its spool may delete it (`acknowledge`).

A file of which every record went to quarantine is read again when it is named again: another mapping may read it.
A run that is cut off anywhere is made whole by running it again: a file that is not in `segment` is read again, and
its rows that are in the lake already are found there. records = stored + quarantined + duplicates, for every file.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from weighbridge.pipeline.ingest.acknowledge import acknowledge
from weighbridge.pipeline.ingest.batch import Account, Batch, forget
from weighbridge.pipeline.ingest.charges.strangers import refuse_strangers
from weighbridge.pipeline.ingest.door import Admitted, admit, files_of
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.json_records import let_go
from weighbridge.pipeline.ingest.readings import readings_on
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.keys import KeyProvider
from weighbridge.schemas.segment import SUFFIX

# Every batch adds a sorted file to each of its days. From so many on they are merged into one, for sorted days are
# matched without a hash table; fewer cost less than writing a day anew.
RUNS = 8
MERGED = ("attempt", "usage_report")
# Rows staged at a time: enough that the work per commit does not show, few enough that memory stays small.
BATCH_ROWS = 500_000


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """What became of one file.

    Attributes:
        name: the file's name, without folders.
        segment: its SHA-256.
        importer: what read it; of a file that is skipped, what read it then.
        rows_in: records read; always rows_out + rows_quarantined + rows_duplicate.
        rows_out: records stored.
        rows_quarantined: records that could not be read.
        rows_duplicate: records that were there already, or only repeat another record of the file.
        skipped: the very same file was ingested before; it was not read again and all figures are 0.
    """

    name: str
    segment: str
    importer: str
    rows_in: int
    rows_out: int
    rows_quarantined: int
    rows_duplicate: int
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What one call did.

    Attributes:
        files: one result per file, in the order of the call.
        days: the UTC days that have new rows, in order.
        readings_of: how many readings each of those days has now, whoever brought them.
        unacknowledged: names of sealed segments that are in the lake, and whose acknowledgement could not be written.
    """

    files: tuple[SegmentResult, ...]
    days: tuple[date, ...]
    readings_of: Mapping[date, int]
    unacknowledged: tuple[str, ...] = ()

    @property
    def readings(self) -> int:
        """How many readings the days have now."""
        return sum(self.readings_of.values())


def ingest(
    paths: Sequence[Path],
    lake: Lake,
    *,
    key: bytes,
    day: date,
    importer: str | None = None,
    mapping: Path | None = None,
    provider: str | None = None,
    model: str | None = None,
    tenant: str | None = None,
    task: str | None = None,
    account: str | None = None,
    revision: bool = False,
    acks: Path | None = None,
    keys: KeyProvider | None = None,
) -> IngestResult:
    """Take files into the lake.

    Args:
        paths: files, sealed segments, or folders that hold them.
        lake: the lake; its lock is held until the call ends.
        key: the installation's pseudonym key, 16 to 64 bytes.
        day: the UTC day of records without a time.
        importer: the importer to use; null lets each file be recognised.
        mapping: what the columns of a CSV, JSONL or Parquet file mean.
        provider, model, tenant, task: stand in where records do not say; a tenant's name becomes a pseudonym.
        account: whose bills these are, where their lines name no account; becomes a pseudonym.
        revision: cost pages are later fetches of bills that were taken in, whatever they come to.
        keys: who gives the keys token ids are encrypted with; without one, ids of logs are counted as lost.
        acks: folder for the acknowledgements of sealed segments; null means beside each segment (see `acknowledge`).

    Raises:
        ContractError: a file cannot be read at all; names it and the next step. Nothing of the call was written.
        ConfigError: an importer, mapping or name that cannot be used.
        LakeError: the lake cannot be written; running the call again finishes it.
    """
    if not 16 <= len(key) <= 64:
        raise ConfigError(f"the pseudonym key has {len(key)} bytes; 16 to 64 are needed. `weighbridge init` makes one.")
    about = {"provider": provider, "model": model, "tenant": tenant, "task": task, "mapping": mapping, "keys": keys}
    about["account"] = account
    admitted = admit([Source(path, key, day, **about) for path in files_of(paths)], importer)  # type: ignore[arg-type]
    with lake.lock():
        result = _take(admitted, lake, key, revision=revision)
    silent = tuple(
        told.name
        for file, told in zip(admitted, result.files, strict=True)
        if (not told.rows_in or told.rows_quarantined < told.rows_in)
        and file.source.path.suffix == SUFFIX
        and acknowledge(file.source.path, told.segment, acks) is None
    )
    return replace(result, unacknowledged=silent)


def _take(admitted: Sequence[Admitted], lake: Lake, key: bytes, *, revision: bool) -> IngestResult:
    present, hopeless = _known(lake)
    results: dict[int, SegmentResult] = {}
    readers = dict(lake.scan("segment", columns=["segment", "importer"]).collect().iter_rows())
    fresh: list[Admitted] = []
    for file in admitted:
        if file.heading.digest in present:
            told = _result(file, Account(), skipped=True)
            results[file.place] = replace(told, importer=readers.get(told.segment, told.importer))
        else:
            present.add(file.heading.digest)
            fresh.append(file)
    if not revision:
        refuse_strangers(fresh, lake)
    forget(lake, hopeless & {file.heading.digest for file in fresh})
    # Recorded attempts first: what other files say about them then finds them.
    fresh.sort(key=lambda file: (not file.importer.recorded, file.place))
    days: set[date] = set()
    for batch in _batches(fresh, lake, key):
        touched = batch.commit()
        results |= {f.place: _result(f, a) for f, a in zip(batch.files, batch.accounts, strict=True)}
        days |= touched
    if days:
        for table in MERGED:
            lake.compact(table, runs=RUNS)
    files = tuple(results[file.place] for file in admitted)
    return IngestResult(files, tuple(sorted(days)), readings_on(lake, days))


def _known(lake: Lake) -> tuple[set[str], set[str]]:
    """The files that need not be read again, and those of which nothing could be read: another mapping may help."""
    files = lake.scan("segment", columns=["segment", "rows_in", "rows_quarantined"]).collect()
    none = (files["rows_in"] > 0) & (files["rows_in"] == files["rows_quarantined"])
    return set(files.filter(~none)["segment"]), set(files.filter(none)["segment"])


def _batches(files: Sequence[Admitted], lake: Lake, key: bytes) -> Iterator[Batch]:
    batch = Batch(lake, key)
    for file in files:
        with reading():
            staged = Staged(0, {}, by_line=True) if file.empty else file.importer.read(file.source, file.heading)
        if batch.files and batch.rows + staged.rows > BATCH_ROWS:
            yield batch
            batch = Batch(lake, key)
        batch.add(file, staged)
    if batch.files:
        yield batch


@contextmanager
def reading() -> Iterator[None]:
    """While a file is read, cycles are not collected, and afterwards nothing of it is held.

    Records make millions of objects and no cycle; looking for some would take a quarter of the time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        let_go()
        if running:
            gc.enable()


def _result(file: Admitted, account: Account, *, skipped: bool = False) -> SegmentResult:
    return SegmentResult(
        name=file.source.path.name,
        segment=file.heading.digest,
        importer=file.importer.name,
        rows_in=account.records,
        rows_out=account.out,
        rows_quarantined=account.quarantined,
        rows_duplicate=account.duplicate,
        skipped=skipped,
    )
