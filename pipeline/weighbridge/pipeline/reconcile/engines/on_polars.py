"""Frames that Polars computes in this process, streaming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import files as scanned
from weighbridge.pipeline.reconcile.engines.columns import day_of
from weighbridge.pipeline.reconcile.engines.engine import POLARS, Frame
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums


@dataclass(frozen=True, slots=True)
class OnPolars:
    """The default engine: nothing to install, nothing to start."""

    name: str = POLARS

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """Rows as they are."""
        return nw.from_native(rows.lazy())

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """The files one after the other."""
        parts = [Part(day_of(address), 0, address) for address in files]
        return nw.from_native(pl.concat(rows.select(columns) for _, rows in scanned(table, parts)))

    def kept(self, frame: Frame) -> Frame:
        """The rows, in memory."""
        return nw.from_native(self.collected(frame).lazy())

    def collected(self, frame: Frame) -> pl.DataFrame:
        """The rows."""
        native: Any = frame.to_native()
        with told_of_sums():
            if isinstance(native, pl.LazyFrame):
                return native.collect(engine="streaming")
            rows: pl.DataFrame = frame.collect("polars").to_native()
            return rows

    def close(self) -> None:
        """Nothing is kept."""


_ENGINE = OnPolars()


def engine() -> OnPolars:
    """The one engine."""
    return _ENGINE
