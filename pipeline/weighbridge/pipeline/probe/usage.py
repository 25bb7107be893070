"""What an answer reports, read by the product's dialects, by the convention its API declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.headers import flatten_headers
from weighbridge.pipeline.ingest.merge import merge
from weighbridge.pipeline.ingest.parts import Part, parts_of
from weighbridge.pipeline.ingest.reading import read_parts
from weighbridge.pipeline.probe.endpoint import Answered
from weighbridge.schemas.enumerations import ReportPart, Verdict

_WRITES = (Role.CACHE_WRITE, Role.CACHE_WRITE_5M, Role.CACHE_WRITE_1H)


@dataclass(frozen=True, slots=True)
class Reported:
    """The usage of one answer.

    Attributes:
        input, output: totals, as whoever trusts the declared convention adds them up; null where nothing is told.
        cached: tokens read from a cache; null where it does not say.
        reasoning: likewise.
        running: outputs that pieces of a stream reported on the way, in their order, the last one included.
        verdict: of the reading.
        flags: what the reading noticed.
        dialect: who read it.
    """

    input: int | None
    output: int | None
    cached: int | None
    reasoning: int | None
    running: tuple[int, ...]
    verdict: Verdict
    flags: tuple[str, ...]
    dialect: str | None


def reported(answered: Answered, provider: str, api: str, model: str) -> Reported:
    """Read the usage of an answer."""
    answer = answered.body if answered.events is None else list(answered.events)
    parts = parts_of(api, response=answer, provider=provider)
    headers = flatten_headers(answered.told)
    if headers.leaves or headers.refusals:
        parts = [*parts, Part(ReportPart.HEADER, headers, parts[0].ended)]
    reading = read_parts(provider, api, model, parts)
    dialect = dialect_for(provider, api, model, None)
    told: Mapping[Role, int] = {} if dialect is None else merge(dialect, parts)[0].values
    into, out = reading.input_total, reading.output_total
    if dialect is not None and (reading.verdict is Verdict.CONTRADICTORY or "convention_refuted" in reading.flags):
        into, out = _declared(dialect, told)
    return Reported(
        input=into,
        output=out,
        cached=told.get(Role.CACHE_READ, reading.counts.get("cache_read")),
        reasoning=told.get(Role.REASONING, reading.counts.get("reasoning")),
        running=tuple(_running(dialect, parts)),
        verdict=reading.verdict,
        flags=reading.flags,
        dialect=reading.dialect,
    )


def _declared(dialect: Dialect, told: Mapping[Role, int]) -> tuple[int | None, int | None]:
    """Input and output as the declared convention adds them up, whether or not the report keeps to it."""
    usual = dialect.readings[0]
    into, out = told.get(Role.INPUT), told.get(Role.OUTPUT)
    if into is not None and not usual.input_includes_cache:
        writes = told.get(_WRITES[0]) or sum(told.get(role, 0) for role in _WRITES[1:])
        into += told.get(Role.CACHE_READ, 0) + writes
    if out is not None and not usual.output_includes_reasoning:
        out += told.get(Role.REASONING, 0)
    return into, out


def _running(dialect: Dialect | None, parts: list[Part]) -> list[int]:
    if dialect is None or len(parts) < 2:
        return []
    seen = (merge(dialect, [part])[0].values.get(Role.OUTPUT) for part in parts)
    return [count for count in seen if count is not None]
