"""Cases of what an engine knows beside its answer: runner timings, or the guess of the router in front of it.

    engine_timings                              the runner's own counts, read together with the usage
    context.router_overlap_blocks, block_size   what the router took for cached

`gap` and `causes` are sizes. With timings the gap is what usage alone falls short of (or exceeds) the prompt the runner
saw, and its causes come from the reconciliation; with a router it is how far its guess is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.conformance.case import Case, count, mapping, word
from weighbridge.pipeline.conformance.compare import compared, differs
from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.pipeline.ingest.router_estimate import off_by
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.cause import causes_of
from weighbridge.pipeline.reconcile.explanation import explained
from weighbridge.pipeline.reconcile.frames import KEY, collected, frame_of
from weighbridge.pipeline.reconcile.side import COLUMNS, EVIDENCE
from weighbridge.pipeline.reconcile.template import CELL, NO_POINTS
from weighbridge.schemas.enumerations import Direction, Grade

TIMINGS = "engine_timings"
EXPECT = ("gap", "causes", "residual")
_EVIDENCE: Mapping[object, pl.DataType] = {nw.Int64: pl.Int64(), nw.Boolean: pl.Boolean(), nw.String: pl.String()}
_SITUATION: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("seen", "missing", "compared"), pl.Boolean()),
    **dict.fromkeys(("template", "loss"), pl.String()),
}


def compared_engine(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: an expectation or what the engine knows is of another type than it must be.
    """
    record = case.record()
    reading = read_usage(_with_timings(case, record))
    yield from compared(case, reading, case.prices())
    gap, causes, residual = _gap(case, reading, record)
    found = {"gap": gap, "residual": residual}
    for name, value in found.items():
        if name in case.expect:
            yield differs(name, count(case.expect[name], f"expect.{name}"), value)
    for name, value in mapping(case.expect.get("causes", {}), "expect.causes").items():
        code = word(name, "expect.causes")
        yield differs(f"causes.{code}", count(value, f"expect.causes.{code}"), causes.get(code))


def _with_timings(case: Case, record: Mapping[str, object]) -> Mapping[str, object]:
    """The record with the runner's counts beside those of the answer, as a server that passes them on shows both."""
    if TIMINGS not in case.given:
        return record
    usage = mapping(record.get("usage"), "input.usage")
    timings = mapping(case.given[TIMINGS], f"input.{TIMINGS}")
    return {**record, "usage": {**usage, "timings": timings}}


def _gap(
    case: Case, reading: UsageReading, record: Mapping[str, object]
) -> tuple[int | None, dict[str, int], int | None]:
    """The size of the gap, its parts by cause, and the residual."""
    if TIMINGS not in case.given:
        off = off_by(case.context, reading.counts["cache_read"])
        return None if off is None else abs(off), {}, None
    reported = read_usage(record).input_total
    if reading.input_total is None or reported is None:
        return None, {}, None
    row = _explained(reading, reading.input_total, reported)
    codes = [cause.code for structural in (True, False) for cause in causes_of(Direction.INPUT, structural=structural)]
    causes = {code: abs(row[f"tokens_{code}"]) for code in codes if row[f"tokens_{code}"] is not None}
    return abs(row["gap"]), causes, abs(row["residual"])


def _explained(reading: UsageReading, observed: int, reported: int) -> dict[str, Any]:
    """The input of one attempt, the engine's figure against the reported one, with its causes."""
    said = {
        "attempt_hi": 0,
        "attempt_lo": 0,
        "seen": True,
        "missing": False,
        "compared": True,
        "grade": str(Grade.G1),
        "observed": observed,
        "reported": reported,
        "gap": reported - observed,
        "cached_engine": reading.counts["cache_read"],
    }
    kinds = {name: _kind(name) for name in COLUMNS}
    row = pl.DataFrame([{name: said.get(name) for name in COLUMNS}], schema=kinds)
    lessons = NO_POINTS.select(*CELL).with_columns(
        pl.lit(0).cast(pl.Int64).alias(name) for name in ("per_request", "per_message", "fitting", "pupils")
    )
    ended = pl.DataFrame(schema={**dict.fromkeys(KEY, pl.Int64()), "ended_choices": pl.Int64()})
    shown = explained(frame_of(row), Direction.INPUT, frame_of(lessons), frame_of(ended))
    return collected(shown).row(0, named=True)


def _kind(name: str) -> pl.DataType:
    """The type of a column of a comparison."""
    if name in EVIDENCE:
        return _EVIDENCE[EVIDENCE[name]]
    return _SITUATION.get(name) or polars_schema("reconciled").get(name) or pl.Int64()
