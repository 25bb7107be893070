"""By what the two sides of each row of `reconciled` met, and which others it may be where that is not certain."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match.links import Links
from weighbridge.schemas.enumerations import Direction, MatchedBy, Status
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.tables import UNASSIGNED

_HASH = ("alias_lo", "alias_hi", "kind")
Read = Callable[[str, list[str]], pl.LazyFrame]


def told(reconciled: pl.DataFrame, links: Links, read: Read) -> pl.DataFrame:
    """The rows with `matched_by` and `candidates` as all that is known of their attempts says.

    Args:
        reconciled: `rows.reconciled`: where both sides are there, they are taken to have met by one key.
        links: what its attempts are to one another.
        read: gives columns of a table by attempt, of the days of these rows.
    """
    key, ambiguous = str(MatchedBy.KEY), str(MatchedBy.AMBIGUOUS)
    rows = reconciled.with_columns(candidates=pl.lit(None, dtype=pl.List(pl.String)))
    crossed = rows.lazy().filter((pl.col("matched_by") == key) & (pl.col("observer") != pl.col("reporter")))
    keys = crossed.select(KEY).unique().collect()
    if keys.height:
        shared = _by_identifier(read, keys)
        met = pl.col("matched_by") == key
        rows = rows.join(shared.with_columns(_shared=True), on=list(KEY), how="left", maintain_order="left")
        by_alias = met & pl.col("_shared").fill_null(value=False) & (pl.col("observer") != pl.col("reporter"))
        rows = _said(rows, by_alias, MatchedBy.ALIAS).drop("_shared")
    if links.twins.height:
        found = links.twins.select(attempt_lo="to_lo", attempt_hi="to_hi", _how="matched_by").unique(list(KEY))
        rows = rows.join(found, on=list(KEY), how="left", maintain_order="left")
        both = pl.col("_how").is_not_null() & pl.col("reports").gt(0)
        rows = rows.with_columns(matched_by=pl.when(both).then("_how").otherwise("matched_by")).drop("_how")
    if links.ambiguous.height:
        others = links.ambiguous.rename({"candidates": "_others"})
        rows = rows.join(others, on=list(KEY), how="left", maintain_order="left")
        # One recorder wrote both sides under its own key: no identifier was needed.
        certain = pl.col("matched_by").is_in([key, str(MatchedBy.REQUEST), str(MatchedBy.TIME)])
        open_ones = pl.col("_others").is_not_null() & ~certain.fill_null(value=False)
        rows = rows.with_columns(
            matched_by=pl.when(open_ones).then(pl.lit(ambiguous)).otherwise("matched_by"),
            # Of a group that is too large to be looked at none is named.
            candidates=pl.when(open_ones & pl.col("_others").list.len().gt(0)).then("_others"),
        ).drop("_others")
    return rows.select(*reconciled.columns, "candidates")


def moved(links: Links, attempts: pl.DataFrame, days: Collection[date]) -> pl.DataFrame:
    """Rows of `reconciled` for attempts that are compared under another key: nothing is compared here, and where it is.

    Args:
        links: what attempts are to one another.
        attempts: day, provider, api, model, tenant, task, route of their own rows, by `KEY`.
        days: the days of these rows.
    """
    schema = polars_schema("reconciled")
    own = links.twins.join(attempts, on=list(KEY), how="inner").filter(pl.col("day").is_in(list(days)))
    out = []
    for row in own.sort(KEY).iter_rows(named=True):
        there = AttemptKey(row["to_hi"], row["to_lo"]).to_hex()
        out += [
            {
                **{name: row.get(name) for name in ("attempt_lo", "attempt_hi", "day", "provider", "api", "model")},
                **{name: row[name] or UNASSIGNED for name in ("tenant", "task", "route")},
                "direction": str(direction),
                "status": str(Status.NOT_COMPARED),
                "matched_by": row["matched_by"],
                "candidates": [there],
                "reports": 0,
            }
            for direction in Direction
        ]
    return pl.DataFrame(out, schema=schema)


def _by_identifier(read: Read, keys: pl.DataFrame) -> pl.DataFrame:
    """Those of the attempts that two sources know by one identifier."""
    rows = read("alias", [*KEY, *_HASH, "source"]).join(keys.lazy(), on=list(KEY), how="semi")
    several = rows.group_by(*KEY, *_HASH).agg(pl.col("source").n_unique()).filter(pl.col("source") > 1)
    return several.select(KEY).unique().collect(engine="streaming")


def _said(rows: pl.DataFrame, where: pl.Expr, how: MatchedBy) -> pl.DataFrame:
    return rows.with_columns(matched_by=pl.when(where).then(pl.lit(str(how))).otherwise("matched_by"))
