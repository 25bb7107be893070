"""Retry: a file of which records are in quarantine is read again, and what can be read now is stored, exactly once.

    read      the file whose digest it is; the importer of then, or another; another mapping may read what one did not
    store     only the records that are in quarantine: all others of the file stay as they are
    replace   a stored row that breaks a rule, where its line reads differently now
    account   what was quarantined and is stored moves from one figure of the file's account to the other
    leave     the decision is noted, then the records leave the quarantine, last of all

A run that is cut off anywhere is made whole by running it again: rows that are stored already are found, the account
is moved by what it lacks, and until the end the quarantine still says what there is to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import polars as pl

from weighbridge.pipeline.ingest.acknowledge import acknowledge
from weighbridge.pipeline.ingest.batch import OF_A_LINE, Account, Batch
from weighbridge.pipeline.ingest.door import Admitted, admit, files_of
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.importers.segment import TOLD
from weighbridge.pipeline.ingest.readings import refresh_readings
from weighbridge.pipeline.lake import Lake, empty, polars_schema
from weighbridge.pipeline.validate.places import (
    PLACED,
    Place,
    is_clash,
    lines_of,
    only,
    place_of,
    readable,
    staged_rows,
    stored_rows,
)
from weighbridge.pipeline.validate.quarantine import Entry, check_decision, decide, entries, remove
from weighbridge.pipeline.validate.violation import named as shown_name
from weighbridge.pipeline.validate.whole import entries_beyond
from weighbridge.schemas.enumerations import QuarantineState
from weighbridge.schemas.errors import ContractError, LakeError
from weighbridge.schemas.keys import KeyProvider
from weighbridge.schemas.segment import MANIFEST, SUFFIX, read_manifest, sha256_file
from weighbridge.schemas.tables import TABLES

# What reads records that never reach a file: an agent could not read them, so there is nothing to read again.
AGENT = "capture"


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of one file.

    Attributes:
        name: its name, without folders.
        segment: its digest.
        held: records of it that were in quarantine because they could not be read.
        stored: how many of them could be read now.
        replaced: stored rows that broke a rule and read differently now.
        left: records that are in quarantine still, those that break rules until the next validation included.
    """

    name: str
    segment: str
    held: int
    stored: int
    replaced: int
    left: int


@dataclass(frozen=True, slots=True)
class RetryResult:
    """What one call did: the files, and the UTC days whose rows changed."""

    files: tuple[Retried, ...]
    days: tuple[date, ...]


class _Batch(Batch):
    """A batch that leaves the accounts of files alone: they have one already."""

    def _segments(self) -> pl.DataFrame:
        return empty("segment")


def retry(
    paths: Sequence[Path],
    lake: Lake,
    *,
    key: bytes,
    by: str,
    now: datetime,
    day: date | None = None,
    importer: str | None = None,
    mapping: Path | None = None,
    provider: str | None = None,
    model: str | None = None,
    tenant: str | None = None,
    task: str | None = None,
    acks: Path | None = None,
    keys: KeyProvider | None = None,
) -> RetryResult:
    """Read files again of which records are in quarantine.

    Args:
        paths: the files, sealed segments, or folders of them; those of which nothing is in quarantine are passed over.
        lake: the lake; its lock is held until the call ends.
        key: the installation's pseudonym key.
        by: who asks for it, a name without blanks.
        now: the time, with its zone.
        day: the UTC day of records without a time; the one their file was taken in under where null.
        importer: the importer to use; the one that read the file before where null.
        mapping, provider, model, tenant, task, acks, keys: as for `ingest`.

    Raises:
        ContractError: none of the files is one the lake knows, or one cannot be read at all; nothing was written.
        ConfigError: an importer, mapping or name that cannot be used.
        LakeError: the lake cannot be written; running the call again finishes it.
    """
    check_decision(by, now)
    named = [(path, _digest(path)) for path in files_of(paths)]
    with lake.lock():
        known = _known(lake, named)
        held: dict[str, list[Entry]] = {}
        for entry in entries(lake, files=[digest for _, digest in named]):
            held.setdefault(entry.segment, []).append(entry)
        _check_whole(held, known)
        _add_breaking(lake, held, known)
        about = {"provider": provider, "model": model, "tenant": tenant, "task": task, "mapping": mapping, "keys": keys}
        admitted = []
        for path, digest in named:
            if digest in held:
                lines = frozenset(entry.line for entry in held[digest])
                source = Source(path, key, day or _day(held[digest]), ids_of=lines, **about)  # type: ignore[arg-type]
                admitted += admit([source], importer or known[digest])
        done: list[Retried] = []
        days: set[date] = set()
        for file in admitted:
            told, touched = _file(lake, key, file, held[file.heading.digest], by, now)
            done.append(told)
            days |= touched
    for file, told in zip(admitted, done, strict=True):
        if told.stored and file.source.path.suffix == SUFFIX:
            acknowledge(file.source.path, told.segment, acks)
    rest = [Retried(path.name, digest, 0, 0, 0, 0) for path, digest in named if digest not in held and digest in known]
    return RetryResult((*done, *rest), tuple(sorted(days)))


