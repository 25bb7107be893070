"""Cases of an engine's counters beside its attempts: what they grew by, and why that is not what attempts add up to.

    counters_before, counters_after     name of a metric -> its value
    records                             outcome (stop, length, abort, error), prompt_tokens, completion_tokens, usage

The gap is that of the first counter, in the documented order, that attempts can be held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from weighbridge.pipeline.conformance.case import Case, count, mapping, word
from weighbridge.pipeline.conformance.compare import differs
from weighbridge.pipeline.engine.facts import facts, kinds
from weighbridge.pipeline.engine.gaps import Gap, explained
from weighbridge.pipeline.engine.lives import told
from weighbridge.pipeline.engine.servers import Interval, Series
from weighbridge.pipeline.engine.windows import placed
from weighbridge.pipeline.ingest.metric_facts import all_metrics
from weighbridge.pipeline.ingest.reading import read_usage

BEFORE, AFTER, RECORDS = "counters_before", "counters_after", "records"
INPUT = frozenset({"provider", "api", "model", "context", BEFORE, AFTER, RECORDS})
RECORD = frozenset({"attempt_id", "outcome", "prompt_tokens", "completion_tokens", "usage"})
CONTEXT: frozenset[str] = frozenset()
EXPECT = frozenset({"gap", "causes", "residual", "note"})
_ABORTED, _FAILED = frozenset({"abort", "aborted"}), frozenset({"error", "failed"})
_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
_UNTIL = _SINCE + timedelta(hours=1)


def is_one(case: Case) -> bool:
    """Whether a case is of this kind."""
    return BEFORE in case.given or AFTER in case.given


def unknown_fields(case: Case) -> Iterator[str]:
    """What records and counters say that is not read here."""
    for number, record in enumerate(_records(case)):
        yield from (f"input.records[{number}].{name}" for name in sorted(record.keys() - RECORD))
    for where in (BEFORE, AFTER):
        names = mapping(case.given.get(where, {}), f"input.{where}")
        yield from (f"the counter {name}" for name in sorted(names) if name not in all_metrics())


def compared_counters(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: an expectation, a counter or a record is of another type than it must be.
    """
    gap = _gap(case)
    found = {"gap": None if gap is None else gap.size, "residual": None if gap is None else gap.residual}
    for name, value in found.items():
        if name in case.expect:
            yield differs(name, count(case.expect[name], f"expect.{name}"), value)
    causes = {} if gap is None else {part.cause.code: part.amount for part in gap.causes}
    for name, value in mapping(case.expect.get("causes", {}), "expect.causes").items():
        code = word(name, "expect.causes")
        yield differs(f"causes.{code}", count(value, f"expect.causes.{code}"), causes.get(code))


def _gap(case: Case) -> Gap | None:
    interval = Interval(_SINCE, _UNTIL, _counted(case))
    lives = told([_life(case, record, number) for number, record in enumerate(_records(case))])
    place = placed([interval], lives, at_rest=False)
    rows = kinds(lives.with_columns(window=place.inside, across=pl.lit(value=False)))
    beside = facts(place.windows, rows).get(0)
    return explained(beside[0]) if beside else None


def _counted(case: Case) -> dict[Series, int]:
    before, after = (mapping(case.given.get(name, {}), f"input.{name}") for name in (BEFORE, AFTER))
    out: dict[Series, int] = {}
    for name in sorted(before.keys() & after.keys()):
        values = [count(values[name], f"input.{where}.{name}") for where, values in ((BEFORE, before), (AFTER, after))]
        series = (str(all_metrics()[name].counter), None)
        out[series] = out.get(series, 0) + (values[1] or 0) - (values[0] or 0)
    return out


def _records(case: Case) -> Sequence[Mapping[str, object]]:
    held = case.given.get(RECORDS, [])
    told = held if isinstance(held, list) else [held]
    return [mapping(record, f"input.records[{number}]") for number, record in enumerate(told)]


def _life(case: Case, record: Mapping[str, object], number: int) -> dict[str, object]:
    usage = record.get("usage")
    reading = None
    if usage is not None:
        reading = read_usage({"provider": case.provider, "api": "openai_chat", "usage": usage})
    outcome = str(record.get("outcome", ""))
    figures = {
        column: count(record[name], f"input.records[{number}].{name}") if record.get(name) is not None else None
        for column, name in (("input", "prompt_tokens"), ("output", "completion_tokens"))
    }
    if reading is not None:
        figures["input"] = reading.input_total if figures["input"] is None else figures["input"]
        figures["output"] = reading.output_total if figures["output"] is None else figures["output"]
    begin = _SINCE + timedelta(minutes=1)
    return {
        "attempt_lo": number, "attempt_hi": 0, "day": begin.date(), "begin": begin, "end": begin,
        "unfinished": outcome in _ABORTED, "failed": outcome in _FAILED, "engine_counted": reading is None, **figures,
    }  # fmt: skip
