"""The groups of a month that `links` looks at: attempts of one request, and attempts that share an identifier.

Most requests have one attempt and most identifiers belong to one, so only the few others are held. Rows are those of
the month by their own day, and of a day on either side of it: tries and twins lie within minutes of one another, and
where these are those about a month's end, both months see the same group.

A group that is too large to be looked at says nothing about its attempts: of those that have one side only, where
others have the other side about then, neither usage nor attempt is missing for certain (`undecided`).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from weighbridge.pipeline.ingest.keys import SHARED_KINDS
from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.frames import KEY, collected, frame_of
from weighbridge.pipeline.reconcile.match import attempts, match, reports
from weighbridge.pipeline.reconcile.match.links import LARGEST_GROUP, MEMBER
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.schemas.enumerations import Direction

# Requests are counted so many at a time, by a part of their key.
_AT_ONCE = 2_000_000
_SECOND = 1_000_000
_PLACE = ("by_request", "hi", "lo")
Dated = Callable[[str, list[str]], pl.LazyFrame]


def members(dated: Dated) -> pl.DataFrame:
    """`links.MEMBER` of a month, in order.

    Args:
        dated: gives columns of a table of the month, by the rows' own day.
    """
    return of_groups(groups(dated), dated)


def groups(dated: Dated) -> pl.DataFrame:
    """by_request, hi, lo, attempt_lo, attempt_hi of what several attempts have, however many they are."""
    return pl.concat([_of_requests(dated), _of_identifiers(dated)])


def of_groups(held: pl.DataFrame, dated: Dated) -> pl.DataFrame:
    """`members`, of groups that are small enough to be looked at."""
    grouped = held.filter(pl.len().over(_PLACE) <= LARGEST_GROUP)
    if grouped.is_empty():
        return pl.DataFrame(schema=MEMBER)
    # Numbers of groups are made of what they share, so that they are the same in any order of rows.
    numbered = grouped.with_columns(group=pl.struct("by_request", "hi", "lo").rank("dense").cast(pl.Int64))
    keys = numbered.lazy().select(KEY).unique()

    def own(table: str, columns: tuple[str, ...]) -> pl.DataFrame:
        wanted = list(dict.fromkeys(columns))
        return dated(table, wanted).join(keys, on=list(KEY), how="semi").collect(engine="streaming")

    told = own("attempt", (*attempts.COLUMNS_READ, "arrived_at", "total_us", "temperature", "stream", "attempt_number"))
    one = collected(by_recipe(attempts.one_per_attempt, frame_of(told)))
    sums = collected(by_recipe(reports.per_attempt, frame_of(own("reading", reports.COLUMNS_READ))))
    begun = pl.col("arrived_at").min()
    # A time in whole seconds says no more than in which second.
    rough = pl.when(begun.dt.microsecond() == 0).then(pl.lit(_SECOND)).otherwise(0)
    lasted = pl.coalesce(pl.when(pl.col("total_us").is_between(0, LARGEST)).then("total_us").max(), rough)
    times = told.group_by(KEY).agg(
        pl.col("temperature", "stream").min(),
        number=pl.col("attempt_number").min(),
        begun=begun,
        ended=begun + pl.duration(microseconds=lasted),
    )
    facts = (
        numbered.select(*KEY)
        .unique()
        .join(one, on=list(KEY), how="left")
        .join(sums, left_on=list(KEY), right_on=["r_lo", "r_hi"], how="left")
        .join(times, on=list(KEY), how="left")
        .with_columns(
            provider=pl.coalesce("provider", "r_provider"),
            model=pl.coalesce("model", "r_model"),
            n="choices",
            failed=pl.col("attempt_status").is_in([str(status) for status in match.OWES_NOTHING]),
            **{f"observed_{d}": pl.coalesce(f"{d}_computed", f"{d}_recounted") for d in Direction},
            reported=(pl.col("counted_input").fill_null(0) + pl.col("counted_output").fill_null(0)) > 0,
        )
        .with_columns(observed=pl.any_horizontal(pl.col(f"observed_{d}").is_not_null() for d in Direction))
    )
    whole = numbered.join(facts, on=list(KEY), how="left")
    return whole.select(pl.col(name).cast(kind) for name, kind in MEMBER.items()).sort("group", *KEY)


def undecided(held: pl.DataFrame, dated: Dated) -> pl.DataFrame:
    """attempt_lo, attempt_hi of attempts with one side that a group too large to be looked at may have the other of.

    Of a group those count that have one side only, and an attempt with the other side a day off at most. What failed
    owes no report, so that of nobody is its own.

    Args:
        held: `groups`.
        dated: as for `members`.
    """
    crowds = held.filter(pl.len().over(_PLACE) > LARGEST_GROUP)
    if crowds.is_empty():
        return crowds.select(KEY)
    keys = crowds.lazy().select(KEY).unique()
    counts = [f"{d}_{by}" for d in Direction for by in ("computed", "recounted")]
    fine = ~pl.col("status").is_in([str(status) for status in match.OWES_NOTHING]).fill_null(value=False)
    seen = dated("attempt", [*KEY, "day", "status", *counts]).filter(
        pl.any_horizontal(pl.col(name).is_not_null() for name in counts)
    )
    told = dated("reading", [*KEY, "day", *(f"{d}_total" for d in Direction)]).filter(
        pl.any_horizontal(pl.col(f"{d}_total").is_not_null() for d in Direction)
    )
    sides = [
        frame.join(keys, on=list(KEY), how="semi").group_by(KEY).agg(pl.col("day").min(), fine=owes).collect()
        for frame, owes in ((seen, fine.all()), (told, pl.lit(value=True)))
    ]
    observed = sides[0].join(sides[1], on=list(KEY), how="anti").filter("fine")
    reported = sides[1].join(sides[0], on=list(KEY), how="anti")
    ours, theirs = (
        crowds.join(one, on=list(KEY), how="inner").select(*_PLACE, *KEY, "day") for one in (observed, reported)
    )
    return pl.concat([_beside(ours, theirs), _beside(theirs, ours)]).unique().sort(KEY)


def _beside(ones: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Those of which another of the same group is a day off at most."""
    days = others.select(*_PLACE, "day").unique()
    near = pl.concat([days.with_columns(pl.col("day").dt.offset_by(f"{by}d")) for by in (-1, 0, 1)]).unique()
    return ones.join(near, on=[*_PLACE, "day"], how="semi").select(KEY)