def _digest(path: Path) -> str:
    return read_manifest(path)[1] if path.suffix == SUFFIX or (path / MANIFEST).is_file() else sha256_file(path)


def _known(lake: Lake, named: Sequence[tuple[Path, str]]) -> dict[str, str]:
    """Digest -> importer of the files that the lake has an account of."""
    accounts = lake.scan("segment", columns=["segment", "importer"]).collect()
    held = accounts.filter(pl.col("segment").is_in([digest for _, digest in named]))
    known = {digest: shown_name(importer) for digest, importer in held.iter_rows()}
    if not known:
        raise ContractError(
            f"none of the {len(named)} files named was ever taken in as it is now: its digest is in no account. Name "
            "the unchanged file (`weighbridge quarantine show` says its digest), or take this one in with "
            "`weighbridge ingest`; nothing was written."
        )
    return known


def _check_whole(held: Collection[str], known: Collection[str]) -> None:
    """Refuse files of which records are held and that were not taken in to their end."""
    torn = sorted(set(held) - set(known))
    if torn:
        raise ContractError(
            f"the file with the digest {torn[0]} was not taken in to its end; run the same `weighbridge ingest` again, "
            "which completes it, then retry. Nothing was written."
        )


def _add_breaking(lake: Lake, held: dict[str, list[Entry]], known: Collection[str]) -> None:
    """Rows of these files that break a rule, of rule-days that have more of them than quarantine holds."""
    there = {entry.entry_id for of_file in held.values() for entry in of_file}
    for entry in entries_beyond(lake, known):
        if entry.entry_id not in there:
            held.setdefault(entry.segment, []).append(entry)


def _day(held: Sequence[Entry]) -> date:
    """The day most of the records are kept under that could not be read: that of records without a time.

    Stored rows lie on days of their own, and are asked only where there is nothing else.
    """
    asked = [entry for entry in held if not entry.stored] or held
    return min(Counter(entry.day for entry in asked).items(), key=lambda item: (-item[1], item[0]))[0]


