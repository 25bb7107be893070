"""Finished requests of a TensorRT-LLM server: answers of its `/perf_metrics`, or the files its newer versions write.

    [{"request_id": 4, "perf_metrics": {
        "first_iter": 71, "last_iter": 90,
        "timing_metrics": {"server_arrival_time": 812.001, "arrival_time": 812.003, "first_scheduled_time": 812.010,
                           "first_token_time": 812.045, "server_first_token_time": 812.046, "last_token_time": 812.310},
        "kv_cache_metrics": {"num_total_allocated_blocks": 9, "num_new_allocated_blocks": 3, "num_reused_blocks": 6,
                             "num_missed_blocks": 3},
        "speculative_decoding": {"acceptance_rate": 0.5, "total_accepted_draft_tokens": 9, "total_draft_tokens": 18}}}]

`perf_metrics-*.jsonl` have the same a line, with a `status`. A server that splits prefill and decoding writes one
record with a `ctx_perf_metrics` and a `gen_perf_metrics`, each as above, beside the names of both workers. What such a
worker writes itself (it has a `ctx_request_id`) is half a request, and refused: the whole one is in the file of the
server before them.

What is told of tokens is drafts. Cached and allocated keys are told in blocks of a size no record says, so they are no
tokens here; prompt and output stand in no record at all. Times are those of a clock that began with the machine: spans
are read, and no hour. A `request_id` counts from the start of a server and is in no answer: such an attempt meets none
of its client's.

Constructed after TensorRT-LLM's source (1.0 to 1.3): never run against a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from weighbridge.pipeline.ingest.http_calls import duration, named, unreadable
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.record_fields import at, digits, id_of, small_number
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "tensorrt-llm-engine"
FRAMEWORK = "tensorrt_llm"
_FIRST, _SECOND = "ctx_perf_metrics", "gen_perf_metrics"
_TIMES = "timing_metrics"
Record = Mapping[str, object]


def _of_worker(record: object) -> bool:
    return isinstance(at(record, "perf_metrics", _TIMES), dict)


def _is_request(record: Record) -> bool:
    return _of_worker(record) or _of_worker(record.get(_SECOND))


def _recognises(path: Path) -> bool:
    return recognised(path, read_records, _is_request)


def _check(source: Source) -> Heading:
    return heading(source.path, read_records, "list of finished requests of TensorRT-LLM", "Fetch it again")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    for line in read_records(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, unreadable(line.reason))
        elif not _is_request(line.value):
            stage.refuse(line.number, [Refusal(f"perf_metrics.{_TIMES}", QuarantineReason.MISSING_FIELD)])
        elif _of_worker(line.value) and line.value.get("ctx_request_id") is not None:
            stage.refuse(line.number, [Refusal(_FIRST, QuarantineReason.MISSING_FIELD)])
        else:
            stage.add(line.number, [_call(line.value, source)], line.value)
    return stage.staged(records)


def _call(record: Record, source: Source) -> Call:
    split = _of_worker(record.get(_SECOND))
    before = record.get(_FIRST) if split else record
    after = record.get(_SECOND) if split else record
    began = record.get("disagg_server_arrival_time") if split else at(before, "perf_metrics", _TIMES, "arrival_time")
    arrival, scheduled, first = (
        at(before, "perf_metrics", _TIMES, name)
        for name in ("arrival_time", "first_scheduled_time", "first_token_time")
    )
    last = at(after, "perf_metrics", _TIMES, "last_token_time")
    # The clocks of two workers are not one: what lies between them is told by the server before both, or not at all.
    shown = record.get("disagg_server_first_token_time") if split else first
    decoding = at(after, "perf_metrics", _TIMES, "first_token_time")
    attempt: dict[str, object] = {
        "provider": source.provider or FRAMEWORK,
        "framework": FRAMEWORK,
        "model_served": source.model,
        "status": str(_status(record.get("status"))),
        "queue_us": _span(arrival, scheduled),
        "prefill_us": _span(scheduled, first),
        "first_token_us": _span(began, shown),
        "decode_us": _span(decoding, last),
        "total_us": None if split else _span(began, last),
        **_drafts(at(after, "perf_metrics", "speculative_decoding")),
    }
    notes: list[str] = []
    number = record.get("disagg_request_id") if split else record.get("request_id")
    told = number if isinstance(number, str) else None if digits(number) is None else str(digits(number))
    identifier, moment = id_of(told, notes), _microseconds(began)
    # A number counts from the start of a server: with the moment it is that of one request.
    known = identifier is not None and moment is not None
    ids = {ForeignIdKind.RECORD_ID: named(f"trtllm-{identifier}", moment)} if known else {}
    return Call(attempt, [], ids, tuple(notes), source.model)


def _status(told: object) -> AttemptStatus:
    """Only requests that came to their end are written down; another word is one we do not know."""
    return AttemptStatus.SUCCEEDED if told in (None, "complete") else AttemptStatus.UNKNOWN


def _microseconds(seconds: object) -> int | None:
    """A moment of the machine's clock; what is not above zero was not taken."""
    found = None if isinstance(seconds, bool) or not isinstance(seconds, int | Decimal) else Decimal(seconds)
    if found is None or not found.is_finite() or not 0 < found < 10**11:
        return None
    return int(found * 1_000_000)


def _span(begin: object, end: object) -> int | None:
    """Microseconds between two moments of one clock; null where one is missing, or they stand the other way round."""
    first, last = _microseconds(begin), _microseconds(end)
    return None if first is None or last is None else duration(Decimal(last - first) / 1000)


def _drafts(told: object) -> dict[str, object]:
    """Drafted, accepted and rejected tokens. A request without drafts has no such section, and nor has one of old."""
    drafted, accepted = (small_number(at(told, f"total_{name}_tokens")) for name in ("draft", "accepted_draft"))
    if drafted is None or accepted is None or accepted > drafted:
        return {}
    return {"drafted": drafted, "accepted": accepted, "rejected": drafted - accepted}


IMPORTER = Importer(
    name="tensorrt_llm_requests",
    doc="Finished requests of a TensorRT-LLM server, by its /perf_metrics or the files it writes: times and drafts.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
