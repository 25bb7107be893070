"""Tenant and model of each attempt as one number, read from the dictionaries that files keep their texts in.

A file has each name once and a small number per row. Those numbers are turned into numbers that are the same in all
files; no text is looked at row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import columns
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints, each_once
from weighbridge.pipeline.reconcile.overview.pairs import STEP
from weighbridge.pipeline.reconcile.overview.totals.percentiles import MOST_GROUPS
from weighbridge.schemas.errors import ConfigError

WHO = "who"
Codes = np.ndarray[Any, np.dtype[np.int32]]
_COLUMNS = ("tenant", "model_served", "model_requested")
MOST_NAMES = MOST_GROUPS // STEP
# Places of a table of tenants by models, 8 bytes each. Where every tenant has models of its own nearly all places would
# be empty, so beyond this there is none.
MOST_PLACES = 2**23


class _Coded(NamedTuple):
    """A column of texts: the number of each row's text, -1 for null; the texts; whether there is no null."""

    codes: Codes
    words: list[str]
    whole: bool


@dataclass(slots=True)
class Names:
    """Every pair of tenant and model that was met, each with its number."""

    pairs: list[tuple[str | None, str | None]] = field(default_factory=list)
    _tenants: dict[str | None, int] = field(default_factory=dict)
    _models: dict[str | None, int] = field(default_factory=dict)
    # By number of tenant and of model: the number of the pair.
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    # The same as a table, -1 where it was not met yet; null where it would have too many places.
    _table: Ints | None = field(default_factory=lambda: np.full((64, 16), -1, np.int64))
    # Address and footer of the file that was read last.
    _footer: tuple[str, pq.FileMetaData] | None = None

    def number(self, tenant: str | None, model: str | None) -> int:
        """The number of a pair.

        Raises:
            ConfigError: there are too many pairs to be numbered.
        """
        place = (self._of(self._tenants, tenant), self._of(self._models, model))
        if place not in self._numbers:
            if len(self.pairs) >= MOST_NAMES:
                raise ConfigError(
                    f"there are more than {MOST_NAMES:,} pairs of tenant and model; ask for one month at a time, or "
                    "use the engine spark"
                )
            self._numbers[place] = len(self.pairs)
            self._make_room()
            if self._table is not None:
                self._table[place] = len(self.pairs)
            self.pairs.append((tenant, model))
        return self._numbers[place]

    def of_rows(self, place: Place, part: Part, groups: list[int], absent: frozenset[str] = frozenset()) -> pl.Series:
        """The numbers of the rows of some row groups of a file of attempts; null where tenant or model is unknown.

        Args:
            place: the lake.
            part: the file.
            groups: the numbers of its row groups.
            absent: columns that are null in every row.
        """
        with told("reading attempt", place.root):
            store, path = place.store_of(part.address)
            with store.open_input_file(path) as source:
                footer = self._footer_of(part, source)
                stored = set(columns(footer)) - absent
                held = [name for name in _COLUMNS if name in stored]
                file = pq.ParquetFile(source, metadata=footer, read_dictionary=held)
                found = np.empty(sum(footer.row_group(group).num_rows for group in groups), np.int64)
                start, whole = 0, True
                for group in groups:
                    rows = file.read_row_group(group, columns=held, use_threads=False)
                    for batch in rows.to_batches() if held else [_nameless(footer.row_group(group).num_rows)]:
                        numbers = found[start : start + batch.num_rows]
                        whole &= self._of_batch(batch, numbers)
                        start += batch.num_rows
        series = pl.Series(WHO, found)
        return series if whole else series.set(series < 0, None)

    def of_texts(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with `tenant` and `model` as texts, and their number beside them."""
        pairs = rows.select("tenant", "model").unique()
        numbered = pairs.with_columns(
            pl.Series(WHO, [self.number(*pair) for pair in pairs.iter_rows()], dtype=pl.Int64)
        )
        return rows.join(numbered, on=["tenant", "model"], how="left", nulls_equal=True)

    def _footer_of(self, part: Part, source: pa.NativeFile) -> pq.FileMetaData:
        """The footer of a file. That of the last one is held: a day has as many stretches as it is large."""
        if self._footer is None or self._footer[0] != part.address:
            self._footer = part.address, pq.read_metadata(source)
        return self._footer[1]

    def _of_batch(self, batch: pa.RecordBatch, found: Ints) -> bool:
        """Put the numbers of some rows into their place, -1 where a name is unknown; whether all names are known."""
        columns = {name: _coded(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        blank = _Coded(np.full(batch.num_rows, -1, np.int32), [], whole=not batch.num_rows)
        tenant, served, asked = (columns.get(name, blank) for name in _COLUMNS)
        tenants, models = self._global(self._tenants, tenant), self._global(self._models, served)
        whole = tenant.whole and served.whole
        if not served.whole:
            models = np.where(models >= 0, models, self._global(self._models, asked))
        self._make_room()
        if self._table is None:
            return self._one_by_one(tenants, models, found)
        if whole:
            # The short road: every row has both names, and the two are one place in the table.
            self._table.ravel().take(tenants * np.int32(self._table.shape[1]) + models, out=found, mode="clip")
            if not len(found) or found.min() >= 0:
                return True
        known = (tenants >= 0) & (models >= 0)
        found[:] = np.where(known, self._table[tenants, models], -1)
        fresh = known & (found < 0)
        if fresh.any():
            self._one_by_one(tenants[fresh], models[fresh], np.empty(np.count_nonzero(fresh), np.int64))
            return self._of_batch(batch, found)
        return bool(known.all())

    def _one_by_one(self, tenants: Codes, models: Codes, found: Ints) -> bool:
        """The same from the numbers of tenants and models, whatever the table has."""
        known = (tenants >= 0) & (models >= 0)
        told = tenants[known].astype(np.int64) << 32 | models[known]
        pairs = each_once(told)
        words, kinds = list(self._tenants), list(self._models)
        places = [(pair >> 32, pair & (2**32 - 1)) for pair in pairs.tolist()]
        numbers = [self.number(words[one], kinds[other]) for one, other in places]
        found[:] = -1
        found[known] = np.array(numbers, np.int64)[np.searchsorted(pairs, told)]
        return bool(known.all())

    def _global(self, known: dict[str | None, int], column: _Coded) -> Codes:
        """Codes of one dictionary as numbers that are the same everywhere; -1 stays."""
        own = np.array([*(self._of(known, word) for word in column.words), -1], np.int32)
        return own.take(column.codes) if column.whole else own[column.codes]

    def _make_room(self) -> None:
        if self._table is None:
            return
        rows, columns = self._table.shape
        if len(self._tenants) > rows or len(self._models) > columns:
            room = (max(rows, 2 * len(self._tenants)), max(columns, 2 * len(self._models)))
            if room[0] * room[1] > MOST_PLACES:
                self._table = None
                return
            wide = np.full(room, -1, np.int64)
            wide[:rows, :columns] = self._table
            self._table = wide

    @staticmethod
    def _of(known: dict[str | None, int], word: str | None) -> int:
        return known.setdefault(word, len(known))


def _coded(column: Any) -> _Coded:
    if pa.types.is_null(column.type):
        return _Coded(np.full(len(column), -1, np.int32), [], whole=not len(column))
    codes, words = column.indices, column.dictionary.to_pylist()
    # The numbers as they lie in memory: asked for an array, pyarrow would load all its functions, or pandas, first.
    width, (known, values) = codes.type.bit_width // 8, codes.buffers()
    held = np.frombuffer(values, f"<i{width}", len(codes), codes.offset * width).astype(np.int32, copy=False)
    if not codes.null_count:
        return _Coded(held, words, whole=True)
    bits = np.unpackbits(np.frombuffer(known, np.uint8), bitorder="little", count=codes.offset + len(codes))
    return _Coded(np.where(bits[codes.offset :], held, np.int32(-1)), words, whole=False)


def _nameless(rows: int) -> pa.RecordBatch:
    """Rows of a file that has no names at all."""
    return pa.record_batch({_COLUMNS[0]: pa.nulls(rows)})
