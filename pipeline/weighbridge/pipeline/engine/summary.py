"""What came out of some months, for people: sums of counters, sums of causes, and windows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import Confidence

_SERVER = ["source", "engine", "model", "instance"]
_SUMS = ("counted", "attempted", "gap", "explained", "residual")


@dataclass(frozen=True, slots=True)
class Summary:
    """Rows of `engine_gap` and `engine_gap_cause` of some months."""

    gaps: pl.DataFrame
    parts: pl.DataFrame

    @classmethod
    def of(cls, lake: Records, months: Collection[str]) -> Summary:
        """Read them."""
        mine = pl.col("day").dt.strftime("%Y-%m").is_in(list(months))
        gaps, parts = (lake.scan(table).filter(mine).collect() for table in ("engine_gap", "engine_gap_cause"))
        return cls(gaps, parts)

    def totals(self) -> list[dict[str, Any]]:
        """Per server and counter what all windows add up to."""
        grouped = self.gaps.group_by(*_SERVER, "counter", "label").agg(
            pl.col(_SUMS).sum(), windows=pl.len().cast(pl.Int64)
        )
        return grouped.sort(*_SERVER, "counter", "label", nulls_last=True).to_dicts()

    def causes(self) -> list[dict[str, Any]]:
        """Per server, cause and counter the parts of all windows, largest first."""
        ranks = {str(confidence): rank for rank, confidence in enumerate(Confidence)}
        whole = self.parts.filter(pl.col("label").is_null())
        grouped = whole.group_by(*_SERVER, "cause", "counter").agg(
            pl.col("tokens").sum(),
            windows=pl.len().cast(pl.Int64),
            weak=pl.col("confidence").replace_strict(ranks, return_dtype=pl.Int64).max(),
        )
        ordered = grouped.sort(pl.col("tokens").abs(), *_SERVER, "cause", "counter", descending=[True] + [False] * 6)
        names = {rank: name for name, rank in ranks.items()}
        return ordered.with_columns(
            confidence=pl.col("weak").replace_strict(names, return_dtype=pl.String)
        ).drop("weak").to_dicts()  # fmt: skip

    def windows(self, *, unexplained: bool) -> list[dict[str, Any]]:
        """The windows in order; only those with a residual where `unexplained`."""
        kept = self.gaps.filter(pl.col("residual") != 0) if unexplained else self.gaps
        return kept.sort("until", *_SERVER, "counter", "label", nulls_last=True).to_dicts()
