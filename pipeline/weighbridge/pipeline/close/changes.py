"""Reports of a month that are not alike in two places: a close and a lake, or two closes of the same month."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from weighbridge.pipeline.close.batches import batches
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.close.usage_figures import AMOUNTS, CELL, CELLS, CLASSES, REPORT, Batch, counted
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends

LATE, REPORTS, PRICES, NAMES = "late_data", "report_correction", "price_correction", "attribution"
_COUNTS = (*CLASSES, *CELLS, "input_total", "output_total", "total", "verdict")
_MONEY = ("status", "currency", "amount", *AMOUNTS)


@dataclass(frozen=True, slots=True)
class Changes:
    """Reports of a month that are not in both places alike.

    Attributes:
        rows: one per report that came or changed: `reason`, what it is about and its figures, those of before as
            `<name>_before`.
        gone: reports that are only in the first place.
    """

    rows: pl.DataFrame
    gone: pl.DataFrame

    @classmethod
    def between(cls, first: Records, second: Records, period: str) -> Changes:
        """Compare the reports of a month in two places, some days at a time."""
        one, other = (Month(Replay(place), period, Prices({})) for place in (first, second))
        held, came, gone = [], [], []
        for some in [*batches([first, second], ["reading"], *ends(period))] or [[]]:
            left, right = counted(Batch(one, some).reports()), counted(Batch(other, some).reports())
            held.append(left.join(right, on=list(REPORT), how="inner", suffix="_now").filter(_differs()))
            came.append(right.join(left, on=list(REPORT), how="anti"))
            gone.append(left.join(right, on=list(REPORT), how="anti"))
        # A report may have moved to another day.
        old, new = pl.concat(gone), pl.concat(came)
        moved = old.join(new, on=list(REPORT), how="inner", suffix="_now")
        both = pl.concat([*held, moved.filter(_differs())])
        names = [name for name in new.columns if name not in REPORT]
        renamed = both.rename({name: f"{name}_before" for name in names}).rename(
            {f"{name}_now": name for name in names}
        )
        late = new.join(old, on=list(REPORT), how="anti").with_columns(
            pl.lit(None, dtype=new.schema[name]).alias(f"{name}_before") for name in names
        )
        rows = pl.concat([late.with_columns(reason=pl.lit(LATE)), renamed.with_columns(_reason())], how="diagonal")
        return cls(rows, old.join(new, on=list(REPORT), how="anti"))


def _any(names: Iterable[str], suffix: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}{suffix}")) for name in names)


def _differs() -> pl.Expr:
    return _any((*_COUNTS, *_MONEY, *CELL), "_now")


def _reason() -> pl.Expr:
    counts = _any((*_COUNTS, "provider", "model"), "_before")
    money = _any(_MONEY, "_before")
    reason = pl.when(counts).then(pl.lit(REPORTS)).when(money).then(pl.lit(PRICES)).otherwise(pl.lit(NAMES))
    return reason.alias("reason")