def _of_requests(dated: Dated) -> pl.DataFrame:
    """by_request, hi, lo, attempt_lo, attempt_hi of requests with several attempts."""
    wanted = [*KEY, "request_hi", "request_lo"]
    asked = dated("attempt", wanted).filter(pl.col("request_lo").is_not_null())
    rows = int(asked.select(pl.len()).collect(engine="streaming").item())
    parts = 1 + rows // _AT_ONCE
    out = []
    for part in range(parts if rows else 0):
        own = asked.filter(pl.col("request_lo") % parts == part) if parts > 1 else asked
        out.append(_crowded(own.rename({"request_hi": "hi", "request_lo": "lo"}), by_request=True))
    return pl.concat([_EMPTY, *out])


def _of_identifiers(dated: Dated) -> pl.DataFrame:
    """The same of identifiers that several attempts have."""
    rows = dated("alias", [*KEY, "alias_hi", "alias_lo", "kind"])
    shared = rows.filter(pl.col("kind").is_in([str(kind) for kind in SHARED_KINDS]))
    return pl.concat([_EMPTY, _crowded(shared.rename({"alias_hi": "hi", "alias_lo": "lo"}), by_request=False)])


def _crowded(rows: pl.LazyFrame, *, by_request: bool) -> pl.DataFrame:
    """What belongs to more than one attempt."""
    differs = pl.any_horizontal(pl.col(name).min() != pl.col(name).max() for name in KEY)
    several = rows.group_by("hi", "lo").agg(several=differs).filter("several").select("hi", "lo")
    held = rows.join(several, on=["hi", "lo"], how="semi").select("hi", "lo", *KEY).unique()
    return held.select(pl.lit(by_request).alias("by_request"), "hi", "lo", *KEY).collect(engine="streaming")


_EMPTY = pl.DataFrame(
    schema={"by_request": pl.Boolean(), **dict.fromkeys(("hi", "lo", "attempt_lo", "attempt_hi"), pl.Int64())}
)
