"""Cases of what an engine knows beside its answer: runner timings, or the guess of the router in front of it.

    engine_timings                              the runner's own counts, read together with the usage
    context.router_overlap_blocks, block_size   what the router took for cached

`gap` and `causes` are sizes. With timings the gap is what usage alone falls short of (or exceeds) the prompt the runner
saw, and its causes come from the reconciliation; with a router it is how far its guess is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weighbridge.pipeline.conformance.case import Case, count, mapping, word
from weighbridge.pipeline.conformance.compare import compared, differs
from weighbridge.pipeline.conformance.explaining import causes_in, explained_input, input_rows
from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.pipeline.ingest.router_estimate import off_by
from weighbridge.schemas.enumerations import Grade

TIMINGS = "engine_timings"
EXPECT = ("gap", "causes", "residual")


def compared_engine(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: an expectation or what the engine knows is of another type than it must be.
    """
    record = case.record()
    reading = read_usage(_with_timings(case, record))
    yield from compared(case, reading, case.prices_of)
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
    said = {"grade": str(Grade.G1), "observed": reading.input_total, "reported": reported}
    rows = explained_input(input_rows([{**said, "cached_engine": reading.counts["cache_read"]}]))
    return abs(rows[0]["gap"]), causes_in(rows), abs(rows[0]["residual"])
