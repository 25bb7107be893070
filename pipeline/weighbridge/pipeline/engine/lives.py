"""The lives of attempts: from when to when each ran, how it ended, and what it adds to the counters of its engine.

Several sources may have written about an attempt. What the engine itself counted goes before what usage reports say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from weighbridge.pipeline.engine.twins import without_twins
from weighbridge.pipeline.lake.figures import LARGEST, LONGEST_US
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, Verdict

KEY = ["attempt_lo", "attempt_hi"]
_WORDS = ("model_served", "model_requested", "instance", "task", "route")
_FIGURES = ("input_computed", "output_computed", "cached_local", "cached_external", "recomputed", "accepted")
_NUMBERS = ("n", "max_tokens", "output_delivered")
_ATTEMPT = (
    *KEY, "day", "source", "revision", "api", "framework", "provider", "arrived_at", "total_us", "status",
    "prompt_scored", *_WORDS, *_FIGURES, *_NUMBERS,
)  # fmt: skip
_CHILD = (*KEY, "day", "source", "child", "revision", "kind", "parent_child", "input_computed", "output_computed")
_READING = (
    *KEY, "day", "source", "child", "report", "revision", "verdict", "input_total", "output_total", "cache_read",
)  # fmt: skip
_COUNTED = "count_tokens"
_BETWEEN = r"[._-]"
_FAILED = [str(AttemptStatus.FAILED), str(AttemptStatus.REJECTED)]
_OF_REQUESTS = [str(kind) for kind in (ChildKind.CHOICE, ChildKind.BEAM, ChildKind.PROMPT)]
# A call that was made to look after a server, by the task or the last part of the route it was sent with.
HEALTH = r"(?i)(?:^|/)(?:health|healthz|health_check|healthcheck|health_generate|liveness|readiness)$"
WARM_UP = r"(?i)(?:^|/)(?:warm_up|warmup|warm-up)$"
_TIME = pl.Datetime("us", "UTC")
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(KEY, pl.Int64),
    "day": pl.Date,
    "engines": pl.List(pl.String),
    "unsaid": pl.Boolean,
    **dict.fromkeys(("model", "instance"), pl.String),
    **dict.fromkeys(("begin", "end"), _TIME),
    **dict.fromkeys(("unfinished", "failed", "health", "warm_up", "scored", "engine_counted"), pl.Boolean),
    **dict.fromkeys(("input", "output", "cached", "cached_local", "cached_external", "computed"), pl.Int64),
    **dict.fromkeys(("recomputed", "accepted", "requests", "delivered", "most", "max_tokens"), pl.Int64),
    **dict.fromkeys(("prompts", "outputs", "several", "reported"), pl.Int64),
}
COLUMNS = tuple(SCHEMA)
_FLAGS = ("unsaid", "unfinished", "failed", "health", "warm_up", "scored", "engine_counted")


def lives(lake: Records, first: date, last: date) -> pl.DataFrame:
    """The attempts that arrived on these UTC days, one row each, with `COLUMNS`.

    `engines`: who may have computed it, as `bare` names: the framework that the engine itself tells, else every
    framework and provider that a source tells. `unsaid`: no source tells a framework. `begin`, `end`: its life; an end
    that is not known is its begin. `unfinished`: it was aborted, and nothing says that the engine came to its end
    nevertheless. `engine_counted`: its figures are the engine's own. `input`, `output`, `cached`, ...: its figures,
    null where they are not known. `requests`: how many requests the engine made of it. `delivered`, `most`: the least
    and the most output it can have. `prompts`, `outputs`: what the engine's requests of it add up to; null where they
    do not say. `several`: choices or beams that may be requests of their own. `reported`: the prompt that usage reports
    say.
    """
    attempts = _latest(lake.scan("attempt", first=first, last=last, columns=list(_ATTEMPT)), [*KEY, "source"])
    children = _latest(lake.scan("child", first=first, last=last, columns=list(_CHILD)), [*KEY, "source", "child"])
    readings = _latest(
        lake.scan("reading", first=first, last=last, columns=list(_READING)), [*KEY, "source", "child", "report"]
    )
    # A prompt that was only counted was never served.
    served = attempts.filter(pl.col("api").is_null() | (pl.col("api") != _COUNTED))
    frame = _of_attempts(served).join(_of_children(children), on=KEY, how="left")
    told = _shaped(frame.join(_of_readings(readings), on=KEY, how="left")).collect(engine="streaming")
    aliases = lake.scan("alias", first=first, last=last, columns=["alias_lo", "alias_hi", *KEY])
    return without_twins(told, aliases)


def told(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Lives written down one by one: what a row leaves out is null, false, or one request."""
    blank = {**dict.fromkeys(_FLAGS, False), "requests": 1, "several": 1}
    return pl.DataFrame([{**dict.fromkeys(COLUMNS), **blank, **row} for row in rows], schema=SCHEMA)


def bare(name: str) -> str:
    """The name of an engine without what people write between its letters: llama.cpp, llama_cpp, llamacpp."""
    return re.sub(_BETWEEN, "", name)


def _latest(frame: pl.LazyFrame, key: list[str]) -> pl.LazyFrame:
    return frame.sort("revision").group_by(key).last()


def _first(name: str) -> pl.Expr:
    return pl.col(name).drop_nulls().first()


