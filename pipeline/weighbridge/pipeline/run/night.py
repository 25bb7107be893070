"""A night: take in what came, then do what is due, step by step, and pack the token ids that came.

    take in > validate > price > engine > reconcile > invoice > baseline > audit
    files     days       days    months   months      months    days       days

            > adjust > share > report > publish > pack
              months   days    months   months    days

Files are those that were named, or the spool, and those of the sources of the settings. Where the gate of `validate` is
shut, nothing after it is done. The steps are told in `steps`.

What is due follows from the lake and from what the last runs did (`stamps`), not from what this one takes in. So a
night that was killed anywhere is finished by the next one, and its result is that of a night nobody disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from pathlib import Path

from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.content.recompress import Recompressed
from weighbridge.pipeline.ingest.door import holds_files
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.run.changes import notice
from weighbridge.pipeline.run.failure import spoken
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.pull import together
from weighbridge.pipeline.run.rooms import (
    Intake,
    all_months,
    days_of,
    is_simulated,
    months_of,
    pack_ids,
    priced_in,
    read_anew,
    set_prices,
    take_in,
    weigh,
    write_reports,
)
from weighbridge.pipeline.run.sources import fetch
from weighbridge.pipeline.run.step import Work, no_news
from weighbridge.pipeline.run.steps import NIGHT, PRICE, RECONCILE, REPORT, settle
from weighbridge.pipeline.run.turn import patiently, turn
from weighbridge.pipeline.run.walk import walk

__all__ = [
    "IngestResult",
    "Intake",
    "Night",
    "all_months",
    "days_of",
    "is_simulated",
    "months_of",
    "night",
    "pack_ids",
    "priced_in",
    "read_anew",
    "set_prices",
    "take_in",
    "weigh",
    "write_reports",
]


@dataclass(frozen=True, slots=True)
class Night:
    """What a night did.

    Attributes:
        ingested: the account of every file.
        days: the UTC days that were priced, in order.
        priced: how many readings of these days have an amount.
        months: the UTC months that were reconciled, in order.
        reports: month -> its page.
        work: step -> what it did, in the order they ran.
        packed: what packing token ids did, null where no keys are named in the settings or a gate refused.
        refused: the step whose gate refused, null where none did.
        failed: source of the settings that could not be fetched -> why, and what to do.
    """

    ingested: IngestResult
    days: tuple[str, ...]
    priced: int
    months: tuple[str, ...]
    reports: Mapping[str, Path]
    work: Mapping[str, Work]
    packed: Recompressed | None = None
    refused: str | None = None
    failed: Mapping[str, str] = field(default_factory=dict)


def night(
    home: Home,
    paths: Sequence[Path],
    intake: Intake,
    *,
    today: date | None = None,
    out: Path | None = None,
    wait_s: float = 0,
) -> Night:
    """Take in `paths` and what the settings name as sources, do all that is due, and pack the token ids that came.

    Args:
        home: the installation.
        paths: files, sealed segments, or folders of them; a folder may be empty.
        intake: how files are to be read.
        today: the UTC day it is; null asks the clock.
        out: where reports are written; null means the folder of the settings.
        wait_s: how long to wait for another run, or for another writer of the lake, seconds.

    Raises:
        ConfigError: the keys of token ids that the settings name cannot be used; nothing was taken in.
        LakeBusyError: something else was writing for longer than `wait_s`; the next run goes on from there.
        DiskFullError: the next run goes on from there.
        WeighbridgeError: a source failed of which the settings say that this stops a night.
    """
    now = datetime.now(UTC) if today is None else datetime.combine(today, time.min, UTC)
    today = now.date()
    key_provider(home.settings)
    if out is not None:
        home = replace(home, settings=replace(home.settings, reports=out))
    with turn(home, wait_s=wait_s):
        patiently(lambda: settle(home), wait_s)
        mappings = [] if intake.mapping is None else [intake.mapping]
        patiently(lambda: notice(home, now, mappings=mappings), wait_s)
        with spoken("taking files in"):
            taken = patiently(lambda: take_in(home, what_came(paths), intake), wait_s)
            fetched = fetch(home, attempt=lambda work: patiently(work, wait_s))
            taken = together([taken, fetched.result])
        done = walk(home, NIGHT, today=today, wait_s=wait_s)
        packed = None if done.refused else patiently(lambda: pack(home, taken.days, today), wait_s)
    return Night(
        ingested=taken,
        days=done.units.get(PRICE.name, ()),
        priced=done.count(PRICE, "priced"),
        months=done.units.get(RECONCILE.name, ()),
        reports=done.work.get(REPORT.name, Work()).files,
        work=done.work,
        packed=packed,
        refused=done.refused,
        failed=fetched.failed,
    )


def pack(home: Home, days: Iterable[date], today: date) -> Recompressed | None:
    """Pack the token ids of these days and of those that are still in many blocks; null where no keys are named.

    The same ids in fewer blocks are no news: what was done with their months stays done.
    """
    if key_provider(home.settings) is None:  # nobody's marks need to be looked at
        return None
    lake = home.lake()
    with lake.lock(), no_news(home, NIGHT, today):
        return pack_ids(home, set(days), lake=lake)


def what_came(paths: Iterable[Path]) -> list[Path]:
    """Those of these paths that hold anything: on a night without traffic a spool is empty, which is no mistake."""
    return [path for path in paths if not path.exists() or holds_files(path)]