def _file(
    lake: Lake, key: bytes, file: Admitted, held: Sequence[Entry], by: str, now: datetime
) -> tuple[Retried, set[date]]:
    sealed = file.importer.recorded
    staged = Staged(0, {}, by_line=not sealed) if file.empty else file.importer.read(file.source, file.heading)
    digest = file.heading.digest
    unread = {place_of(entry, sealed): entry for entry in held if not entry.stored and entry.importer != AGENT}
    broken = {place_of(entry, sealed) for entry in held if entry.stored}
    fresh = readable(staged, {*unread, *broken})
    there, days = stored_rows(lake, digest, {*unread, *broken}, sealed)
    told = staged_rows(staged, fresh)
    # A record that is there in part, or reads differently, is taken out and stored anew; so is what a run that was cut
    # off left of one. What is there as it reads now is done.
    wanted = {place for place in fresh if told.get(place) != there.get(place)}
    touched = {day for place in (unread.keys() | wanted) & there.keys() for day in days[place]}
    touched |= _delete(lake, digest, wanted & there.keys(), sealed)
    account = Account()
    if wanted:
        batch = _Batch(lake, key)
        batch.add(file, only(staged, wanted))
        touched |= batch.commit()
        account = batch.accounts[0]
    refresh_readings(lake, sorted(touched))
    # Rows that are too many to be held are looked for in the lake, and are not in quarantine.
    quarantined = entries(lake, files=[digest])
    clash = {place_of(entry, sealed) for entry in quarantined if is_clash(entry)}
    left = [entry for place, entry in unread.items() if place in fresh and place not in clash]
    # Of files that are counted by line, only their records are in the account, not rows of other tables.
    still = [entry for entry in unread.values() if entry not in left and (sealed or not is_clash(entry))]
    changed = wanted & broken
    _move_account(lake, digest, len(still), account, len(changed))
    if left:
        decide(lake, left, QuarantineState.READ, by=by, reason=None, now=now)
        remove(lake, left)
    rest = len(quarantined) - len(left)
    return Retried(file.source.path.name, digest, len(unread), len(left), len(changed), rest), touched


def _delete(lake: Lake, digest: str, places: Collection[Place], sealed: bool) -> set[date]:
    """Take the stored rows of these places out of the lake, for what is read now to take their place."""
    touched: set[date] = set()
    for name in PLACED if sealed else OF_A_LINE:
        lines = lines_of(places, name)
        gone = (pl.col("segment") == digest) & pl.col("segment_row").is_in(lines)
        if not lines or name not in TOLD:
            continue
        if not TABLES[name].daily:
            lake.replace(name, lake.scan(name).filter(~gone.fill_null(value=False)).collect(), days=None)
            continue
        days = lake.scan(name).filter(gone).select("day").unique().collect()["day"].to_list()
        if days:
            kept = lake.scan(name).filter(pl.col("day").is_in(days), ~gone.fill_null(value=False)).collect()
            lake.replace(name, kept, days=days)
            touched |= set(days)
    return touched


def _move_account(lake: Lake, digest: str, still: int, read: Account, changed: int) -> None:
    """Set how many records of a file are in quarantine still; those that are not were stored, or were there already.

    Where the account says so already, a run before this one came so far, and nothing is moved.

    Args:
        still: records of it that cannot be read now either.
        read: the account of what was read now.
        changed: stored rows that read differently now.

    Raises:
        LakeError: more records are in quarantine than the account knows of.
    """
    accounts = lake.scan("segment").collect()
    held = accounts.row(by_predicate=pl.col("segment") == digest, named=True)
    moved = held["rows_quarantined"] - still
    if moved < 0:
        raise LakeError(
            f"{still:,} records of the file with the digest {digest} are in quarantine and cannot be read, but its "
            f"account knows of {held['rows_quarantined']:,}: one of the two was changed by something else. What could "
            "be read was stored and is held still. Restore the lake from a backup, then retry the file again."
        )
    again = min(read.duplicate, moved + changed)
    days = [day for name in ("first_day", "last_day") for day in (held[name], getattr(read, name)) if day is not None]
    figures = {
        "rows_quarantined": held["rows_quarantined"] - moved,
        "rows_duplicate": held["rows_duplicate"] + again,
        "rows_out": held["rows_out"] + moved - again,
        "first_day": min(days, default=None),
        "last_day": max(days, default=None),
    }
    if all(held[name] == value for name, value in figures.items()):
        return
    ours = pl.col("segment") == digest
    types = polars_schema("segment")
    changed_accounts = accounts.with_columns(
        pl.when(ours).then(pl.lit(value, dtype=types[name])).otherwise(pl.col(name)).alias(name)
        for name, value in figures.items()
    )
    lake.replace("segment", changed_accounts, days=None)
