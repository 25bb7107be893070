"""How many rows break each rule, per day: one pass over the numbers of a day and one over the dictionaries of texts.

The two passes read different columns, so every column is read once, or not at all where the footer of its file shows
that no rule about it can be broken. Rows are never held: a day of any size takes the same memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl
import pyarrow as pa

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import bounds, files, texts
from weighbridge.pipeline.validate.rule import Kind, Rule
from weighbridge.schemas.tables import TABLES

# Columns whose texts are few: how many rows each of them has is kept for other rules.
TALLIED = ("source", "segment")
# A column with more distinct texts than this in one stretch of rows is one of identifiers: nothing is remembered of it.
_FEW = 4096
# Rows of files that are read together.
_TOGETHER = 200_000


@dataclass(slots=True)
class Counted:
    """What was counted on one day of a table.

    Attributes:
        rows: how many rows there are.
        broken: rule -> rows that break it; rules that no single row breaks are not among them.
        asked: rule -> rows it could be asked of, where that is not all of them.
        tallies: column -> text -> rows, of `TALLIED` columns; null stands for rows without one.
        bad: rule -> the texts that break it, of the whole table; left out where they are many. In memory only.
    """

    rows: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    asked: dict[str, int] = field(default_factory=dict)
    tallies: dict[str, Counter[str | None]] = field(default_factory=dict)
    bad: dict[str, set[str]] = field(default_factory=dict)


def count(
    lake: Lake, table: str, rules: Sequence[Rule], days: Collection[date | None], parts: Sequence[Part]
) -> dict[date | None, Counted]:
    """Count the rows of each day that break the rules of single rows.

    Args:
        lake: the lake; its lock is held.
        table: the table.
        rules: its rules.
        days: the days, or null alone for a table that is not kept by day.
        parts: the files of these days.

    Raises:
        LakeError: the table cannot be read.
    """
    found: dict[date | None, Counted] = {day: Counted() for day in days}
    strings = {column.name for column in TABLES[table].columns if pa.types.is_string(column.type)}
    worded = [r for r in rules if r.holds is not None or (r.kind is Kind.NULL and r.column in strings)]
    numbers = [rule for rule in rules if rule.broken is not None and rule not in worded]
    _count_numbers(lake, table, numbers, parts, found)
    _count_texts(lake, table, worded, parts, found)
    return found


def _count_numbers(
    lake: Lake, table: str, rules: Sequence[Rule], parts: Sequence[Part], found: Mapping[date | None, Counted]
) -> None:
    known = [rule for rule in rules if rule.broken is not None]
    for batch in _batches(table, parts):
        footers = [(part, bounds(lake, part)) for part, _ in batch]
        proofs = {
            rule.name: [rule.proof(footer, part) if rule.proof else None for part, footer in footers] for rule in known
        }
        looked = [rule for rule in known if None in proofs[rule.name]]
        sieved = {
            rule.name: rule.sieve
            for rule in looked
            if rule.sieve is not None and (rule.safe is None or all(rule.safe(footer) for _, footer in footers))
        }
        sums = [pl.len().cast(pl.Int64).alias("rows")]
        sums += [_broken(rule) for rule in looked if rule.name not in sieved]
        sums += [sieve.alias(f"sieve {name}") for name, sieve in sieved.items()]
        sums += [rule.asked.alias(f"asked {rule.name}") for rule in looked if rule.asked is not None]
        frames = [(part.day, rows) for part, rows in batch]
        with told(f"validating {table}", lake.root):
            of_days = _sums(frames, sums)
            caught = [
                rule
                for rule in looked
                if rule.name in sieved and not all(row[f"sieve {rule.name}"] for _, row in of_days)
            ]
            recounted = dict(_sums(frames, [*map(_broken, caught)])) if caught else {}
        for day, row in of_days:
            _add(found[day], looked, row | recounted.get(day, {}))
        for rule in known:
            if rule not in looked:
                for (part, _), asked in zip(footers, proofs[rule.name], strict=True):
                    _add_proved(found[part.day], rule, asked or 0)


def _add(counted: Counted, rules: Sequence[Rule], row: Mapping[str, int]) -> None:
    counted.rows += row["rows"]
    for rule in rules:
        counted.broken[rule.name] += row.get(f"broken {rule.name}", 0)
        if rule.asked is not None:
            counted.asked[rule.name] = counted.asked.get(rule.name, 0) + row[f"asked {rule.name}"]


def _add_proved(counted: Counted, rule: Rule, asked: int) -> None:
    counted.broken[rule.name] += 0
    if rule.asked is not None:
        counted.asked[rule.name] = counted.asked.get(rule.name, 0) + asked


def _batches(table: str, parts: Sequence[Part]) -> Iterator[list[tuple[Part, pl.LazyFrame]]]:
    """Files in batches: a large one is read alone, for memory; small ones together, for each query has its price."""
    batch: list[tuple[Part, pl.LazyFrame]] = []
    size = 0
    for part, frame in files(table, parts):
        if batch and size + part.rows > _TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append((part, frame))
        size += part.rows
    if batch:
        yield batch


def _sums(
    batch: Sequence[tuple[date | None, pl.LazyFrame]], sums: Sequence[pl.Expr]
) -> list[tuple[date | None, dict[str, int]]]:
    """Day -> sums over its rows of one batch."""
    if len(batch) == 1:
        ((day, rows),) = batch
        return [(day, rows.select(sums).collect(engine="streaming").row(0, named=True))]
    together = pl.concat([rows for _, rows in batch])
    if batch[0][0] is None:
        return [(None, together.select(sums).collect(engine="streaming").row(0, named=True))]
    by_day = together.group_by(_of=pl.col("day")).agg(sums).collect(engine="streaming")
    return [(row.pop("_of"), row) for row in by_day.iter_rows(named=True)]


def _broken(rule: Rule) -> pl.Expr:
    assert rule.broken is not None
    return rule.broken.sum().cast(pl.Int64).alias(f"broken {rule.name}")


def _count_texts(
    lake: Lake, table: str, rules: Sequence[Rule], parts: Sequence[Part], found: Mapping[date | None, Counted]
) -> None:
    tallied = [name for name in TALLIED if name in TABLES[table].names]
    columns = list(dict.fromkeys([*(rule.column for rule in rules if rule.column), *tallied]))
    judges = {name: [_Judge(rule) for rule in rules if rule.column == name] for name in columns}
    for day, stretch in texts(lake, table, columns, parts):
        counted = found[day]
        for name, values in stretch.items():
            for judge in judges[name]:
                counted.broken[judge.rule.name] += judge.count(values)
            if name in tallied:
                counted.tallies.setdefault(name, Counter()).update(tally(values))
    bad = {judge.rule.name: judge.bad for of in judges.values() for judge in of if 0 < len(judge.bad) <= _FEW}
    for counted in found.values():
        counted.bad = bad
        for rule in rules:
            counted.broken.setdefault(rule.name, 0)


class _Judge:
    """One rule about the texts of one column; a text that it has judged is not looked at again.

    Attributes:
        rule: the rule.
        bad: the texts that break it; once there are more than a few, not all of them.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.bad: set[str] = set()
        self._good: set[str | None] = set()

    def count(self, values: pa.DictionaryArray) -> int:
        """How many of these values break the rule. Null breaks only the rule that there is a value."""
        if self.rule.kind is Kind.NULL:
            return int(values.null_count)
        bad = self._bad(values.dictionary)
        return 0 if bad is None else int(bad[_codes(values)].sum())

    def _bad(self, distinct: pa.Array) -> np.ndarray | None:
        """Of each distinct text whether it breaks the rule; null where none does."""
        if len(distinct) > _FEW:
            bad = self._broken(pl.Series(pl.from_arrow(distinct), dtype=pl.String))
            return bad if bad.any() else None
        texts = distinct.to_pylist()
        fresh = [text for text in texts if text not in self._good and text not in self.bad]
        broken = self._broken(pl.Series(fresh, dtype=pl.String)).tolist() if fresh else []
        # Of many bad ones not all are remembered: those are judged each time they are met.
        breaks = dict(zip(fresh, broken, strict=True))
        self._good.update(text for text, bad in breaks.items() if not bad)
        if self._good.issuperset(texts):
            return None
        return np.array([breaks.get(text, text in self.bad) for text in texts], bool)

    def _broken(self, texts: pl.Series) -> np.ndarray:
        """Of each text whether it breaks the rule; those that do are remembered as far as they are few."""
        assert self.rule.holds is not None
        bad = (~self.rule.holds(texts)).fill_null(value=False)
        if len(self.bad) <= _FEW:
            self.bad.update(texts.filter(bad))
        found: np.ndarray = bad.to_numpy()
        return found


def _codes(values: pa.DictionaryArray) -> np.ndarray:
    codes: np.ndarray = values.indices.drop_null().to_numpy(zero_copy_only=False)
    return codes


def tally(values: pa.DictionaryArray) -> dict[str | None, int]:
    """Text -> how many rows have it."""
    counts = np.bincount(_codes(values), minlength=len(values.dictionary))
    out: dict[str | None, int] = {
        text: int(number) for text, number in zip(values.dictionary.to_pylist(), counts, strict=True) if number
    }
    return out if not values.null_count else out | {None: values.null_count}
