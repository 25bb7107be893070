"""Attempts beside their usage: one row per attempt, whoever wrote about it, a stretch of days at a time.

An attempt and its usage mostly lie on one day. The rest (a report booked after midnight, an export dated later, usage
nobody saw the attempt of) is held back until all days were read and then joined once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import REPORTED_CLASSES
from weighbridge.schemas.tables import UNASSIGNED

KEY = ["attempt_lo", "attempt_hi"]
# What a series of attempts is told apart by: with a measure, this is a cell.
SERIES = ("tenant", "task", "model", "model_revision", "tokenizer", "strategy_id")
TOTALS = ("input_total", "output_total")
COUNTS = (*REPORTED_CLASSES, *TOTALS)
# No attempt has more tokens, or fewer than none; other figures are findings elsewhere and are measured nowhere.
LARGEST = 2**40
# Days are read together up to about so many attempts, which bounds memory.
BATCH = 1_500_000
# Between the parts of a series' label: no name of the vocabulary can contain it.
BETWEEN = "\x1f"

_SAID = ("attempt_number", "arrived_at")
_ATTEMPT_READ = (
    *(*KEY, "day", "source", "revision", "model_served", "model_requested"),
    *(name for name in (*SERIES, *_SAID) if name != "model"),
)
_READING = (*KEY, "day", "source", "child", "report", "revision", "verdict", "model", *COUNTS)
_USAGE = (*KEY, "day", "model", *COUNTS)
_PLACED = (*KEY, "day", "series", "attempt_number", "hour")
_HAS_USAGE = "has_usage"


@dataclass(slots=True)
class _Late:
    """What met nothing among the rows of its own days, and the keys of all that did."""

    attempts: list[pl.DataFrame] = field(default_factory=list)
    usage: list[pl.DataFrame] = field(default_factory=list)
    met: list[pl.Series] = field(default_factory=list)


def attempts_with_usage(records: Records, first: date, last: date) -> Iterator[pl.DataFrame]:
    """The attempts of these UTC days with what their usage reports say.

    Yields:
        attempt_lo, attempt_hi, day, series (its label: the columns of `SERIES`, joined), attempt_number, hour (of the
        UTC week, from Monday; null where the time is not known), and `COUNTS` (null where unknown). Usage without an
        attempt is a row of its own, with tenant and task unassigned.
    """
    late = _Late()
    for start, end in _stretches(records, first, last):
        attempts, usage = _attempts(records, start, end), _usage(records, start, end)
        joined = _joined(attempts, usage)
        found = joined.filter(_HAS_USAGE).drop(_HAS_USAGE)
        if found.height < joined.height:
            late.attempts.append(joined.filter(~pl.col(_HAS_USAGE)).select(_PLACED))
        if found.height < usage.height:
            late.usage.append(usage.join(found.select(KEY), on=KEY, how="anti"))
        late.met.append(found["attempt_lo"])
        yield found
    yield from _met_late(late)


def _stretches(records: Records, first: date, last: date) -> Iterator[tuple[date, date]]:
    counted = [
        records.scan(table, first=first, last=last, columns=["day"]).group_by("day").agg(rows=pl.len())
        for table in ("attempt", "reading")
    ]
    sizes = pl.concat(counted).group_by("day").agg(pl.col("rows").max()).sort("day").collect(engine="streaming")
    stretch: list[date] = []
    held = 0
    for day, rows in sizes.iter_rows():
        if stretch and held + rows > BATCH:
            yield stretch[0], stretch[-1]
            stretch, held = [], 0
        stretch.append(day)
        held += rows
    if stretch:
        yield stretch[0], stretch[-1]


def _attempts(records: Records, first: date, last: date) -> pl.DataFrame:
    """One row per attempt: of each source the last revision, and what the first source that knows it says."""
    rows = records.scan("attempt", first=first, last=last, columns=list(_ATTEMPT_READ))
    named = rows.with_columns(pl.coalesce("model_served", "model_requested").alias("model"))
    held = _placed(named).collect(engine="streaming")
    if not _repeated(held["attempt_lo"]):
        return held
    shared = held.select(pl.struct(KEY).is_duplicated()).to_series()
    keys = held.filter(shared).select(KEY).unique()
    several = named.join(keys.lazy(), on=KEY, how="semi").collect(engine="streaming")
    last_of_source = several.sort("revision").group_by(*KEY, "source", maintain_order=True).last().sort("source")
    unnamed = [pl.when(pl.col(name) != UNASSIGNED).then(name).alias(name) for name in ("tenant", "task")]
    first_known = [pl.col(name).drop_nulls().first() for name in (*SERIES, *_SAID)]
    merged = last_of_source.with_columns(unnamed).group_by(KEY).agg(pl.col("day").min(), *first_known)
    filled = merged.with_columns(pl.col("tenant", "task").fill_null(UNASSIGNED))
    return pl.concat([held.filter(~shared), _placed(filled.lazy()).collect()])


def _placed(rows: pl.LazyFrame) -> pl.LazyFrame:
    at = pl.col("arrived_at")
    hour = ((at.dt.weekday().cast(pl.Int32) - 1) * 24 + at.dt.hour()).cast(pl.UInt8)
    return rows.with_columns(label(), hour=hour).select(_PLACED)


def label() -> pl.Expr:
    """The label of a row's series, made from the columns of `SERIES`."""
    parts = [pl.col(name).fill_null("") for name in SERIES]
    return pl.concat_str(parts, separator=BETWEEN).cast(pl.Categorical).alias("series")


