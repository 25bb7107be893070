"""One HTTP call of a model server as its client saw it: request, answer, and when each of its bytes came.

    {"request": {"method": "POST", "path": "/v1/completions", "headers": {"X-Request-Id": "r-1"}, "body": {...}},
     "response": {"status": 200, "headers": {...}, "body": {...}, "events": null},
     "client": {"t_start_unix": 1795970133.7304, "first_byte_ms": 90.3, "end_ms": 90.9, "aborted": false}}

Of a stream `events` holds what was read: [{"ms": 12.6, "data": {...}}, ...]. Usage and parameters are taken out as of
every recorded answer; beyond them a client knows who went away, and how many ids of tokens came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from weighbridge.pipeline.ingest.answers import calls
from weighbridge.pipeline.ingest.frameworks import framework_of
from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.ingest.paths import api_at
from weighbridge.pipeline.ingest.record_fields import at, epoch_time, id_of, refused_time
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.schemas.enumerations import AttemptStatus, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

REQUEST_ID = "x-request-id"
_MICRO = 1_000_000
_LONGEST_MS = 10**9  # eleven days
_DONE = "[DONE]"
Record = Mapping[str, object]


def is_call(record: Record) -> bool:
    """Whether a record is of this form: a request with a path, an answer, and the client's times."""
    return isinstance(at(record, "request", "path"), str) and {"response", "client"} <= record.keys()


def call_of(record: Record, source: Source) -> Call | list[Refusal] | None:
    """The call of one record; null where its path is that of no API of a model.

    Args:
        record: see `is_call`.
        source: the file; its provider is who answers.

    Returns:
        The call, or why its time cannot be read.
    """
    api = api_at(at(record, "request", "path"))
    if api is None:
        return None
    told = at(record, "client", "t_start_unix")
    began = microseconds(told)
    created = None if began is None else epoch_time(began, _MICRO)
    if refused := refused_time(told, created):
        return refused
    (call,) = calls(_as_answer(record, api, source), source.key, provider=source.provider, model=source.model)
    notes = list(call.notes)
    request_id = id_of(header(record, REQUEST_ID), notes)
    ids = _ids(request_id, began, call)
    attempt = {**call.attempt, **_seen(record, api, call), "framework": framework_of(source.provider)}
    return call._replace(attempt=attempt, ids=ids, notes=tuple(dict.fromkeys(notes)), created=created, request=None)


def header(record: Record, name: str) -> object:
    """A header of the request, whatever the case of its name."""
    headers = at(record, "request", "headers")
    if not isinstance(headers, Mapping):
        return None
    return next((value for key, value in headers.items() if isinstance(key, str) and key.lower() == name), None)


def microseconds(seconds: object) -> int | None:
    """Seconds since 1970, with a fraction or without, as whole microseconds; null where they are no number."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | Decimal):
        return None
    number = Decimal(seconds)
    if not number.is_finite() or not 0 <= number < 10**11:
        return None
    return int(number * _MICRO)


def duration(milliseconds: object) -> int | None:
    """Milliseconds as whole microseconds; null where they are no duration of a call."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | Decimal):
        return None
    number = Decimal(milliseconds)
    if not number.is_finite() or not 0 <= number < _LONGEST_MS:
        return None
    return int(number * 1000)


def named(identifier: str, began: int | None) -> str:
    """What names a call of a source that uses one identifier for several: the identifier and when it began."""
    return identifier if began is None else f"{identifier}@{began}"


def delivered_ids(answer: object) -> int | None:
    """How many ids of output tokens an answer carries, over all its choices; null where it carries none at all."""
    found = None
    for part in answer if isinstance(answer, list) else [answer]:
        for choice in _choices(part):
            ids = choice.get("token_ids") if isinstance(choice, Mapping) else None
            if isinstance(ids, list):
                found = (found or 0) + len(ids)
    return found


def choices_in(answer: object) -> int | None:
    """How many choices an answer has; null where it speaks of none."""
    found = {
        choice.get("index", place)
        for part in (answer if isinstance(answer, list) else [answer])
        for place, choice in enumerate(_choices(part))
        if isinstance(choice, Mapping) and isinstance(choice.get("index", place), int)
    }
    return len(found) or None


def _choices(part: object) -> Sequence[object]:
    held = part.get("choices") if isinstance(part, Mapping) else None
    return held if isinstance(held, list) else ()


def answer_of(record: Record) -> object:
    """What was answered: the body, or what stood in the events of a stream."""
    events = at(record, "response", "events")
    if isinstance(events, list):
        return [_data(event) for event in events if isinstance(event, Mapping)]
    return at(record, "response", "body")


def _data(event: Mapping[str, object]) -> object:
    return event.get("data") if "data" in event else event


def _as_answer(record: Record, api: str, source: Source) -> dict[str, object]:
    """The record in the words of a recorded answer."""
    body = at(record, "request", "body")
    answer = answer_of(record)
    return {
        "provider": source.provider,
        "api_flavor": api,
        "model": at(body, "model"),
        "stream": at(body, "stream") is True,
        "status": at(record, "response", "status"),
        "request": body,
        "response": answer if isinstance(answer, list | Mapping) else {},
        "meta_headers": at(record, "response", "headers"),
    }


def _ids(request_id: str | None, began: int | None, call: Call) -> dict[ForeignIdKind, str]:
    """A client may use one id for several calls, and the server makes the answer's id of it: its begin tells more."""
    answer = call.ids.get(ForeignIdKind.PROVIDER_RESPONSE_ID)
    found: dict[ForeignIdKind, str] = {}
    first = request_id or answer
    if first is not None:
        found[ForeignIdKind.RECORD_ID] = named(first, began)
    if answer is not None:
        found[ForeignIdKind.PROVIDER_RESPONSE_ID] = answer
    if request_id is not None:
        found[ForeignIdKind.CLIENT_REQUEST_ID] = request_id
    return found


def _seen(record: Record, api: str, call: Call) -> dict[str, object]:
    """What only who made the call knows."""
    body, answer = at(record, "request", "body"), answer_of(record)
    seen: dict[str, object] = {
        "total_us": duration(at(record, "client", "end_ms")),
        "prompt_scored": _scores_prompt(body),
    }
    if call.attempt.get("stream"):
        seen["first_token_us"] = duration(at(record, "client", "first_byte_ms"))
    if at(body, "use_beam_search") is True:
        seen["beams"] = call.attempt.get("n") or 1
    if at(record, "client", "aborted") is True:
        # What was left early has told what it was going to tell; whether usage would have come nobody knows.
        seen |= {"status": str(AttemptStatus.ABORTED), "usage_expected": None}
    elif at(record, "response", "status") is None:
        seen |= {"status": str(AttemptStatus.FAILED), "usage_expected": False}
    if api in ("openai_chat", "openai_completions"):
        seen["output_delivered"] = delivered_ids(answer)
    return seen


def _scores_prompt(body: object) -> bool | None:
    """Whether log probabilities of the prompt's tokens were asked for; null where the request is not known."""
    if not isinstance(body, Mapping):
        return None
    return body.get("prompt_logprobs") is not None or (body.get("echo") is True and bool(body.get("logprobs")))


def unreadable(reason: QuarantineReason | None) -> list[Refusal]:
    """The refusal of a line that is no object."""
    return [Refusal("", reason or QuarantineReason.NOT_JSON)]
