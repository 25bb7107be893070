"""Spans of calls to models: OTLP JSON of OpenTelemetry, with the names of OpenInference, OpenLLMetry, Sentry, Vercel.

A file is JSON Lines or one document, each record an OTLP export or a single span (see `span_records`). Of a span its
counts, ids, times, names and status are taken; prompts, answers, tools, users and everything else are read past. Which
spans are calls is told in `span_choice`.

A settings file says which attribute of a span or its resource names the tenant or the task; give it with
`--importer otel_spans --mapping FILE`:

    [columns]
    tenant = "service.namespace"
    task = "gen_ai.agent.name"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import Line
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.span_calls import SpanUsage, call_of
from weighbridge.pipeline.ingest.span_choice import Choice, choices
from weighbridge.pipeline.ingest.span_records import is_spans, spans_of
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.leaves import Refusal

SOURCE = "otel-spans"
OUTER_DIFFERS = "outer_span_differs"
_LISTS = ("spans", "body")
# What a collector's file holds beside spans.
_OTHER_SIGNALS = ("resourceMetrics", "resourceLogs", "resourceProfiles")
_COLUMNS = ("tenant", "task")


@dataclass(frozen=True, slots=True)
class _Settings:
    """Which attributes name the tenant and the task."""

    tenant: str | None = None
    task: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that are named."""
        return tuple(name for name in (self.tenant, self.task) if name)


def _settings(path: Path | None) -> _Settings:
    if path is None:
        return _Settings()
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{path} is no TOML file that can be read ({type(error).__name__}); write [columns] with tenant or task in "
            "it, as docs/importing.md shows"
        ) from None
    columns = told.get("columns", {})
    unknown = sorted(told.keys() - {"columns"}) + sorted(
        columns.keys() - set(_COLUMNS) if isinstance(columns, dict) else []
    )
    if unknown or not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns.values()):
        raise ConfigError(
            f"{path} has {', '.join(unknown) or 'a value that is no text'}; for spans [columns] with "
            f"{' and '.join(_COLUMNS)} is allowed, each the name of an attribute. Correct it and run again."
        )
    return _Settings(**columns)


def _records(path: Path) -> Iterator[Line]:
    return read_records(path, _LISTS)


def _recognises(path: Path) -> bool:
    return recognised(path, _records, _holds_spans)


def _holds_spans(record: Mapping[str, object]) -> bool:
    body = record.get("body")
    return is_spans(record) or (isinstance(body, dict) and is_spans(body))


def _check(source: Source) -> Heading:
    _settings(source.mapping)
    return heading(source.path, _records, "export of spans", "Export it again as OTLP JSON")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    settings = _settings(source.mapping)
    stage = Stage(source, SOURCE)
    told: list[tuple[int, SpanUsage]] = []
    records = 0
    for number, item in enumerate(_items(source.path, settings)):
        if isinstance(item, SpanUsage):
            told.append((number, item))
        else:
            records += 1
            stage.refuse(number, [item])
    found, differing = choices([one for _, one in told])
    for (number, one), choice in zip(told, found, strict=True):
        if choice is Choice.NONE:
            continue
        records += 1
        if choice is Choice.REPEAT:
            stage.repeat()
        else:
            notes = (OUTER_DIFFERS,) if one.span.trace in differing else ()
            stage.add(number, [_call(one, source, settings, notes)], one.span.attributes)
    return stage.staged(records)


def _items(path: Path, settings: _Settings) -> Iterator[SpanUsage | Refusal]:
    """The spans of a file in order, and the reasons why a record or span cannot be taken apart."""
    for line in _records(path):
        record = line.value
        if record is None:
            yield Refusal("", line.reason or QuarantineReason.NOT_JSON)
            continue
        if any(name in record for name in _OTHER_SIGNALS):
            continue
        empty = True
        for span in spans_of(record):
            empty = False
            yield Refusal("", QuarantineReason.TYPE) if span.refused else SpanUsage.of(span, settings.names)
        if empty and "resourceSpans" not in record and "resource_spans" not in record:
            yield Refusal("", QuarantineReason.MISSING_FIELD)


def _call(one: SpanUsage, source: Source, settings: _Settings, notes: tuple[str, ...]) -> Call:
    attributes = one.span.attributes
    call = call_of(one, attributes.get(settings.tenant or ""), attributes.get(settings.task or ""), notes)
    call.attempt["provider"] = source.provider or call.attempt["provider"]
    if source.model is not None and call.model is None:
        call.attempt["model_requested"] = source.model
    return call


IMPORTER = Importer(
    name="otel_spans",
    doc="Spans of calls to models as OTLP JSON or as an SDK prints them: counts of the innermost spans, no text.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
