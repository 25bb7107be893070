"""What is new: staged rows held against the lake and against each other, so that nothing is stored twice.

Three outcomes of a row, besides being refused:

    new        stored
    there      the very row (file and place) is in the lake already: a run that was cut off had come this far
    duplicate  the same key with the same content: nothing is stored

Of a table with revisions, the same key with other content is the next revision. Of `usage_report`, the same content
once more *in one file* is a further report: a provider that reports an answer twice is seen, a file that is read
twice is not. Tables without revisions know a fourth outcome, *conflict*: their key is taken by other content.

Content is every column but the key, `day` (a record without a time keeps its first day) and where the row stands.

All revisions of a key lie on one day, the first it was told for, whatever day (or month) a later one names. Whoever
reads a day, or a month, so has every revision of what is there at hand, and the last of them counts once.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.schemas.tables import TABLES

NEW, THERE, DUPLICATE, CONFLICT = "new", "there", "duplicate", "conflict"
_PLACE = ("segment", "segment_row")
_SETTLED = ("revision", "report")
_HELPERS = ("_row", "_file", "_instance", "_content", "_lake")


@dataclass(frozen=True, slots=True)
class Settled:
    """Rows of one table, settled.

    Attributes:
        rows: what is to be appended, with `report`, `revision` and `day` as they will stand.
        outcome: one row per staged row, in their order: _file, segment_row, day (where it stands), outcome.
    """

    rows: pl.DataFrame
    outcome: pl.DataFrame


def settle(lake: Lake, table: str, staged: pl.DataFrame) -> Settled:
    """Tell which staged rows of a table are new.

    Args:
        lake: the lake.
        table: the table.
        staged: its rows in their types, in the order of files and places, with the column `_file` (a number that
            rises with the order of the files) and `segment` filled in. Columns that are missing are null.
    """
    staged = _complete(table, staged)
    probe = _probe(table)
    present = _hits(lake, table, staged, probe)
    contested = _contested(table, staged, probe, present)
    outcome = staged.select("_file", "segment_row", "day")
    if not contested.any():
        return Settled(_first_revision(staged), outcome.with_columns(pl.lit(NEW).alias("outcome")))
    compared = _compare(lake, table, staged.with_row_index("_row").filter(contested), present, probe)
    told = (
        outcome.with_row_index("_row")
        .join(compared.select("_row", "outcome", home="day"), on="_row", how="left", maintain_order="left")
        .with_columns(day=pl.coalesce("home", "day"))
        .drop("home")
    )
    free = _first_revision(staged.filter(~contested))
    rows = pl.concat([free, compared.filter(pl.col("outcome") == NEW).select(free.columns)])
    return Settled(rows, told.with_columns(pl.col("outcome").fill_null(NEW)).drop("_row"))


def _first_revision(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.lit(0, dtype=pl.Int32).alias("revision")) if "revision" in rows.columns else rows


def _complete(table: str, staged: pl.DataFrame) -> pl.DataFrame:
    """The columns the settling itself needs, where a writer left them out."""
    types: dict[str, pl.DataType] = {**polars_schema(table), "segment_row": pl.Int64(), "day": pl.Date()}
    needed = [*TABLES[table].key, "segment_row", "day"]
    staged = staged.with_columns(pl.lit(None, dtype=types[n]).alias(n) for n in needed if n not in staged.columns)
    return staged.with_columns(pl.col(name).fill_null(0) for name in _SETTLED if name in types)


def _identity(table: str) -> list[str]:
    """The columns that say what a row is about: the key without numbering."""
    return [name for name in TABLES[table].key if name not in {*_SETTLED, "part"}]


def _probe(table: str) -> list[str]:
    """The leading columns of the key that are looked up in the lake: few, and integers where the table has such."""
    return [
        name for name in _identity(table) if name not in {"source", "child", "scope", "kind", "value"}
    ] or _identity(table)


def _hits(lake: Lake, table: str, staged: pl.DataFrame, probe: list[str]) -> pl.DataFrame:
    """The looked-up keys that the lake has, with their day."""
    about = TABLES[table]
    columns = [*probe, "day"] if about.daily else probe
    if lake.version(table) is None or staged.is_empty():
        return pl.DataFrame(schema={name: polars_schema(table)[name] for name in columns})
    keys = lake.scan(table, columns=columns)
    for name in probe:
        if polars_schema(table)[name] == pl.Int64 and not staged[name].null_count():
            # A recorder's ids begin with their time: files of other times are skipped by their statistics.
            keys = keys.filter(pl.col(name).is_between(staged[name].min(), staged[name].max()))
    wanted = staged.lazy().select(probe).unique()
    return keys.join(wanted, on=probe, how="semi", nulls_equal=True).unique().collect(engine="streaming")


def _contested(table: str, staged: pl.DataFrame, probe: list[str], present: pl.DataFrame) -> pl.Series:
    """Which staged rows share their looked-up key with another one of the same number, or with the lake."""
    lead = staged[probe[0]]
    none = pl.Series([False], dtype=pl.Boolean).new_from_index(0, staged.height)
    again = none
    if lead.is_duplicated().any():
        numbered = [name for name in TABLES[table].key if name != "revision"]
        repeated = lead.filter(staged.select(numbered).is_duplicated())
        again = lead.is_in(repeated.unique().implode()) if repeated.len() else none
    if present.is_empty():
        return again
    known = present[probe[0]].unique()
    return again | lead.is_in(known.implode()).fill_null(value=True)


def _compare(lake: Lake, table: str, rest: pl.DataFrame, present: pl.DataFrame, probe: list[str]) -> pl.DataFrame:
    """The contested staged rows with their outcome, report and revision."""
    stored = _stored(lake, table, present, probe)
    # Columns that neither side fills are left out: an attempt has dozens, and all of them would be compared.
    held = [name for name in stored.columns if name in rest.columns or stored[name].null_count() < stored.height]
    both = pl.concat([stored.select(held), rest], how="diagonal_relaxed")
    del stored
    both = both.with_columns(pl.col("_file").fill_null(-1), _lake=pl.col("_row").is_null())
    both = _instances(table, _with_content(table, both))
    if "revision" not in polars_schema(table):
        return _first_of_key(table, both)
    return _numbered(table, both)


def _stored(lake: Lake, table: str, present: pl.DataFrame, probe: list[str]) -> pl.DataFrame:
    about = TABLES[table]
    if present.is_empty():
        return pl.DataFrame(schema=polars_schema(table))
    stored = lake.scan(table)
    if about.daily:
        stored = stored.filter(pl.col("day").is_in(present["day"].unique().implode()))
    stored = stored.join(present.lazy().select(probe).unique(), on=probe, how="semi", nulls_equal=True)
    return stored.collect(engine="streaming").sort(about.key)


def _with_content(table: str, both: pl.DataFrame) -> pl.DataFrame:
    """`_content`: rows that say the same have the same number. Compared value by value, not by a hash."""
    left_out = {*_PLACE, *_SETTLED, *_HELPERS, "day", *_identity(table)}
    content = [name for name in both.columns if name not in left_out]
    return _numbers(both, content, "_content")


def _numbers(frame: pl.DataFrame, columns: list[str], name: str) -> pl.DataFrame:
    """`frame` with a number per distinct combination of `columns`."""
    if not columns:
        return frame.with_columns(pl.lit(0, dtype=pl.UInt32).alias(name))
    at = (
        frame.select(columns)
        .with_row_index("_at")
        .group_by(columns, maintain_order=True)
        .agg(pl.col("_at"))
        .with_row_index(name)
        .select(name, "_at")
        .explode("_at")
        .sort("_at")
    )
    return frame.with_columns(at[name])


def _instances(table: str, both: pl.DataFrame) -> pl.DataFrame:
    """`_instance`: rows that belong to one telling of the thing; the parts of one usage report, else the row itself."""
    if "part" not in polars_schema(table):
        return both.with_row_index("_instance")
    about = [*_identity(table), "_file", *_SETTLED]
    opened = both.with_columns((pl.col("part") == 0).cum_sum().over(about).alias("_nth"))
    numbered = _numbers(opened, [*about, "_nth"], "_instance").drop("_nth")
    whole = numbered.group_by("_instance", maintain_order=True).agg(pl.col("_content").sort_by("part"))
    whole = _numbers(whole, ["_content"], "_whole")
    return (
        numbered.drop("_content")
        .join(whole.select("_instance", pl.col("_whole").alias("_content")), on="_instance", maintain_order="left")
        .select(numbered.columns)
    )


def _first_of_key(table: str, both: pl.DataFrame) -> pl.DataFrame:
    """Outcome of each staged row of a table without revisions: the first one of a key stands.

    A table that does not remember files (`strategy`: a description that many files bring) cannot tell a run that was
    cut off from another file's row. There a row that says what stands is *there* once for each file, so that the
    account of a file depends neither on interruptions nor on what was read before.
    """
    identity = _identity(table)
    first = pl.col("_content").first().over(identity)
    again = pl.col("_instance") != pl.col("_instance").first().over(identity)
    in_lake = pl.col("_lake").first().over(identity)
    first_staged = pl.col("_row") == pl.col("_row").min().over(identity)
    same = pl.col("_content") == first
    if "segment" in polars_schema(table):
        there = in_lake & first_staged & pl.col("segment").eq_missing(pl.col("segment").first().over(identity))
    else:
        there = same & (pl.col("_row") == pl.col("_row").min().over(*identity, "_file"))
    outcome = (
        pl.when(~again)
        .then(pl.lit(NEW))
        .when(there)
        .then(pl.lit(THERE))
        .when(same)
        .then(pl.lit(DUPLICATE))
        .otherwise(pl.lit(CONFLICT))
    )
    return both.with_columns(outcome.alias("outcome")).filter(~pl.col("_lake"))


def _numbered(table: str, both: pl.DataFrame) -> pl.DataFrame:
    """Outcome, report, revision and day of each staged row of a table with revisions."""
    about = _identity(table)
    told = _tellings(table, both)
    stands = [*about, "report"] if "report" in told.columns else about
    there = told.filter(~pl.col("_lake") & (pl.col("outcome") == THERE)).with_columns(day=pl.coalesce("stood", "day"))
    told = told.filter(pl.col("_lake") | (pl.col("outcome") != THERE)).with_columns(
        again=~pl.struct(*stands, "_content").is_first_distinct() & ~pl.col("_lake")
    )
    last = pl.col("revision").filter(pl.col("_lake")).max().over(stands).fill_null(-1)
    fresh = ~pl.col("_lake") & ~pl.col("again")
    told = told.with_columns(
        outcome=pl.when(pl.col("again")).then(pl.lit(DUPLICATE)).otherwise(pl.lit(NEW)),
        revision=(last + fresh.cum_sum().over(stands).cast(pl.Int64)).cast(pl.Int32),
        day=pl.col("day").first().over(stands),
    )
    settled = [*(name for name in _SETTLED if name in told.columns), "day"]
    as_settled = ["_instance", "outcome", *settled]
    told = pl.concat([told.filter(~pl.col("_lake")).select(as_settled), there.select(as_settled)])
    return both.filter(~pl.col("_lake")).drop(settled).join(told, on="_instance", how="left", maintain_order="left")


def _tellings(table: str, both: pl.DataFrame) -> pl.DataFrame:
    """One row per telling, the lake's first; those of the very same place are marked, repetitions are numbered."""
    about = _identity(table)
    told = both.unique("_instance", keep="first", maintain_order=True)
    settled = [name for name in _SETTLED if name in told.columns]
    told = told.select(*about, *_PLACE, *settled, "day", "_file", "_lake", "_instance", "_content", "_row")
    told = pl.concat([told.filter("_lake"), told.filter(~pl.col("_lake")).sort("_file", "revision", "_row")])
    place = told.filter("_lake").select(*about, *_PLACE, stood="day", _stands=pl.lit(value=True))
    place = place.unique([*about, *_PLACE], keep="first", maintain_order=True)
    told = told.join(place, on=[*about, *_PLACE], how="left", nulls_equal=True, maintain_order="left")
    told = told.with_columns(
        outcome=pl.when(~pl.col("_lake") & pl.col("_stands").fill_null(value=False)).then(pl.lit(THERE))
    ).with_columns(pl.col("outcome").fill_null(NEW))
    if "report" in settled:
        nth = (pl.col("_content").cum_count().over(*about, "_file", "_content") - 1).cast(pl.Int32)
        told = told.with_columns(
            report=pl.when("_lake").then(pl.col("report")).otherwise(pl.max_horizontal(pl.col("report"), nth))
        )
    return told
