"""Baselines to look at: cells of a day, one cell over its days, and what requests of a task took."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.usage import SERIES
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import BaselineMethod, Direction, Measure
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import framed

CELL = (*SERIES, "measure", "token_class")
_PREFIX = re.compile(r"[0-9a-f]{8,32}")


def cell_id(names: Mapping[str, Any]) -> str:
    """The id of a cell, 32 hexadecimal digits: a hash of what it is told apart by."""
    return hashlib.sha256(framed(*(str(names[name] or "") for name in CELL))).hexdigest()[:32]


def last_judged(records: Records) -> date:
    """The last judged day.

    Raises:
        ConfigError: none was judged.
    """
    days = records.days("baseline")
    if not days:
        raise ConfigError("no day was judged yet; run `weighbridge baseline run`")
    return days[-1]


def cells_of(records: Records, day: date) -> list[dict[str, Any]]:
    """Every row of a judged day with its id as `cell`: reported ones first, then those least likely by chance."""
    rows = records.scan("baseline", first=day, last=day).collect()
    ordered = rows.sort(
        [pl.col("reported"), pl.col("p_value"), *CELL], descending=[True, *([False] * (1 + len(CELL)))], nulls_last=True
    )
    return [{"cell": cell_id(row), **row} for row in ordered.iter_rows(named=True)]


def cell_over_days(records: Records, prefix: str) -> list[dict[str, Any]]:
    """All rows of one cell, by day.

    Args:
        records: table `baseline`.
        prefix: the first 8 or more digits of its id.

    Raises:
        ConfigError: there is no such cell, or several.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(
            f"{prefix!r} is no id of a cell; give its first 8 or more digits, as `weighbridge baseline show` lists them"
        )
    every = records.scan("baseline", columns=list(CELL)).unique().collect()
    found = [row for row in every.iter_rows(named=True) if cell_id(row).startswith(prefix)]
    if len(found) != 1:
        told = "no cell has" if not found else f"{len(found)} cells have"
        raise ConfigError(f"{told} an id that begins with {prefix}; `weighbridge baseline show` lists them")
    mine = pl.all_horizontal(pl.col(name).eq_missing(found[0][name]) for name in CELL)
    rows = records.scan("baseline").filter(mine).sort("day").collect()
    return [{"cell": cell_id(row), **row} for row in rows.iter_rows(named=True)]


def task_table(records: Records, policy: BaselinePolicy) -> list[dict[str, Any]]:
    """Per declared task and direction its band, and the medians measured on the last judged day.

    Returns:
        task, direction, low, high, tolerance, lower, upper, cells, least and largest median (null without cells), and
        outside: cells whose median lies outside of the band.
    """
    days = records.days("baseline")
    rows = records.scan("baseline", first=days[-1], last=days[-1]) if days else records.scan("baseline").limit(0)
    measured = rows.filter(pl.col("method") == str(BaselineMethod.TASK_TABLE)).collect()
    out: list[dict[str, Any]] = []
    for name, declared in sorted(policy.tasks.items()):
        for direction, measure in ((Direction.INPUT, Measure.INPUT), (Direction.OUTPUT, Measure.OUTPUT)):
            own = measured.filter((pl.col("task") == name) & (pl.col("measure") == str(measure)))
            low, high = declared.input if direction is Direction.INPUT else declared.output
            lower, upper = declared.band(direction)
            least, largest = own["median"].min(), own["median"].max()
            about = {"task": name, "direction": str(direction), "low": low, "high": high}
            band = {"tolerance": float(declared.tolerance), "lower": lower, "upper": upper}
            medians = {"cells": own.height, "least": least, "largest": largest, "outside": int(own["reported"].sum())}
            out.append(about | band | medians)
    return out
