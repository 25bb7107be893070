"""Cases of records that tell one call several times: they go the whole way of a file into a lake and are counted there.

What a case has as `records` is written as a file of the log it comes from, taken in by that log's importer, and settled
like any other. Nothing here knows what a duplicate is.

    records with a span            otel_spans        attributes under the names of the api
    context.record_format          claude_code       `coding-agent-jsonl`: the lines as they are
    any other                      recorded_answers  one attempt of a gateway each
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from weighbridge.pipeline.conformance.case import BODIES, TOTALS, Case, count, mapping
from weighbridge.pipeline.conformance.compare import compared, differs
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.ingest.reading import CELL_NAMES, CLASS_NAMES, UsageReading
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import AttemptStatus, Ended, Verdict

INPUT = frozenset({"provider", "api", "model", "context", "records", "prices"})
CONTEXT = frozenset({"record_format"})
EXPECT = frozenset({"kept", "requests", "attempts", "failed", "counts", "flags", "not_flags", "note", *TOTALS})
SESSION = "coding-agent-jsonl"
_NUMBERS = ("kept", "requests", "attempts", "failed")
_SPAN = frozenset({"request_id", "span_id", "parent_span_id", "operation", "start", "end", "usage"})
_GATEWAY = frozenset({"request_id", "attempt_id", "response_id", "api", "status", "time", "usage"})
# The api of a case -> the attribute that names the operation, and our names of counts -> its own.
_SPANS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "otel_spans": (
        "gen_ai.operation.name",
        {name: f"gen_ai.usage.{name}" for name in ("input_tokens", "output_tokens", "total_tokens")},
    ),
    "openinference_spans": (
        "openinference.span.kind",
        {
            "input_tokens": "llm.token_count.prompt",
            "output_tokens": "llm.token_count.completion",
            "total_tokens": "llm.token_count.total",
        },
    ),
}
CASE_KEY, CASE_DAY = bytes(32), date(2026, 1, 1)
_BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
_ATTEMPT = ("attempt_hi", "attempt_lo")
REPORT = (*_ATTEMPT, "source", "child", "report")


def unknown_fields(case: Case) -> Iterator[str]:
    """Fields of the records that nothing here reads, each as its path.

    Raises:
        MalformedCaseError: there are no records, or they are no objects.
    """
    records = _records(case)
    if _format(case) == SESSION:
        return
    known = _SPAN if case.api in _SPANS else _GATEWAY
    for name in sorted({name for record in records for name in record} - known):
        yield f"input.records.{name}"


def compared_records(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record or an expectation cannot be read.
    """
    with TemporaryDirectory(prefix="weighbridge-") as folder:
        lake = Lake.create(Path(folder) / "lake")
        path = Path(folder) / "records.jsonl"
        importer, lines = file_of(case)
        path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines), encoding="utf-8")
        result = ingest([path], lake, key=CASE_KEY, day=CASE_DAY, importer=importer).files[0]
        attempts = latest(lake, "attempt", (*_ATTEMPT, "source"))
        readings = latest(lake, "reading", REPORT)
    yield f"records: {result.rows_quarantined} cannot be read" if result.rows_quarantined else None
    numbers = _numbers(attempts)
    for name in _NUMBERS:
        if name in case.expect:
            yield differs(name, count(case.expect[name], f"expect.{name}"), numbers[name])
    yield from compared(case, summed(case, readings), lambda _, __: None)


def _format(case: Case) -> object:
    return case.context.get("record_format")


def _records(case: Case) -> Sequence[Mapping[str, Any]]:
    records = case.given.get("records")
    if not isinstance(records, list) or not records or any(name in case.given for name in BODIES):
        raise MalformedCaseError("input.records is missing, or not alone; a case of this kind has a list of records")
    return [mapping(record, "input.records") for record in records]


def file_of(case: Case) -> tuple[str, list[Mapping[str, object]]]:
    """The importer of the records, and the lines of their file."""
    records = _records(case)
    if _format(case) == SESSION:
        return "claude_code", list(records)
    if case.api in _SPANS:
        spans = [_span(case, record) for record in records]
        return "otel_spans", [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]
    return "recorded_answers", [_answer(case, record) for record in records]