def _of_attempts(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of an attempt as one: figures and words from the first source, by name, that has them."""
    lasted = pl.when(pl.col("total_us").is_between(0, LONGEST_US)).then(pl.col("total_us")).fill_null(0)
    took = pl.duration(microseconds=lasted)
    told = rows.with_columns(
        *(_plausible(name) for name in (*_FIGURES, *_NUMBERS)),
    ).with_columns(
        ended_at=pl.col("arrived_at") + took,
        gone=pl.col("status") == str(AttemptStatus.ABORTED),
        lost=pl.col("status").is_in(_FAILED),
        whole=(pl.col("status") == str(AttemptStatus.SUCCEEDED)) & pl.col("output_computed").is_not_null(),
        # An engine's own times are those its counters go by.
        own=pl.col("input_computed").is_not_null() & pl.col("arrived_at").is_not_null(),
    )
    own, framework = pl.col("own"), pl.col("framework").str.replace_all(_BETWEEN, "")
    counted = pl.col("input_computed").is_not_null() | pl.col("output_computed").is_not_null()
    by_engine = framework.filter(counted).drop_nulls()
    by_anyone = framework.append(pl.col("provider").str.replace_all(_BETWEEN, "")).drop_nulls()
    grouped = told.sort("source").group_by(KEY).agg(
        pl.col("day").min(),
        *(_first(name) for name in (*_WORDS, *_FIGURES, *_NUMBERS)),
        by_engine=by_engine.unique(),
        by_anyone=by_anyone.unique(),
        unsaid=pl.col("framework").is_null().all(),
        begin=pl.coalesce(pl.col("arrived_at").filter(own).min(), pl.col("arrived_at").min()),
        end=pl.coalesce(pl.col("ended_at").filter(own).max(), pl.col("ended_at").max()),
        gone=pl.col("gone").any(),
        lost=pl.col("lost").any(),
        whole=pl.col("whole").any(),
        scored=pl.col("prompt_scored").any(),
    )  # fmt: skip
    return grouped.filter(pl.col("begin").is_not_null())


def _of_children(rows: pl.LazyFrame) -> pl.LazyFrame:
    """What the requests of an attempt add up to, told by the first source that knows them best."""
    own = rows.filter(pl.col("kind").is_in(_OF_REQUESTS))
    by_source = own.group_by(*KEY, "source").agg(
        children=pl.len().cast(pl.Int64),
        prompts=_all("input_computed"),
        outputs=_all("output_computed"),
    )
    ranked = by_source.sort(pl.col("prompts").is_null(), "source")
    return ranked.group_by(KEY, maintain_order=True).first().drop("source")


def _plausible(name: str) -> pl.Expr:
    """A figure; null where no attempt can have it: validation tells of it, and nothing is added to it."""
    return pl.when(pl.col(name).is_between(-LARGEST, LARGEST)).then(pl.col(name)).alias(name)


def _all(name: str) -> pl.Expr:
    """The sum of a figure; null where any of them is not known."""
    known = _plausible(name)
    return pl.when(known.null_count() == 0).then(known.sum())


def _of_readings(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The first report about the attempt itself that can be read."""
    readable = pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])
    own = rows.filter((pl.col("child") == 0) & (pl.col("report") == 0) & readable).sort("source")
    names = ("input_total", "output_total", "cache_read")
    return own.group_by(KEY, maintain_order=True).agg(
        *(_plausible(name).drop_nulls().first().alias(f"r_{name}") for name in names)
    )


def _shaped(frame: pl.LazyFrame) -> pl.LazyFrame:
    counted = pl.col("input_computed").is_not_null() | pl.col("output_computed").is_not_null()
    cached = pl.sum_horizontal("cached_local", "cached_external", ignore_nulls=True)
    known = pl.col("cached_local").is_not_null() | pl.col("cached_external").is_not_null()
    unfinished = pl.col("gone") & ~pl.col("whole")
    told = frame.with_columns(
        engines=pl.when(pl.col("by_engine").list.len() > 0).then("by_engine").otherwise("by_anyone"),
        model=pl.coalesce("model_served", "model_requested"),
        engine_counted=counted,
        unfinished=unfinished,
        failed=pl.col("lost") & ~unfinished,
        health=_named(HEALTH),
        warm_up=_named(WARM_UP),
        scored=pl.col("scored").fill_null(value=False),
        # What was delivered of an answer that was left says nothing of what was computed: usage is no figure of it.
        input=pl.coalesce("input_computed", pl.when(~unfinished).then("r_input_total")),
        output=pl.coalesce("output_computed", pl.when(~unfinished).then("r_output_total")),
        cached=pl.coalesce(pl.when(known).then(cached), pl.when(~unfinished).then("r_cache_read")),
        requests=pl.coalesce("children", pl.lit(1, dtype=pl.Int64)),
        several=pl.max_horizontal("children", pl.col("n").cast(pl.Int64), pl.lit(1, dtype=pl.Int64)),
        delivered=pl.max_horizontal("output_delivered", pl.when(unfinished).then("r_output_total")),
        most=pl.col("max_tokens").cast(pl.Int64) * pl.max_horizontal(pl.col("n").cast(pl.Int64), pl.lit(1)),
        reported=pl.col("r_input_total"),
    )
    return told.with_columns(
        computed=pl.col("input") - pl.col("cached"),
        cached_local=pl.when(counted).then(pl.coalesce("cached_local", pl.when(known).then(0))).otherwise("cached"),
        cached_external=pl.when(known).then(pl.coalesce("cached_external", pl.lit(0, dtype=pl.Int64))),
    ).select(COLUMNS)


def _named(pattern: str) -> pl.Expr:
    found = pl.col("task").str.contains(pattern) | pl.col("route").str.contains(pattern)
    return found.fill_null(value=False)
