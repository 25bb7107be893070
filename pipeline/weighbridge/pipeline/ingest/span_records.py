"""Spans as files hold them: OTLP JSON, what the SDKs of Python and JavaScript print, and bare attributes.

    {"resourceSpans": [{"resource": {"attributes": [...]}, "scopeSpans": [{"spans": [{"traceId": ..., "attributes":
        [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "97"}}]}]}]}]}            OTLP, one export a line
    {"name": ..., "context": {"trace_id": "0x...", "span_id": "0x..."}, "parent_id": ..., "attributes": {...}}   Python
    {"name": ..., "spanContext": {"traceId": ..., "spanId": ...}, "startTime": [s, ns], "attributes": {...}}  JavaScript
    {"gen_ai.usage.input_tokens": 97, ...}                                                     attributes and no more

Attributes keep their values here; only those that are named elsewhere are ever taken (`span_calls`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from weighbridge.pipeline.ingest.record_fields import at, digits, epoch_time, iso_time

_NANO = 1_000_000_000
_INTEGER = re.compile(r"-?\d{1,40}")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,99}")
# How the three forms say that a span ended in an error.
_ERROR = (2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR")
_TELLING = ("gen_ai.", "llm.", "ai.", "openinference.")


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span.

    Attributes:
        trace, id, parent: as the file names them, hexadecimal ones in lower case without 0x.
        attributes: its own, and below them those of its resource: name -> value.
        start, end: in UTC, null where the file does not say.
        failed: whether it says that it ended in an error.
        refused: it could not be taken apart.
    """

    trace: str | None
    id: str | None
    parent: str | None
    attributes: Mapping[str, object]
    start: datetime | None = None
    end: datetime | None = None
    failed: bool = False
    refused: bool = False


def is_spans(record: Mapping[str, object]) -> bool:
    """Whether a record is of any of these forms and tells of calls of a model, or may do so."""
    if "resourceSpans" in record or "resource_spans" in record:
        return True
    if isinstance(record.get("attributes"), Mapping) and ("context" in record or "spanContext" in record):
        return any(str(name).startswith(_TELLING) for name in record["attributes"])  # type: ignore[attr-defined]
    return _is_bare(record)


def spans_of(record: Mapping[str, object]) -> Iterator[SpanRecord]:
    """The spans of one record: many of an OTLP export, one of any other form."""
    exported = record.get("resourceSpans", record.get("resource_spans"))
    if exported is not None:
        yield from _exported(exported)
    elif isinstance(record.get("body"), Mapping):
        yield from spans_of(record["body"])  # type: ignore[arg-type]
    elif isinstance(record.get("attributes"), Mapping):
        yield _printed(record)
    elif _is_bare(record):
        yield SpanRecord(None, None, None, record)


def _is_bare(record: Mapping[str, object]) -> bool:
    return any(str(name).startswith(("gen_ai.", "llm.", "ai.usage.", "openinference.")) for name in record)


def _exported(groups: object) -> Iterator[SpanRecord]:
    """The spans of an OTLP export. What is no list where one has to stand is one span that cannot be read."""
    for group in _listed(groups):
        resource = _attributes(at(group, "resource", "attributes"))
        scopes = at(group, "scopeSpans") or at(group, "scope_spans") or at(group, "instrumentationLibrarySpans")
        for scope in _listed(scopes):
            for span in _listed(at(scope, "spans")):
                if isinstance(span, Mapping):
                    yield _otlp(span, resource or {})
                else:
                    yield _UNREADABLE


_UNREADABLE = SpanRecord(None, None, None, {}, refused=True)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _otlp(span: Mapping[str, object], resource: Mapping[str, object]) -> SpanRecord:
    attributes = _attributes(span.get("attributes"))
    return SpanRecord(
        trace=_id(span.get("traceId", span.get("trace_id"))),
        id=_id(span.get("spanId", span.get("span_id"))),
        parent=_id(span.get("parentSpanId", span.get("parent_span_id"))),
        attributes={**resource, **(attributes or {})},
        start=epoch_time(span.get("startTimeUnixNano", span.get("start_time_unix_nano")), _NANO),
        end=epoch_time(span.get("endTimeUnixNano", span.get("end_time_unix_nano")), _NANO),
        failed=at(span, "status", "code") in _ERROR,
        refused=attributes is None,
    )


def _printed(span: Mapping[str, object]) -> SpanRecord:
    """A span as the SDK of a language prints it."""
    attributes, resource = span["attributes"], at(span, "resource", "attributes")
    context = span.get("spanContext", span.get("context"))
    return SpanRecord(
        trace=_id(at(context, "traceId") or at(context, "trace_id")),
        id=_id(at(context, "spanId") or at(context, "span_id")),
        parent=_id(span.get("parentSpanId") or span.get("parent_id") or at(span, "parentSpanContext", "spanId")),
        attributes={**(resource if isinstance(resource, Mapping) else {}), **_mapping(attributes)},
        start=_moment(span.get("startTime", span.get("start_time"))),
        end=_moment(span.get("endTime", span.get("end_time"))),
        failed=at(span, "status", "code") in _ERROR or at(span, "status", "status_code") in _ERROR,
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _moment(value: object) -> datetime | None:
    """A time as JavaScript has it, [seconds, nanoseconds], or as text."""
    if isinstance(value, list) and len(value) == 2:
        seconds, nanos = (digits(part) for part in value)
        return None if seconds is None or nanos is None else epoch_time(seconds * _NANO + nanos, _NANO)
    return iso_time(value)


def _id(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    found = _HEX.fullmatch(value)
    if found:
        return None if set(found[1]) == {"0"} else found[1].lower()
    return value if _PLAIN.fullmatch(value) else None


def _attributes(items: object) -> dict[str, object] | None:
    """Typed attributes as name -> value; null where they are none."""
    if items is None:
        return {}
    if not isinstance(items, list):
        return None
    found: dict[str, object] = {}
    for item in items:
        name = item.get("key") if isinstance(item, dict) else None
        if not isinstance(name, str):
            return None
        found[name] = _value(item.get("value"))
    return found


def _value(value: object) -> object:
    """One typed value. Integers of 64 bits come as text, for JavaScript has none."""
    if not isinstance(value, dict):
        return None
    for kind in ("stringValue", "boolValue", "doubleValue", "string_value", "bool_value", "double_value"):
        if kind in value:
            return value[kind]
    number = value.get("intValue", value.get("int_value"))
    if isinstance(number, str) and _INTEGER.fullmatch(number):
        return int(number)
    if number is not None:
        return number
    held = at(value, "arrayValue", "values") or at(value, "array_value", "values")
    return [_value(item) for item in held] if isinstance(held, list) else None
