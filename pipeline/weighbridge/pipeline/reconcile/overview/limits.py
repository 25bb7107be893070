"""How much of an overview is held in memory at a time, and where the rest goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weighbridge.pipeline.reconcile.overview import repeats
from weighbridge.pipeline.reconcile.overview.spill import HELD
from weighbridge.pipeline.reconcile.overview.totals import packed


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is held at a time.

    Attributes:
        folder: where what is too much goes; removed by whoever made it.
        rows: attempts of a day that are joined together.
        stretch: the same where both sides of it are in order: few enough that memory is used again at once, which
            costs less than being given other memory.
        keys: keys of each kind that are held until all of them are looked through for repetitions.
        figures: figures that are sorted together.
        held: rows of a day, or for the long road, that are held by bucket before they go to disk.
        aside: the same of rows that are set aside.
    """

    folder: Path
    rows: int = 2_000_000
    stretch: int = 500_000
    keys: int = repeats.AT_ONCE
    figures: int = packed.AT_ONCE
    held: int = HELD
    aside: int = 200_000
