"""Finished requests of an SGLang server, JSON Lines: what `--export-metrics-to-file` writes, a file an hour.

    {"request_parameters": "{\\"text\\": ..., \\"sampling_params\\": {...}}", "id": "8f3c...", "prompt_tokens": 401,
     "completion_tokens": 20, "cached_tokens": 384, "cached_tokens_details": {"device": 384, "host": 0, "storage": 0},
     "finish_reason": {"type": "length", "length": 20}, "e2e_latency": 0.31, "num_retractions": 0,
     "spec_verify_ct": 9, "spec_num_proposed_drafts": 27, "spec_num_correct_drafts": 11}

Answers of the native `/generate`, one a line, have the same under `meta_info`, beside their text: {"text": ...,
"meta_info": {"id": ..., "prompt_tokens": 401, ...}}.

`request_parameters` is a text of JSON with all that was asked, the prompt among it. Of that only numbers are read that
are named here; nothing else of it, and no stop string that `finish_reason` names, leaves the line.

Cached tokens are of the prefix cache; what that cache lets go of is a counter of the server and says nothing about
sparsity. Constructed after SGLang's source (0.5): never run against a server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.http_calls import microseconds, unreadable
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.json_records import is_json
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.record_fields import at, digits, epoch_time, id_of, small_number
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "sglang-engine"
FRAMEWORK = "sglang"
_NAMED = "sglang-request-metrics-"
_COUNTS = ("prompt_tokens", "completion_tokens")
# What was asked: our name of a number, and its name in `sampling_params`.
_ASKED = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens", "n": "n", "top_k": "top_k"}
# Drafted and accepted tokens, under the names of one version after the other.
_DRAFTS = (
    ("spec_num_proposed_drafts", "spec_num_correct_drafts"),
    ("spec_proposed_drafts", "spec_accepted_drafts"),
    ("spec_draft_token_num", "spec_accept_token_num"),
)
_STATUS = {FinishReason.ABORT: AttemptStatus.ABORTED, FinishReason.ERROR: AttemptStatus.FAILED}
_MICRO = 1_000_000
Record = Mapping[str, object]


def _is_request(record: Record) -> bool:
    return {"request_parameters", *_COUNTS} <= record.keys() or _of_answer(record) is not None


def _of_answer(record: Record) -> Record | None:
    """What a native answer says about itself; null where the record is none."""
    told = record.get("meta_info")
    return told if isinstance(told, Mapping) and {"id", *_COUNTS} <= told.keys() else None


def _recognises(path: Path) -> bool:
    if path.is_file() and path.name.startswith(_NAMED):
        return True
    return is_json(path) and recognised(path, read_lines, _is_request)


def _check(source: Source) -> Heading:
    return heading(source.path, read_lines, "list of finished requests of SGLang", "Write it again, one request a line")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    for line in read_lines(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, unreadable(line.reason))
        elif not _is_request(line.value):
            stage.refuse(line.number, [Refusal("prompt_tokens", QuarantineReason.MISSING_FIELD)])
        else:
            call = _call(_of_answer(line.value) or line.value, source)
            if isinstance(call, Call):
                stage.add(line.number, [call], line.value)
            else:
                stage.refuse(line.number, call)
    return stage.staged(records)


def _call(record: Record, source: Source) -> Call | list[Refusal]:
    refusals = [
        Refusal(name, QuarantineReason.TYPE)
        for name in _COUNTS
        if isinstance(record[name], bool) or not isinstance(record[name], int) or digits(record[name]) is None
    ]
    if refusals:
        return refusals
    prompt, output = digits(record["prompt_tokens"]), digits(record["completion_tokens"])
    assert prompt is not None
    local, external = _cached(record)
    known = local is not None and external is not None
    reason = finish_reason([{"finish_reason": at(record, "finish_reason", "type")}])
    retracted = small_number(record.get("num_retractions"))
    notes: list[str] = []
    attempt: dict[str, object] = {
        "provider": source.provider or FRAMEWORK,
        "framework": FRAMEWORK,
        "model_served": source.model,
        "status": str(_STATUS.get(reason or FinishReason.STOP, AttemptStatus.SUCCEEDED)),
        "finish_reason": reason,
        "total_us": microseconds(record.get("e2e_latency")),
        "queue_us": microseconds(record.get("queue_time")),
        "input_computed": prompt,
        "cached_local": local,
        "cached_external": external,
        "prefill_computed": prompt - (local or 0) - (external or 0) if known else None,
        "output_computed": output,
        # A retracted request is computed again; how much of it no record says.
        "recomputed": 0 if retracted == 0 else None,
        **_asked(record),
        **_drafts(record),
    }
    identifier = id_of(record.get("id"), notes)
    ids = (
        {}
        if identifier is None
        else {ForeignIdKind.RECORD_ID: identifier, ForeignIdKind.PROVIDER_RESPONSE_ID: identifier}
    )
    received = microseconds(record.get("request_received_ts"))
    created = None if received is None else epoch_time(received, _MICRO)
    return Call(attempt, [], ids, tuple(notes), source.model, created)


def _cached(record: Record) -> tuple[int | None, int | None]:
    """Cached tokens by where they lay; where the record tells the whole only, the place is not known unless it is 0."""
    details = record.get("cached_tokens_details")
    if isinstance(details, Mapping):
        parts = [digits(details.get(name, 0)) for name in ("device", "host", "storage")]
        if None not in parts:
            device, host, storage = (part or 0 for part in parts)
            return device + host, storage
    whole = digits(record.get("cached_tokens"))
    return (0, 0) if whole == 0 else (None, None)


def _asked(record: Record) -> dict[str, object]:
    """Numbers of what was asked. The text they stand in is read and dropped."""
    told = record.get("request_parameters")
    try:
        asked = json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return {}
    if not isinstance(asked, Mapping):
        return {}
    parameters = asked.get("sampling_params")
    if not isinstance(parameters, Mapping):
        return {}
    stop = parameters.get("stop")
    found: dict[str, object] = {ours: small_number(parameters.get(theirs)) for ours, theirs in _ASKED.items()}
    if isinstance(stop, (str, list)) and stop:
        found["stop_strings"] = 1 if isinstance(stop, str) else len(stop)
    if isinstance(asked.get("stream"), bool):
        found["stream"] = asked["stream"]
    return {name: value for name, value in found.items() if value is not None}


def _drafts(record: Record) -> dict[str, object]:
    """Drafted, accepted and rejected tokens, where one version's pair of names is there and agrees with itself."""
    for proposed, correct in _DRAFTS:
        drafted, accepted = small_number(record.get(proposed)), small_number(record.get(correct))
        if drafted is not None and accepted is not None and accepted <= drafted:
            return {"drafted": drafted, "accepted": accepted, "rejected": drafted - accepted}
    return {}


IMPORTER = Importer(
    name="sglang_requests",
    doc="Finished requests of an SGLang server as it exports them to files, or its native answers: numbers only.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
