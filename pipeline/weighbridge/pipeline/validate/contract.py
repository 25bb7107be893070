"""The contract: the rules of every table, made from its declaration in `schemas`, so that nothing is declared twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime

import polars as pl
import pyarrow as pa

from weighbridge.pipeline.ingest.leaf_paths import is_leaf_path
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.validate.identities import laws_of
from weighbridge.pipeline.validate.rule import Footer, Gravity, Kind, Rule
from weighbridge.schemas.table import Column, Table
from weighbridge.schemas.tables import TABLES, UNASSIGNED

# Tables that files bring rows into day by day, from sources that keep coming.
ARRIVING = ("request_scope", "attempt", "child", "usage_report")
_NAMED = ("tenant", "task", "route")


def contract(table: str, known: Collection[str] | None = None) -> tuple[Rule, ...]:
    """The rules of a table that are about its rows, in the order of its columns, then those about several columns.

    Args:
        table: its name.
        known: digests of the files that have an account; null leaves out the rule about them.
    """
    about = TABLES[table]
    rules = [rule for column in about.columns for rule in _of_column(about, column)]
    rules += [*laws_of(table), _key(about), *_further(about)]
    if known is not None and "segment" in about.names and table != "segment":
        rules.append(_file(table, sorted(known)))
    return tuple(rules)


def _of_column(table: Table, column: Column) -> Iterator[Rule]:
    name, value = column.name, pl.col(column.name)
    critical = Gravity.CRITICAL
    if not column.nullable and name != "day":
        yield Rule(
            f"null.{name}",
            Kind.NULL,
            critical,
            table.name,
            name,
            "is never unknown",
            broken=value.is_null(),
            proof=_known(name),
        )
    if column.minimum is not None:
        says = f"is at least {column.minimum}"
        yield Rule(
            f"minimum.{name}", Kind.MINIMUM, critical, table.name, name, says,
            broken=value < column.minimum, sieve=(value.min() >= column.minimum).fill_null(value=True),
            asked=value.count(), proof=_at_least(name, column.minimum),
        )  # fmt: skip
    if pa.types.is_floating(column.type):
        yield Rule(
            f"finite.{name}", Kind.FINITE, critical, table.name, name, "is a number", broken=~value.is_finite(),
            sieve=value.sum().is_finite(), asked=value.count(),
        )  # fmt: skip
    if column.values is not None:
        words = [str(member) for member in column.values]
        yield Rule(
            f"word.{name}", Kind.WORD, critical, table.name, name, f"is a member of {column.values.__name__}",
            broken=~value.is_in(words), holds=lambda texts: texts.is_in(words),
        )  # fmt: skip
    elif column.pattern is not None:
        whole = f"^(?:{column.pattern})$"
        yield Rule(
            f"pattern.{name}", Kind.PATTERN, critical, table.name, name, f"matches {column.pattern} whole",
            broken=~value.str.contains(whole), holds=lambda texts: texts.str.contains(whole),
        )  # fmt: skip
    elif name == "leaf_shape":
        yield Rule(
            f"pattern.{name}", Kind.PATTERN, critical, table.name, name, "names allow-listed paths only",
            holds=_are_paths,
        )  # fmt: skip


def _are_paths(texts: pl.Series) -> pl.Series:
    good = [not text or all(map(is_leaf_path, text.split(" "))) for text in texts]
    return pl.Series(good, dtype=pl.Boolean)


def _key(table: Table) -> Rule:
    says = f"no other row has the same {', '.join(table.key)}"
    return Rule("unique.key", Kind.KEY, Gravity.CRITICAL, table.name, None, says)


def _file(table: str, known: list[str]) -> Rule:
    files = pl.Series(known, dtype=pl.String)
    return Rule(
        "file.segment", Kind.FILE, Gravity.CRITICAL, table, "segment", "names a file whose account is closed",
        broken=~pl.col("segment").is_in(files.implode()), holds=lambda texts: texts.is_in(files.implode()),
    )  # fmt: skip


def _further(table: Table) -> Iterator[Rule]:
    names = table.names
    if {"leaf_shape", "leaf_integers", "leaf_texts"} <= set(names):
        yield _aligned(table.name)
    if table.name == "attempt":
        # A revision lies on the day of what it revises, whenever it says that the attempt arrived.
        arrived = pl.when(pl.col("revision") == 0).then("arrived_at")
        yield Rule(
            "day.arrived_at", Kind.DAY, Gravity.WARNING, table.name, "arrived_at",
            "lies on the day of the row, unless that is a revision",
            broken=arrived.dt.date() != pl.col("day"), sieve=_within_a_day(arrived), asked=arrived.count(),
            proof=_on_its_day("arrived_at"),
        )  # fmt: skip
        yield Rule(
            "note.undated", Kind.NOTE, Gravity.INFO, table.name, "undated", "has a time of its own",
            broken=pl.col("undated"),
        )  # fmt: skip
        for name in _NAMED:
            yield Rule(
                f"note.{name}", Kind.NOTE, Gravity.INFO, table.name, name, "is assigned",
                broken=pl.col(name) == UNASSIGNED, holds=lambda texts: texts != UNASSIGNED,
            )  # fmt: skip


def _at_least(name: str, minimum: int) -> Callable[[Footer, Part], int | None]:
    def proof(footer: Footer, part: Part) -> int | None:
        bound = footer.get(name)
        if bound is None or not (bound.least is None or (isinstance(bound.least, int) and bound.least >= minimum)):
            return None
        return part.rows - bound.nulls

    return proof


def _known(name: str) -> Callable[[Footer, Part], int | None]:
    def proof(footer: Footer, part: Part) -> int | None:
        bound = footer.get(name)
        return None if bound is None or bound.nulls else part.rows

    return proof


def _on_its_day(name: str) -> Callable[[Footer, Part], int | None]:
    def proof(footer: Footer, part: Part) -> int | None:
        bound = footer.get(name)
        if bound is None or not all(_is_on(moment, part.day) for moment in (bound.least, bound.most)):
            return None
        return part.rows - bound.nulls

    return proof


def _is_on(moment: object, day: date | None) -> bool:
    return moment is None or (isinstance(moment, datetime) and moment.date() == day)


def _within_a_day(moments: pl.Expr) -> pl.Expr:
    """Of the rows of one day: the first and the last moment lie on it."""
    day = pl.col("day").first()
    return ((moments.min().dt.date() == day) & (moments.max().dt.date() == day)).fill_null(value=True)


def _aligned(table: str) -> Rule:
    """As many values as paths; a record of which nothing could be read has neither."""
    shape = pl.col("leaf_shape")
    paths = pl.when(shape == "").then(0).otherwise(shape.str.count_matches(" ", literal=True) + 1).fill_null(0)
    integers = pl.col("leaf_integers").list.len().fill_null(0)
    texts = pl.col("leaf_texts").list.len()
    return Rule(
        "leaves.leaf_shape", Kind.LEAVES, Gravity.CRITICAL, table, "leaf_shape", "has one value per path",
        broken=(integers != paths) | (texts != paths).fill_null(value=False),
    )  # fmt: skip


def is_name(text: object, pattern: str) -> bool:
    """Whether a text may be shown as the name it claims to be."""
    return isinstance(text, str) and re.fullmatch(pattern, text) is not None
