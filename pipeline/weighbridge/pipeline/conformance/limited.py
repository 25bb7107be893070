"""Cases of an answer beside the limit of output that was asked for: `context.limit.output_tokens`.

20 in, 6 out, 410 of reasoning beside them, limit 400   ->   416 are more than 400: output_limit_exceeded
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weighbridge.pipeline.conformance.case import Case, count, mapping
from weighbridge.pipeline.conformance.compare import compared
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.reading import read_usage
from weighbridge.pipeline.reconcile.found.limited import CODE, exceeds

LIMIT = "limit"
_LINES = frozenset({"output_tokens"})


def is_one(case: Case) -> bool:
    """Whether the case is one of these: one answer, and a limit."""
    return case.body is not None and LIMIT in case.context


def compared_limit(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: the limit cannot be read.
    """
    limits = mapping(case.context[LIMIT], "input.context.limit")
    if not set(limits) <= _LINES:
        raise MalformedCaseError(f"input.context.limit has a key that is none of {', '.join(sorted(_LINES))}")
    limit = count(limits.get("output_tokens"), "input.context.limit.output_tokens")
    reading = read_usage(case.record())
    if exceeds(reading.output_total, limit):
        reading = replace(reading, flags=(*reading.flags, CODE))
    yield from compared(case, reading, case.prices_of)
