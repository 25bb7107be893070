"""The whole road of one misreport: simulated, ingested, priced, reconciled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.simulate.misreport import misreport_of
from weighbridge.pipeline.simulate.misreported import Misreported, write_misreported

KEY = b"k" * 32
START = date(2026, 3, 1)


@dataclass(frozen=True)
class Road:
    """A reconciled lake, and which of its days are honest."""

    lake: Lake
    made: Misreported


def travelled(folder: Path, code: str, *, attempts: int = 1_200, days: int = 4, factor: float | None = None) -> Road:
    """Half of the days honest, half misreported, in March 2026."""
    kind = misreport_of(code)
    used = kind.factor if factor is None else factor
    made = write_misreported(
        folder / "segments", kind, factor=used, attempts=attempts, seed=3, start=START, days=days, key=KEY
    )
    lake = Lake.create(str(folder / "lake"))
    ingest(made.segments, lake, key=KEY, day=START)
    refresh_prices(lake, PriceBook.load(()), lake.days("reading"))
    reconcile(lake, month="2026-03")
    return Road(lake, made)