def _span(case: Case, record: Mapping[str, Any]) -> dict[str, object]:
    operation, names = _SPANS[case.api]
    usage = mapping(record.get("usage") or {}, "input.records.usage")
    if not set(usage) <= set(names):
        raise MalformedCaseError(f"input.records.usage has a name that is none of {', '.join(names)}")
    attributes = [{"key": names[name], "value": {"intValue": str(value)}} for name, value in usage.items()]
    told = {operation: record.get("operation"), "gen_ai.system": case.provider, "gen_ai.request.model": _model(case)}
    attributes += [{"key": name, "value": {"stringValue": value}} for name, value in told.items() if value]
    times = {"startTimeUnixNano": record.get("start"), "endTimeUnixNano": record.get("end")}
    return {
        "traceId": _hex(record.get("request_id"), 32),
        "spanId": _hex(record.get("span_id"), 16),
        "parentSpanId": _hex(record.get("parent_span_id"), 16),
        "attributes": attributes,
        **{name: str((_BEGIN + at) * 10**9) for name, at in times.items() if isinstance(at, int)},
    }


def _hex(value: object, digits: int) -> str | None:
    """An id of a case as one of a span."""
    return None if value is None else hashlib.sha256(str(value).encode()).hexdigest()[:digits]


def _answer(case: Case, record: Mapping[str, Any]) -> dict[str, object]:
    usage = record.get("usage")
    said = None if usage is None else {"id": record.get("response_id"), "created": _second(record), "usage": usage}
    return {
        "id": record.get("attempt_id"),
        "request_id": record.get("request_id"),
        "provider": case.provider,
        "api_flavor": record.get("api") or _spoken(usage),
        "model": _model(case),
        "status": record.get("status", 200),
        "response": said or {"error": {"type": "error"}},
    }


def _spoken(usage: object) -> str:
    """The API whose words a usage object uses, where its record does not say."""
    return "responses" if isinstance(usage, Mapping) and "input_tokens" in usage else "chat"


def _second(record: Mapping[str, Any]) -> int | None:
    told = record.get("time")
    try:
        return int(datetime.fromisoformat(told).timestamp()) if isinstance(told, str) else None
    except ValueError:
        raise MalformedCaseError("input.records.time is no ISO 8601 time") from None


def _model(case: Case) -> str | None:
    model = case.given.get("model")
    return model if isinstance(model, str) else None


def latest(lake: Lake, table: str, key: Sequence[str]) -> pl.DataFrame:
    """The last revisions of a table, in the order of their keys."""
    rows = lake.scan(table).collect().sort(*key, "revision")
    return rows.group_by(key, maintain_order=True).last()


def _numbers(attempts: pl.DataFrame) -> dict[str, int]:
    failed = [str(AttemptStatus.FAILED), str(AttemptStatus.REJECTED)]
    asked = attempts.filter(pl.col("request_lo").is_not_null())
    requests = asked.select("request_hi", "request_lo").n_unique() if asked.height else 0
    return {
        "kept": attempts.height,
        "attempts": attempts.height,
        "requests": requests + attempts.height - asked.height,
        "failed": attempts.filter(pl.col("status").is_in(failed)).height,
    }


def summed(case: Case, readings: pl.DataFrame) -> UsageReading:
    """All readings as one: sums, of which any is unknown where a part of it is."""
    known = {name: _sum(readings[name]) for name in (*CLASS_NAMES, *CELL_NAMES, *TOTALS)}
    flags = readings["flags"].explode().drop_nulls().unique().sort()
    return UsageReading(
        provider=case.provider,
        api=case.api,
        model=_model(case),
        dialect=None,
        verdict=Verdict.UNKNOWN,
        reason="",
        rule="",
        counts={name: known[name] for name in CLASS_NAMES},
        cells={name: known[name] for name in CELL_NAMES},
        input_total=known["input_total"],
        output_total=known["output_total"],
        total=known["total"],
        reported_total=None,
        ended=Ended.UNKNOWN,
        flags=tuple(flags),
        leaves=(),
    )


def _sum(column: pl.Series) -> int | None:
    return None if column.is_empty() or column.null_count() else int(column.sum())
