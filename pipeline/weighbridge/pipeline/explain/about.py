"""The attempts a figure is about: those of its month that bear the names beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.lattice import REPORTED_CLASSES

SHOWN_ATTEMPTS = 5
# Name beside a figure -> what it is in `reading` and in `attempt`; null: it is nothing there.
_IN_READING = {"provider": "provider", "model": "model", "verdict": "verdict"}
_OTHERS = ("day", "token_class")
_IN_ATTEMPT = {"tenant": "tenant", "task": "task", "route": "route"}


def attempts_about(lake: Lake, month: str, about: Mapping[str, str | None]) -> tuple[list[str], int]:
    """Attempts of a month with these names: the ids of the largest by tokens, and how many there are in all.

    Args:
        lake: the lake.
        month: the UTC month.
        about: name -> value; `day` is a UTC day. A name that neither readings nor attempts have makes none.
    """
    return attempts_between(lake, *ends(month), about)


def attempts_between(
    lake: Lake, first: date, last: date, about: Mapping[str, str | None], models: Collection[str] = ()
) -> tuple[list[str], int]:
    """The same of UTC days. With `token_class` only attempts that have tokens of that class are counted.

    Args:
        lake: the lake.
        first, last: the days.
        about: name -> value.
        models: other names the model goes by; a reading under any of them counts.
    """
    known = {*_IN_READING, *_IN_ATTEMPT, *_OTHERS}
    if not set(about) <= known:
        return [], 0
    readings = lake.scan("reading", first=first, last=last)
    also = {"model": pl.col("model").is_in(list(models)).fill_null(value=False)} if models else {}
    wanted = [
        pl.col(column).eq_missing(about[name]) | also.get(name, pl.lit(value=False))
        for name, column in _IN_READING.items()
        if name in about
    ]
    if about.get("day"):
        wanted.append(pl.col("day").cast(pl.String) == about["day"])
    token_class = about.get("token_class")
    if token_class in REPORTED_CLASSES:
        wanted.append(pl.col(str(token_class)) != 0)
    found = readings.filter(*wanted).group_by(KEY).agg(size=pl.col("total").cast(pl.Int128).sum())
    named = [pl.col(column).eq_missing(about[name]) for name, column in _IN_ATTEMPT.items() if name in about]
    if named:
        own = lake.scan("attempt", first=first, last=last).filter(*named).select(KEY).unique()
        found = found.join(own, on=list(KEY), how="semi")
    rows = found.sort("size", *KEY, descending=[True, False, False], nulls_last=True).collect(engine="streaming")
    return rows.head(SHOWN_ATTEMPTS).select(id=hexadecimal())["id"].to_list(), rows.height
