"""The rows that break a rule: how many of them a person has released, and the places of the first of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.validate.counts import Counted
from weighbridge.pipeline.validate.rule import Rule, placed
from weighbridge.schemas.enumerations import QuarantineState
from weighbridge.schemas.tables import HEX64, TABLES

# Rows of one rule on one day whose places are kept where nothing else is said. All of them are counted.
MOST = 1_000
# Rows of one rule on one day that are read together with those of other rules.
_FEW = 100_000
PLACES = {
    "day": pl.Date(),
    "segment": pl.String(),
    "segment_row": pl.Int64(),
    "source": pl.String(),
    "attempt_hi": pl.Int64(),
    "attempt_lo": pl.Int64(),
}
Released = Mapping[tuple[str, str], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Offence:
    """The rows of one day that break one rule.

    Attributes:
        table, day, rule: which.
        rows: how many rows break it.
        released: how many of them a person let stand.
        places: `PLACES` of the first others by file and line, as many as were asked for; null where a table has no such
            column.
    """

    table: str
    day: date | None
    rule: Rule
    rows: int
    released: int
    places: pl.DataFrame

    @property
    def open(self) -> int:
        """How many rows break it and were not released."""
        return self.rows - self.released


def released(lake: Lake) -> Released:
    """(table, rule) -> segment and line of the rows that were released and not taken back since."""
    last = lake.scan("quarantine_status").sort("entry_id", "change").group_by("entry_id", maintain_order=True).last()
    held = last.filter(pl.col("state") == str(QuarantineState.RELEASED), pl.col("rule").is_not_null())
    rows = held.select("table_name", "rule", "segment", segment_row="line").collect()
    return {
        (str(table), str(rule)): places.drop("table_name", "rule")
        for (table, rule), places in rows.partition_by("table_name", "rule", as_dict=True).items()
    }


def offences(
    lake: Lake,
    day: date | None,
    parts: Sequence[Part],
    counted: Counted,
    rules: Sequence[Rule],
    released: Released,
    most: int | None = MOST,
    segments: Collection[str] | None = None,
) -> Iterator[Offence]:
    """What is known of the rows of one day that break rules of single rows.

    Args:
        parts: the files of that day.
        counted: what was counted on it.
        rules: the rules that are broken, all of one table.
        released: rows that may stand.
        most: rows of one rule whose places are kept; null: all.
        segments: only places of rows of these files are kept; null: of all.

    The rows of all rules that few break are read in one pass; a rule that many break has one of its own, which keeps
    only the first of them.
    """
    if not rules:
        return
    table = rules[0].table
    with told(f"validating {table}", lake.root):
        rows = pl.concat([rows for _, rows in files(table, parts)])
        broken = counted.broken
        tests = {rule.name: _broken(rule, rows, counted.bad.get(rule.name)).fill_null(value=False) for rule in rules}
        few = [rule for rule in rules if broken[rule.name] <= _FEW]
        if few:
            any_of = pl.any_horizontal(tests[rule.name] for rule in few)
            flags = [tests[rule.name].alias(rule.name) for rule in few]
            held = rows.filter(any_of).select(*_columns(table), *flags).collect(engine="streaming")
            for rule in few:
                yield sorted_out(rule, day, broken[rule.name], held.lazy().filter(rule.name), released, most, segments)
        for rule in rules:
            if rule not in few:
                of_rule = places_of(table, rows.filter(tests[rule.name]))
                yield sorted_out(rule, day, broken[rule.name], of_rule, released, most, segments)


def sorted_out(
    rule: Rule,
    day: date | None,
    rows: int,
    broken: pl.LazyFrame,
    released: Released,
    most: int | None = MOST,
    segments: Collection[str] | None = None,
) -> Offence:
    """Tell the released ones of broken rows from the others, and keep the places of the first of these.

    Args:
        rows: how many they are.
        broken: their places.
        most: how many places are kept; null: all.
        segments: only those of rows of these files; null: of all.
    """
    number = 0
    let = released.get((rule.table, rule.name)) if placed(TABLES[rule.table]) else None
    if let is not None:
        place = ["segment", "segment_row"]
        number = int(broken.join(let.lazy(), on=place, how="semi").select(pl.len()).collect(engine="streaming").item())
        broken = broken.join(let.lazy(), on=place, how="anti")
    if segments is not None:
        broken = broken.filter(pl.col("segment").is_in(list(segments)))
    first = broken.select(list(PLACES)).sort("segment", "segment_row", "attempt_hi", "attempt_lo", nulls_last=True)
    kept = first if most is None else first.head(most)
    return Offence(rule.table, day, rule, rows, number, kept.collect(engine="streaming"))


def places_of(table: str, rows: pl.LazyFrame) -> pl.LazyFrame:
    """The places of rows of a table; null where it has no such column."""
    return rows.with_columns(_columns(table)).select(list(PLACES))


def _columns(table: str) -> list[pl.Expr]:
    """The columns of `PLACES`. A digest that is none, and a line before the first, are no place: they may be text."""
    names = TABLES[table].names
    fits = {"segment": pl.col("segment").str.contains(f"^(?:{HEX64})$"), "segment_row": pl.col("segment_row") >= 0}
    return [
        (pl.when(fits.get(name, pl.lit(value=True))).then(name) if name in names else _missing(table, name))
        .cast(kind)
        .alias(name)
        for name, kind in PLACES.items()
    ]


def _missing(table: str, name: str) -> pl.Expr:
    """A column a table does not have; an invoice line is of the day its period begins."""
    if table == "invoice_line" and name == "day":
        return pl.col("period_start").dt.date()
    return pl.lit(None)


def _broken(rule: Rule, rows: pl.LazyFrame, bad: Collection[str] | None) -> pl.Expr:
    if bad is not None and rule.column is not None:
        return pl.col(rule.column).is_in(list(bad))
    if rule.broken is not None:
        return rule.broken
    assert rule.holds is not None
    assert rule.column is not None
    distinct = rows.select(rule.column).unique().collect(engine="streaming")[rule.column].drop_nulls()
    return pl.col(rule.column).is_in(distinct.filter(~rule.holds(distinct)).implode())
