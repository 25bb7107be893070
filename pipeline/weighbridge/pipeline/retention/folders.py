"""What lies beside the lake: pages of reports, packs of closes, segments of the spool and their acknowledgements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from weighbridge.pipeline.ingest.acknowledge import ACK
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.keys import last_day
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import SUFFIX, read_manifest
from weighbridge.schemas.tables import TABLES

_PERIOD = re.compile(r"(?<!\d)(\d{4}-(?:0[1-9]|1[0-2]))(-(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
# What processes still write, or what is not sealed yet.
OPEN = (".journal", ".content")
NOTES = ".ids"


def period_of(name: str) -> tuple[date, date] | None:
    """The days a file is about, by the months or days in its name; null where it names none."""
    days: list[tuple[date, date]] = []
    for month, day in _PERIOD.findall(name):
        try:
            first = date.fromisoformat(f"{month}{day or '-01'}")
        except ValueError:
            continue
        days.append((first, first if day else last_day(month)))
    return (days[0][0], max(last for _, last in days)) if days else None


def dated(folders: Iterable[Path]) -> list[tuple[Path, date, date]]:
    """Files and folders directly in some folders, with the days they are about; those that name none are left out."""
    found = []
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            period = None if path.name.startswith(".") else period_of(path.name)
            if period is not None:
                found.append((path, *period))
    return found


@dataclass(frozen=True, slots=True)
class Sealed:
    """One segment in a spool.

    Attributes:
        path: the folder.
        digest: its digest.
        rows: how many rows it holds.
        taken_in: whether the lake has read it.
        acknowledged: the UTC day of its acknowledgement, null where there is none.
    """

    path: Path
    digest: str
    rows: int
    taken_in: bool
    acknowledged: date | None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One acknowledgement, and the UTC day it was given."""

    path: Path
    day: date


def segments(spools: Iterable[Path], acks: Path | None, lake: Lake) -> list[Sealed]:
    """The sealed segments of spools, in order of names; folders that are none are left out."""
    known = _known(lake)
    found = []
    for spool in spools:
        for path in sorted(spool.glob(f"*{SUFFIX}")) if spool.is_dir() else ():
            if path.name.startswith("."):
                continue
            try:
                manifest, digest = read_manifest(path)
            except ContractError:
                continue
            rows = sum(rows for rows, _, _ in manifest.files.values())
            words = [folder / f"{digest}{ACK}" for folder in (spool, acks) if folder is not None]
            days = [_day_of(word) for word in words if word.is_file()]
            found.append(Sealed(path, digest, rows, digest in known, min(days, default=None)))
    return found


def spent(spools: Iterable[Path], acks: Path | None, lake: Lake, lying: Iterable[Sealed]) -> list[Acknowledged]:
    """Acknowledgements of segments that the lake has and that lie in no spool any more, in order of paths.

    Args:
        spools, acks: where they lie.
        lake: the lake.
        lying: the segments that lie in a spool.
    """
    places = [folder for folder in dict.fromkeys([*spools, *([] if acks is None else [acks])]) if folder.is_dir()]
    words = sorted(path for folder in places for path in folder.glob(f"*{ACK}") if path.is_file())
    if not words:
        return []
    known = _known(lake) - {one.digest for one in lying}
    return [Acknowledged(path, _day_of(path)) for path in words if path.name.removesuffix(ACK) in known]


def _day_of(word: Path) -> date:
    return datetime.fromtimestamp(word.stat().st_mtime, UTC).date()


def _known(lake: Lake) -> set[str]:
    """Digests of the segments the lake has; those of which nothing could be read may be read yet."""
    read = lake.scan("segment", columns=["segment", "rows_in", "rows_quarantined"]).collect()
    hopeless = (pl.col("rows_in") > 0) & (pl.col("rows_in") == pl.col("rows_quarantined"))
    return set(read.filter(~hopeless)["segment"])


def open_files(spools: Iterable[Path]) -> list[Path]:
    """Files of spools that are not sealed yet."""
    return [path for spool in spools if spool.is_dir() for path in sorted(spool.iterdir()) if path.suffix in OPEN]


def holds_path(hold: Hold, folder: str, first: date, last: date) -> bool:
    """Whether a hold is about a page or pack: it shows everybody, so whom the hold is about does not matter."""
    return hold.covers(folder) and hold.overlaps(first, last)


def holds_page(hold: Hold, page: Path) -> bool:
    """Whether a hold is about a page; one whose name tells no days may be about any."""
    first, last = period_of(page.name) or (None, None)
    return hold.covers("reports") and hold.overlaps(first, last)


def holds_segment(holds: Sequence[Hold], segment: Path) -> bool:
    """Whether a hold is about rows of a segment."""
    asked = [hold for hold in holds if hold.covers("spool")]
    if not asked:
        return False
    tenants: set[str] = set()
    days: set[date] = set()
    for path in segment.glob("*.parquet"):
        names = [name for name in ("tenant", "day") if name in TABLES[path.stem].names]
        rows = pl.DataFrame(pq.read_table(path, columns=names))
        tenants.update(rows["tenant"].drop_nulls().unique() if "tenant" in names else ())
        days.update(rows["day"].drop_nulls().unique() if "day" in names else ())
    first, last = min(days, default=None), max(days, default=None)
    return any((hold.tenant is None or hold.tenant in tenants) and hold.overlaps(first, last) for hold in asked)
