"""Tenant and model of each attempt as one number, read from the dictionaries that files keep their texts in.

A file has each name once and a small number per row. Those numbers are turned into numbers that are the same in all
files; no text is looked at row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.reconcile.overview.packed import MOST_GROUPS, Ints
from weighbridge.pipeline.reconcile.overview.pairs import STEP
from weighbridge.schemas.errors import ConfigError

WHO = "who"
Codes = np.ndarray[Any, np.dtype[np.int32]]
_COLUMNS = ("tenant", "model_served", "model_requested")
MOST_NAMES = MOST_GROUPS // STEP


@dataclass(slots=True)
class Names:
    """Every pair of tenant and model that was met, each with its number."""

    pairs: list[tuple[str | None, str | None]] = field(default_factory=list)
    _tenants: dict[str | None, int] = field(default_factory=dict)
    _models: dict[str | None, int] = field(default_factory=dict)
    # By number of tenant and of model: the number of the pair, -1 where it was not met yet.
    _table: Ints = field(default_factory=lambda: np.full((64, 16), -1, np.int64))

    def number(self, tenant: str | None, model: str | None) -> int:
        """The number of a pair.

        Raises:
            ConfigError: there are too many pairs to be numbered.
        """
        place = (self._of(self._tenants, tenant), self._of(self._models, model))
        self._make_room()
        if self._table[place] < 0:
            if len(self.pairs) >= MOST_NAMES:
                raise ConfigError(
                    f"there are more than {MOST_NAMES:,} pairs of tenant and model; ask for one month at a time, or "
                    "use the engine duckdb"
                )
            self._table[place] = len(self.pairs)
            self.pairs.append((tenant, model))
        return int(self._table[place])

    def of_rows(self, place: Place, part: Part, groups: list[int]) -> pl.Series:
        """The numbers of the rows of some row groups of a file of attempts; null where tenant or model is unknown."""
        with told("reading attempt", place.root):
            store, path = place.store_of(part.address)
            with store.open_input_file(path) as source:
                file = pq.ParquetFile(source, read_dictionary=list(_COLUMNS))
                held = [name for name in _COLUMNS if name in file.schema_arrow.names]
                numbers = [self._of_group(file.read_row_group(g, columns=held, use_threads=False)) for g in groups]
        found = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
        series = pl.Series(WHO, found)
        return series if not len(found) or found.min() >= 0 else series.set(series < 0, None)

    def of_texts(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with `tenant` and `model` as texts, and their number beside them."""
        pairs = rows.select("tenant", "model").unique()
        numbered = pairs.with_columns(
            pl.Series(WHO, [self.number(*pair) for pair in pairs.iter_rows()], dtype=pl.Int64)
        )
        return rows.join(numbered, on=["tenant", "model"], how="left", nulls_equal=True)

    def _of_group(self, table: pa.Table) -> Ints:
        out = []
        for batch in table.to_batches():
            columns = {name: _coded(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            out.append(self._of_batch(columns, batch.num_rows))
        return np.concatenate(out) if out else np.zeros(0, np.int64)

    def _of_batch(self, columns: dict[str, tuple[Codes, list[str]]], rows: int) -> Ints:
        blank: tuple[Codes, list[str]] = (np.full(rows, -1, np.int32), [])
        tenants = self._global(self._tenants, *columns.get("tenant", blank))
        models = self._global(self._models, *columns.get("model_served", blank))
        if "model_requested" in columns and (models < 0).any():
            models = np.where(models >= 0, models, self._global(self._models, *columns["model_requested"]))
        self._make_room()
        if rows and tenants.min() >= 0 and models.min() >= 0:
            # The short road: every row has both names, and the two are one place in the table.
            whole: Ints = self._table.ravel().take(tenants * np.int32(self._table.shape[1]) + models)
            if whole.min() >= 0:
                return whole
        known = (tenants >= 0) & (models >= 0)
        found = np.where(known, self._table[tenants, models], -1)
        fresh = known & (found < 0)
        if fresh.any():
            words, kinds = list(self._tenants), list(self._models)
            for tenant, model in np.unique(np.stack([tenants[fresh], models[fresh]], axis=1), axis=0).tolist():
                self.number(words[tenant], kinds[model])
            found = np.where(known, self._table[tenants, models], -1)
        return found

    def _global(self, known: dict[str | None, int], codes: Codes, words: list[str]) -> Codes:
        """Codes of one dictionary as numbers that are the same everywhere; -1 stays."""
        own = np.array([*(self._of(known, word) for word in words), -1], np.int32)
        return own.take(codes) if (codes >= 0).all() else own[codes]

    def _make_room(self) -> None:
        rows, columns = self._table.shape
        if len(self._tenants) > rows or len(self._models) > columns:
            wide = np.full((max(rows, 2 * len(self._tenants)), max(columns, 2 * len(self._models))), -1, np.int64)
            wide[:rows, :columns] = self._table
            self._table = wide

    @staticmethod
    def _of(known: dict[str | None, int], word: str | None) -> int:
        return known.setdefault(word, len(known))


def _coded(column: Any) -> tuple[Codes, list[str]]:
    """Codes of a column, -1 for null, and the words they stand for."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int32), []
    codes = column.indices
    if codes.null_count:
        return pl.Series(codes).cast(pl.Int32).fill_null(-1).to_numpy(), column.dictionary.to_pylist()
    # The numbers as they lie in memory: asked for an array, pyarrow would load pandas first.
    width = codes.type.bit_width // 8
    held = np.frombuffer(codes.buffers()[1], f"<i{width}", len(codes), codes.offset * width)
    return held.astype(np.int32, copy=False), column.dictionary.to_pylist()
