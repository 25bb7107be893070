"""Token ids that an agent announced and that are not in the lake.

    attempt.ids_expected      what the agent said would follow, written with the attempt itself
    token_run.length          what came, in whatever segment of the process
    gap                       what the agent admits: `ids_missing` once its process is gone, other reasons before

What the agent admits is a known loss and is told by the finding `gap_records` at once. What goes beyond it was lost on
the way here: a segment of ids that never came, or that could not be read. It is told only where it cannot come any
more: an agent brings ids some minutes after their attempt, and files travel once a day, so the newest days of the lake
stay open. Days of which ids were erased by rule (a receipt says so) are not looked at.

    announced  came  admitted | missing
          600   600         - |       -
          600   150         - |     450
          600   150       450 |       -
          600   150       400 |      50    which of the attempts it was, nobody can tell
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.found.tally import tallied
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.schemas.enumerations import Confidence, GapReason
from weighbridge.schemas.identity import erased
from weighbridge.schemas.receipt import scope_of

# How many of the newest days of the lake may still get ids.
GRACE_DAYS = 2
BY = ("source",)
_RUN = "token_run"


def settled(lake: Records, grace_days: int = GRACE_DAYS) -> list[date]:
    """The days that can get no more ids: all with attempts but the newest `grace_days`."""
    days = lake.days("attempt")
    return days[: max(0, len(days) - grace_days)]


def missing(month: Month, grace_days: int = GRACE_DAYS) -> pl.DataFrame:
    """The tally (`tally.tallied`) by `BY` of attempts whose ids are missing beyond what their agent admits.

    Args:
        grace_days: how many of the newest days with attempts are left alone.

    Returns:
        expected: ids these attempts announced, less those admitted; observed: ids of theirs that came. Of days on
        which less is missing than was admitted, nothing.
    """
    held = set(month.days)
    short = _short(month, [day for day in settled(month.lake, grace_days) if day in held])
    if short.is_empty():
        return tallied(short.lazy(), BY)
    days = [*BY, "day"]
    lost = short.group_by(days).agg(lost=(pl.col("expected") - pl.col("observed")).sum())
    beyond = lost.join(_admitted(month), on=days, how="left").with_columns(pl.col("admitted").fill_null(0))
    beyond = beyond.filter(pl.col("lost") > pl.col("admitted"))
    some = pl.when(pl.col("admitted") > 0).then(pl.lit(str(Confidence.AMBIGUOUS)))
    rows = short.join(beyond, on=days).with_columns(confidence=some.otherwise(pl.lit(str(Confidence.CERTAIN))))
    known = beyond.group_by(BY).agg(pl.col("admitted").sum())
    tally = tallied(rows.lazy(), BY, once=True).join(known, on=list(BY))
    return tally.with_columns(pl.col("expected") - pl.col("admitted")).drop("admitted")


def _short(month: Month, days: Sequence[date]) -> pl.DataFrame:
    """source, attempt, day, expected, observed of the attempts of these days of which ids are missing."""
    columns = [*KEY, *BY, "day", "tenant", "subject_bucket", "task", "revision", "ids_expected"]
    told = month.dated("attempt", columns).filter(
        pl.col("day").is_in(days), pl.col("ids_expected").is_between(1, LARGEST)
    )
    last = told.sort("revision").unique([*KEY, *BY], keep="last")
    kept = _unerased(month.lake, last.collect(engine="streaming"))
    if kept.is_empty():
        return kept.select(*BY, *KEY, "day", expected="ids_expected", observed=pl.lit(0, dtype=pl.Int64))
    # Runs stand on the day of their attempt; one day more on either side costs little where a clock was set.
    first, final = kept["day"].min(), kept["day"].max()
    assert isinstance(first, date)
    assert isinstance(final, date)
    near = timedelta(days=1)
    runs = month.lake.scan(_RUN, first=first - near, last=final + near, columns=[*KEY, *BY, "length"])
    came = runs.group_by(*KEY, *BY).agg(observed=pl.col("length").cast(pl.Int64).sum())
    held = kept.lazy().join(came, on=[*KEY, *BY], how="left").with_columns(pl.col("observed").fill_null(0))
    short = held.filter(pl.col("observed") < pl.col("ids_expected"))
    return short.select(*BY, *KEY, "day", expected="ids_expected", observed="observed").collect(engine="streaming")


def _unerased(lake: Records, attempts: pl.DataFrame) -> pl.DataFrame:
    """The attempts whose ids no receipt says were erased."""
    receipts = lake.scan("receipt", columns=["table_name", "first_day", "last_day", "scope"])
    of_runs = receipts.filter(pl.col("table_name") == _RUN).collect()
    if of_runs.is_empty():
        return attempts
    names = attempts["tenant"].drop_nulls().unique().to_list()
    told = attempts.with_columns(
        _who=pl.col("tenant").replace_strict(names, list(map(erased, names)), default=None, return_dtype=pl.String),
        _bucket=pl.col("subject_bucket").fill_null(0),
    )
    for first, last, scope in of_runs.select("first_day", "last_day", "scope").iter_rows():
        within = pl.col("day").is_between(first or date.min, last or date.max)
        told = told.filter(~(within & _in_scope(scope_of(scope), told)).fill_null(value=False))
    return told.select(attempts.columns)


def _in_scope(scope: Mapping[str, str], attempts: pl.DataFrame) -> pl.Expr:
    """Whether a receipt is about an attempt: of a tenant (by name or hash), all but some, a bucket, places, a task.

    Ids of one (tenant, bucket, day) lie in one block, which goes when the first task of it is due.
    """
    met = pl.lit(value=True)
    if "tenant" in scope:
        met &= (pl.col("tenant") == scope["tenant"]) | (pl.col("_who") == scope["tenant"])
    if "but" in scope:
        met &= ~pl.col("_who").is_in(scope["but"].split(","))
    if "bucket" in scope:
        met &= pl.col("_bucket").cast(pl.String) == scope["bucket"]
    if "places" in scope:
        met &= pl.concat_str("_who", pl.lit("."), "_bucket").is_in(scope["places"].split(","))
    if "task" in scope:
        block = pl.struct("tenant", "_bucket", "day")
        of_task = attempts.filter(pl.col("task") == scope["task"]).select(block.alias("block"))["block"]
        met &= block.is_in(of_task.unique().implode())
    return met


def _admitted(month: Month) -> pl.DataFrame:
    """source, day, admitted: ids that agents say they lost.

    Once a process is gone, `ids_missing` counts all that never came, whatever the reason; before that, other reasons
    say it. The larger of the two is taken, so that nothing is counted twice.
    """
    rows = month.dated("gap", [*BY, "day", "reason", "tokens"]).collect()
    final = pl.col("reason") == str(GapReason.IDS_MISSING)
    return rows.group_by(*BY, "day").agg(
        admitted=pl.max_horizontal(pl.col("tokens").filter(final).sum(), pl.col("tokens").filter(~final).sum())
    )
