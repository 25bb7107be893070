"""Steps of an engine as rows of `engine_counter`: what they came to, counter by counter, at each time it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.ingest.record_fields import epoch_time
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.engine_steps import Series, Told, unit_of
from weighbridge.schemas.identity import keyed_key

SOURCE = "engine-steps"
ENGINE = "vllm"
_TABLE = "engine_counter"
_MICRO = 1_000_000


@dataclass(slots=True)
class StepCounters:
    """The rows of one file while they are gathered."""

    source: Source
    _rows: list[dict[str, object]] = field(default_factory=list)
    _names: dict[Series, str] = field(default_factory=dict)

    def add(self, told: Told) -> None:
        """Add what the steps had come to at one time."""
        at = epoch_time(told.at_us, _MICRO)
        began = None if told.began_us is None else epoch_time(told.began_us, _MICRO)
        if at is None:
            return
        for series, value in told.counts.items():
            counter, label = series
            name = self._named(series)
            cell = keyed_key(self.source.key, SOURCE, name, at.isoformat())
            self._rows.append(
                {
                    "segment_row": told.number,
                    "cell_hi": cell.hi,
                    "cell_lo": cell.lo,
                    "day": at.date(),
                    "source": SOURCE,
                    "engine": ENGINE,
                    "model": self.source.model,
                    "series": name,
                    "counter": str(counter),
                    "label": label,
                    "unit": str(unit_of(counter)),
                    "metric": f"{ENGINE}:steps:{counter}",
                    "scraped_at": at,
                    "started_at": began,
                    "value": value,
                    "undated": False,
                }
            )

    def rows(self) -> pl.DataFrame | None:
        """All rows; null where there are none."""
        return _frame(self._rows) if self._rows else None

    def _named(self, series: Series) -> str:
        if series not in self._names:
            counter, label = series
            model = self.source.model or ""
            self._names[series] = keyed_key(self.source.key, SOURCE, model, str(counter), label or "").to_hex()
        return self._names[series]


def _frame(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    types = {**polars_schema(_TABLE), "segment_row": pl.Int64()}
    return pl.DataFrame(rows, schema={name: types[name] for name in rows[0]})