def _usage(records: Records, first: date, last: date) -> pl.DataFrame:
    """One row per attempt: what the first report of the first source adds up to over the attempt's children."""
    rows = records.scan("reading", first=first, last=last, columns=list(_READING))
    readable = pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])
    plausible = [pl.when(pl.col(name).is_between(0, LARGEST)).then(name).alias(name) for name in COUNTS]
    usable = rows.filter(readable & (pl.col("report") == 0)).with_columns(plausible)
    held = usable.select(_USAGE).collect(engine="streaming")
    if not _repeated(held["attempt_lo"]):
        return held
    shared = held.select(pl.struct(KEY).is_duplicated()).to_series()
    keys = held.filter(shared).select(KEY).unique()
    several = usable.join(keys.lazy(), on=KEY, how="semi").collect(engine="streaming")
    last_of_child = several.sort("revision").group_by(*KEY, "source", "child", maintain_order=True).last()
    first_source = last_of_child.filter(pl.col("source") == pl.col("source").min().over(KEY)).sort("child")
    # A class that one child leaves open is open for the attempt.
    whole = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name) for name in COUNTS]
    summed = first_source.group_by(KEY).agg(pl.col("day").min(), pl.col("model").first(), *whole)
    return pl.concat([held.filter(~shared), summed.select(_USAGE)])


def _repeated(values: pl.Series) -> bool:
    return values.n_unique() != len(values)


def _joined(attempts: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """The attempts with their usage, and whether they have any."""
    counts = usage.lazy().select(*KEY, *COUNTS)
    if _repeated(usage["attempt_lo"]):
        right, on = counts.with_columns(usage_hi="attempt_hi"), KEY
    else:
        # One integer joins faster than two; the other half is compared afterwards.
        right, on = counts.rename({"attempt_hi": "usage_hi"}), KEY[:1]
    same = (pl.col("attempt_hi") == pl.col("usage_hi")).fill_null(value=False)
    joined = attempts.lazy().join(right, on=on, how="left").with_columns(same.alias(_HAS_USAGE)).drop("usage_hi")
    return joined.collect(engine="streaming")


def _met_late(late: _Late) -> Iterator[pl.DataFrame]:
    """What was held back: attempts with usage of other days or without any, and usage that nobody saw the attempt of.

    A second row about an attempt that was met already, on another day, is another source's account of it.
    """
    attempts, usage = _fresh(late.attempts, late.met), _fresh(late.usage, late.met)
    parts = []
    if attempts is not None:
        counts = usage.select(*KEY, *COUNTS) if usage is not None else None
        unread = [pl.lit(None, dtype=pl.Int64).alias(name) for name in COUNTS]
        parts.append(attempts.with_columns(unread) if counts is None else attempts.join(counts, on=KEY, how="left"))
    if usage is not None:
        unseen = usage if attempts is None else usage.join(attempts.select(KEY), on=KEY, how="anti")
        nothing = [pl.lit(None, dtype=pl.String).alias(name) for name in SERIES[3:]]
        nameless = unseen.with_columns(nothing).with_columns(
            tenant=pl.lit(UNASSIGNED),
            task=pl.lit(UNASSIGNED),
            attempt_number=pl.lit(None, dtype=pl.Int32),
            hour=pl.lit(None, dtype=pl.UInt8),
        )
        parts.append(nameless.with_columns(label()).select(*_PLACED, *COUNTS))
    if parts:
        yield pl.concat([part.select(*_PLACED, *COUNTS) for part in parts])


def _fresh(held: list[pl.DataFrame], met: list[pl.Series]) -> pl.DataFrame | None:
    if not held:
        return None
    rows = pl.concat(held)
    # What was held back is little beside what was met, so the large side is held against the small one.
    own = rows["attempt_lo"].unique()
    seen = pl.concat([keys.filter(keys.is_in(own.implode())) for keys in met]).unique()
    return rows.filter(~pl.col("attempt_lo").is_in(seen.implode())).sort("day").unique(KEY, keep="first")
