"""Model invocation logs of Amazon Bedrock, from S3 or CloudWatch: one record per call, of which only counts are taken.

    {"schemaType": "ModelInvocationLog", "timestamp": "2026-01-15T10:30:00Z", "requestId": ..., "operation": "Converse",
     "modelId": "amazon.nova-lite-v1:0", "region": "us-east-1", "identity": {"arn": ...},
     "input": {"inputTokenCount": 4, ...}, "output": {"outputTokenCount": 38, "outputBodyJson": {...}}}

A file is JSON Lines, one such document, or an export of CloudWatch, whose events hold the record as text in `message`
or `@message`. Who called, the account and both bodies are read past, but for the usage in the answer's body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import Line, parse
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_files import part_of
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.log_leaves import BEDROCK_PATHS, named_leaves
from weighbridge.pipeline.ingest.parameters import parameters, tier_requested
from weighbridge.pipeline.ingest.record_fields import at, id_of, iso_time, name_of, refused_time
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "bedrock-invocation-log"
PROVIDER, API = "bedrock", "bedrock_invocation_log"
SCHEMA = "ModelInvocationLog"
_LISTS = ("events",)
_MESSAGES = ("message", "@message")
_STREAMS = frozenset({"ConverseStream", "InvokeModelWithResponseStream", "InvokeModelWithBidirectionalStream"})
_FAILED = ("errorCode", "errorMessage", "error")
# AWS names that say the call was turned away before any work, and those that say it broke.
_REJECTED = ("Throttling", "Validation", "AccessDenied", "ResourceNotFound", "ServiceQuota", "ModelNotReady")


def _records(path: Path) -> Iterator[Line]:
    """The records of a file, those that CloudWatch wrapped as text taken out."""
    for line in read_records(path, _LISTS):
        yield line if line.value is None else _unwrapped(line.number, line.value)


def _unwrapped(number: int, record: Mapping[str, object]) -> Line:
    for name in _MESSAGES:
        held = record.get(name)
        if "schemaType" not in record and isinstance(held, str) and held.lstrip().startswith("{"):
            return Line(number, *parse(held.encode("utf-8", "surrogatepass")))
        if "schemaType" not in record and isinstance(held, dict):
            return Line(number, held)
    return Line(number, dict(record))


def _recognises(path: Path) -> bool:
    return recognised(path, _records, lambda record: record.get("schemaType") == SCHEMA)


def _check(source: Source) -> Heading:
    return heading(source.path, _records, "invocation log", "Fetch it again from S3 or CloudWatch")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    for line in _records(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
        elif line.value.get("schemaType") != SCHEMA:
            stage.refuse(line.number, [Refusal("", QuarantineReason.MISSING_FIELD)])
        else:
            stage.add(line.number, [_call(line.value, source)], line.value)
    return stage.staged(records)


def _call(record: Mapping[str, object], source: Source) -> Call:
    notes: list[str] = []
    model = name_of(_model(record.get("modelId")), notes) or source.model
    body = at(record, "output", "outputBodyJson")
    leaves = named_leaves(_counts(record, body))
    status = _status(record, answered=bool(leaves.leaves))
    ended = Ended.COMPLETE if status is AttemptStatus.SUCCEEDED else Ended.ERROR
    attempt: dict[str, object] = {
        "provider": source.provider or PROVIDER,
        "api": API,
        "model_requested": model,
        "stream": str(record.get("operation")) in _STREAMS,
        "status": str(status),
        "finish_reason": finish_reason(body if isinstance(body, list) else [body]),
        "usage_expected": status is AttemptStatus.SUCCEEDED,
        **parameters(at(record, "input", "inputBodyJson")),
        "tier_requested": tier_requested(at(record, "input", "inputBodyJson")),
    }
    ids = _ids(record, body, notes)
    created = iso_time(record.get("timestamp"))
    leaves.refusals.extend(refused_time(record.get("timestamp"), created))
    return Call(attempt, part_of(leaves, ended), ids, tuple(dict.fromkeys(notes)), model, created)


def _model(value: object) -> object:
    """The model without the ARN around it, which names the account."""
    return value.rsplit("/", 1)[-1] if isinstance(value, str) and value.startswith("arn:") else value


def _status(record: Mapping[str, object], *, answered: bool) -> AttemptStatus:
    error = next((record[name] for name in _FAILED if record.get(name)), None)
    if error is not None:
        rejected = isinstance(error, str) and error.startswith(_REJECTED)
        return AttemptStatus.REJECTED if rejected else AttemptStatus.FAILED
    return AttemptStatus.SUCCEEDED if answered or record.get("output") is not None else AttemptStatus.UNKNOWN


def _counts(record: Mapping[str, object], body: object) -> dict[str, object]:
    """The counts of the log, and of the body it recorded, under their whole names."""
    found: dict[str, object] = {}
    for path in BEDROCK_PATHS:
        if not path.startswith("output.outputBodyJson"):
            found[path] = at(record, *path.split("."))
    for name, value in _usage(body).items():
        inner = value.items() if isinstance(value, Mapping) else ()
        found[f"output.outputBodyJson.usage.{name}"] = None if inner else value
        found |= {f"output.outputBodyJson.usage.{name}.{key}": item for key, item in inner}
    for name in ("prompt_token_count", "generation_token_count"):
        found[f"output.outputBodyJson.{name}"] = at(body, name)
    return {path: value for path, value in found.items() if value is not None}


def _usage(body: object) -> dict[str, object]:
    """The usage of an answer's body; of a stream's events, later ones revise what earlier ones said."""
    if isinstance(body, Mapping):
        usage = body.get("usage")
        return dict(usage) if isinstance(usage, Mapping) else {}
    found: dict[str, object] = {}
    for event in body if isinstance(body, list) else []:
        # The output a stream opens with is a placeholder: what closes it says how many there were.
        for usage in (at(event, "message", "usage"), at(event, "metadata", "usage"), at(event, "usage")):
            if isinstance(usage, Mapping):
                found |= {name: value for name, value in usage.items() if value is not None}
    return found


def _ids(record: Mapping[str, object], body: object, notes: list[str]) -> dict[ForeignIdKind, str]:
    request = id_of(record.get("requestId"), notes)
    found = {} if request is None else {ForeignIdKind.RECORD_ID: request, ForeignIdKind.CLIENT_REQUEST_ID: request}
    for event in body if isinstance(body, list) else [body]:
        answer = id_of(at(event, "id") or at(event, "message", "id"), notes)
        if answer is not None:
            return found | {ForeignIdKind.PROVIDER_RESPONSE_ID: answer}
    return found


IMPORTER = Importer(
    name="bedrock_invocations",
    doc="Amazon Bedrock's model invocation logs from S3 or CloudWatch: the counts of the log and of the answer's body.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
