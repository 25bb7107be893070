"""What all usage reports of an attempt add up to, and how much of that is repetition."""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.frames import (
    KEY,
    Expr,
    Frame,
    added,
    beyond,
    latest,
    single_and_several,
    tokens,
    total,
)
from weighbridge.schemas.enumerations import Direction, Verdict

COUNTS = (
    *("input_total", "output_total", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown"),
    "reasoning",
)
COLUMNS_READ = (
    *KEY,
    *("day", "source", "child", "report", "provider", "api", "model", "verdict", "flags", "revision"),
    *COUNTS,
)
MISSING_FLAG = "usage_missing"
OUTPUT = (
    *("r_lo", "r_hi", "r_day", "r_provider", "r_api", "r_model", "reporter"),
    *("reports", "empty", "contradictory", "unknown"),
    *(f"{what}_{direction}" for direction in Direction for what in ("counted", "reported", "repeated")),
    *("cache_read", "cache_write", "reasoning"),
    *(f"children_{direction}" for direction in Direction),
)
_EVIDENCE = ("cache_read", "cache_write", "reasoning")
_DESCRIPTION = ("day", "provider", "api", "model")
_KEYS: dict[str, Expr] = {"r_lo": nw.col("attempt_lo"), "r_hi": nw.col("attempt_hi")}


def per_attempt(readings: Frame) -> Frame:
    """The usage reports of each attempt as one row.

    Args:
        readings: rows of the table `reading` with at least `COLUMNS_READ`.

    Returns:
        `OUTPUT`, one row per attempt that any report names:
        `reports`, and of them `empty` (no counts were sent), `contradictory` (or implausible) and `unknown` (counts
        that cannot be read); per direction `counted` (reports with a total), `reported` (their sum) and `repeated`,
        the part of it that repetitions add: a further report of the same source, or the same counts again from
        another source.
        Evidence of cached and reasoning tokens is that of the first reports only, null where none tells; `children` is
        the part of `reported` that reports of single calls inside the answer add, null where there are none.
    """
    return single_and_several(_shaped(readings), _single, _several)


def marked(readings: Frame) -> Frame:
    """The last revision of each reading with `again`: whether it repeats what another one has reported."""
    return _repetitions(_shaped(readings))


def _shaped(readings: Frame) -> Frame:
    rows = latest(readings.select(*COLUMNS_READ), (*KEY, "source", "child", "report"))
    implausible = beyond(*COUNTS)
    readable = nw.col("verdict").is_in([Verdict.PROVED, Verdict.ASSUMED]) & ~implausible
    flagged = nw.col("flags").list.contains(MISSING_FLAG).fill_null(value=False)
    empty = flagged & ~readable
    writes = added(*(nw.col(f"cache_write_{life}") for life in ("5m", "1h", "unknown")))
    return rows.with_columns(
        empty=_one(empty),
        contradictory=_one((nw.col("verdict") == Verdict.CONTRADICTORY) | implausible),
        unknown=_one((nw.col("verdict") == Verdict.UNKNOWN) & ~empty & ~implausible),
        tokens_input=nw.when(readable).then(nw.col("input_total")),
        tokens_output=nw.when(readable).then(nw.col("output_total")),
        cache_read=nw.when(readable).then(nw.col("cache_read")),
        cache_write=nw.when(readable).then(writes),
        reasoning=nw.when(readable).then(nw.col("reasoning")),
    )


def _one(condition: Expr) -> Expr:
    return nw.when(condition).then(tokens(1)).otherwise(tokens(0))


def _single(rows: Frame) -> Frame:
    """The only reading of an attempt: nothing to add up, nothing repeated."""
    sums = {}
    for direction in Direction:
        figure = nw.col(f"tokens_{direction}")
        sums[f"counted_{direction}"] = _one(~figure.is_null())
        sums[f"reported_{direction}"] = figure
        sums[f"repeated_{direction}"] = tokens(0)
        sums[f"children_{direction}"] = nw.when(nw.col("child") > 0).then(figure)
    described = {f"r_{name}": nw.col(name) for name in _DESCRIPTION}
    return rows.with_columns(reporter=nw.col("source"), reports=tokens(1), **_KEYS, **described, **sums).select(*OUTPUT)


def _several(rows: Frame) -> Frame:
    again = nw.col("again")
    sums = {}
    for direction in Direction:
        figure = nw.col(f"tokens_{direction}")
        sums[f"counted_{direction}"] = figure.count().cast(nw.Int64)
        sums[f"reported_{direction}"] = total(figure)
        sums[f"repeated_{direction}"] = exact_sum(nw.when(again).then(figure).otherwise(tokens(0)))
        sums[f"children_{direction}"] = total(nw.when(~again & (nw.col("child") > 0)).then(figure))
    grouped = (
        _repetitions(rows)
        .group_by(*KEY)
        .agg(
            **{f"r_{name}": _of_the_attempt(name) for name in _DESCRIPTION},
            **{name: exact_sum(nw.col(name)) for name in ("empty", "contradictory", "unknown")},
            **{name: total(nw.when(~again).then(nw.col(name))) for name in _EVIDENCE},
            **sums,
            reporter=nw.col("source").min(),
            reports=nw.len().cast(nw.Int64),
        )
    )
    return grouped.with_columns(**_KEYS).select(*OUTPUT)


def _of_the_attempt(name: str) -> Expr:
    """What the report about the attempt itself says; where there is none, any of its children."""
    return nw.coalesce(nw.when(nw.col("child") == 0).then(nw.col(name)).min(), nw.col(name).min())


def _repetitions(rows: Frame) -> Frame:
    """Marks as `again` what was reported before: a further report of a source, or another source with equal counts."""
    place = (*KEY, "child")
    counted = ~nw.coalesce("tokens_input", "tokens_output").is_null() & (nw.col("report") == 0)
    led = rows.with_columns(lead=nw.when(counted).then(nw.col("source")).min().over(*place))
    leads = counted & (nw.col("source") == nw.col("lead"))
    led = led.with_columns(
        lead_input=nw.when(leads).then(nw.col("tokens_input")).max().over(*place),
        lead_output=nw.when(leads).then(nw.col("tokens_output")).max().over(*place),
    )
    same = _equal("tokens_input", "lead_input") & _equal("tokens_output", "lead_output")
    other = (nw.col("source") != nw.col("lead")).fill_null(value=False)
    further = nw.col("report") > nw.col("report").min().over(*KEY, "source", "child")
    return _same_in_all(led.with_columns(again=further | (counted & other & same)), counted)


def _same_in_all(rows: Frame, counted: Expr) -> Frame:
    """Also a source that tells the same in all without the calls of the attempt that another one tells.

    Sums say so only where one of the two tells of the attempt itself: two single calls may well be alike. What some
    call of a source does not tell is not in its sum, and so a sum of some calls is equal to nothing.
    """
    told = {
        f"told_{direction}": _one(~nw.col(f"tokens_{direction}").is_null() & counted).sum().over(*KEY, "source")
        for direction in Direction
    }
    rows = rows.with_columns(
        first=nw.when(counted).then(nw.col("source")).min().over(*KEY),
        calls=_one(counted).sum().over(*KEY, "source"),
        whole=_one(counted & (nw.col("child") == 0)).max().over(*KEY, "source"),
        **told,
    )
    sums = {
        f"all_{direction}": exact_sum(nw.when(counted).then(nw.col(f"tokens_{direction}"))).over(*KEY, "source")
        for direction in Direction
    }
    rows = rows.with_columns(**sums)
    leads = counted & (nw.col("source") == nw.col("first"))
    compared = ("calls", "whole", *told, *sums)
    rows = rows.with_columns(
        **{f"first_{name}": nw.when(leads).then(nw.col(name)).max().over(*KEY) for name in compared}
    )
    same = (nw.col("whole") == 1) | (nw.col("first_whole") == 1)
    for direction in Direction:
        same = same & _equally_told(str(direction))
    other = (nw.col("source") != nw.col("first")).fill_null(value=False)
    return rows.with_columns(again=nw.col("again") | (counted & other & same.fill_null(value=False)))


def _equally_told(direction: str) -> Expr:
    """Whether all calls of both sources tell this direction and it adds up to the same, or none of either tells it."""
    sides = [(nw.col(f"{side}told_{direction}"), nw.col(f"{side}calls")) for side in ("", "first_")]
    (told, calls), (first_told, first_calls) = sides
    summed = (told == calls) & (first_told == first_calls)
    alike = nw.col(f"all_{direction}") == nw.col(f"first_all_{direction}")
    return (summed & alike) | ((told == 0) & (first_told == 0))


def _equal(left: str, right: str) -> Expr:
    both_null = nw.col(left).is_null() & nw.col(right).is_null()
    return (nw.col(left) == nw.col(right)).fill_null(value=False) | both_null
