"""One recorded answer, taken apart: what the record says about each call, and nothing of what was said in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeGuard

from weighbridge.pipeline.ingest.call_days import FIRST_S, LAST_S
from weighbridge.pipeline.ingest.dialect import Role
from weighbridge.pipeline.ingest.dialects import spoken
from weighbridge.pipeline.ingest.finish import attempt_status, finish_reason
from weighbridge.pipeline.ingest.headers import flatten_headers
from weighbridge.pipeline.ingest.parameters import asks_for_usage, parameters, tier_requested
from weighbridge.pipeline.ingest.parts import Part, calls_of, parts_of
from weighbridge.pipeline.ingest.recorded import server_name
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.schemas.enumerations import Ended, ForeignIdKind, ReportPart
from weighbridge.schemas.identity import IDENTIFIER, NAME

NAME_DROPPED, ID_DROPPED = "name_dropped", "identifier_dropped"
_ID_PATHS = (("id",), ("response", "id"), ("message", "id"), ("responseId",), ("response_id",))
# Providers that send usage in a chat stream only where it is asked for.
_ONLY_WHEN_ASKED = frozenset({"openai", "azure"})


def is_answer(record: Mapping[str, object]) -> bool:
    """Whether a record is of this form at all: it says who answered, and has an answer, events or usage."""
    return record.get("provider") is not None and any(name in record for name in ("response", "events", "usage"))


def calls(record: Mapping[str, object], key: bytes, *, provider: str | None, model: str | None) -> list[Call]:
    """The calls of one record, one as a rule.

    Args:
        record: see `is_answer`.
        key: the installation's pseudonym key, which names unknown usage keys.
        provider, model: stand in where the record does not say.
    """
    dropped: list[str] = []
    api = _name(record.get("api_flavor", record.get("api")), dropped)
    answers = _answers(record, api or "")
    return [
        _call(record, answer, api, key, (provider, model), dropped, None if len(answers) == 1 else index)
        for index, answer in enumerate(answers)
    ]


def _answers(record: Mapping[str, object], api: str) -> list[object]:
    """What was answered, per call: a body, or a list of events."""
    answer = record.get("events") if record.get("response") is None else record["response"]
    several = record.get("calls_in_record")
    if isinstance(answer, list) and isinstance(several, int) and several > 1:
        return list(calls_of(api, answer))
    return [answer]


def _call(
    record: Mapping[str, object],
    answer: object,
    api: str | None,
    key: bytes,
    standing: tuple[str | None, str | None],
    dropped: Sequence[str],
    index: int | None,
) -> Call:
    notes = list(dropped)
    provider = _name(record.get("provider"), notes) or standing[0]
    asked = _name(record.get("model"), notes) or standing[1]
    served = _name(record.get("response_model"), notes)
    parts = _parts(record, answer, api or "", key)
    ended = parts[0].ended
    status = record.get("status")
    http = status if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 999 else None
    streamed = record.get("stream")
    request = record.get("request")
    stream = streamed if isinstance(streamed, bool) else isinstance(answer, list)
    attempt: dict[str, object] = {
        "provider": provider,
        "api": api,
        "model_requested": asked,
        "model_served": served,
        "stream": stream,
        "http_status": http,
        "status": str(attempt_status(http, ended, closing_known=spoken(api or "") is not None)),
        "finish_reason": finish_reason(answer if isinstance(answer, list) else [answer]),
        "usage_expected": _usage_expected(provider, api or "", request, ended, http, stream=stream),
        "tier_requested": tier_requested(request),
        **parameters(request),
    }
    ids = _ids(record, answer, index, notes)
    told = [part for part in parts if part.flattened.leaves or part.flattened.refusals]
    created = _created(answer)
    request = ids.get(ForeignIdKind.CLIENT_REQUEST_ID)
    return Call(attempt, told, ids, tuple(dict.fromkeys(notes)), served or asked, created, request=request)


def _name(value: object, notes: list[str]) -> str | None:
    """A name, or null where there is none or it is no name; that one was left out is noted."""
    if value is None or value == "":
        return None
    shown = server_name(value) if isinstance(value, str) else ""
    if NAME.fullmatch(shown):
        return shown
    notes.append(NAME_DROPPED)
    return None


def _parts(record: Mapping[str, object], answer: object, api: str, key: bytes) -> list[Part]:
    """The parts of an answer, those of its headers last. An answer that is no JSON object has none."""
    if answer is None and record.get("usage") is not None:
        parts = parts_of(api, usage=record["usage"], key=key)
    elif isinstance(answer, Mapping | list):
        parts = parts_of(api, response=answer, key=key)
    else:
        parts = parts_of(api, response={}, key=key, ended=Ended.UNKNOWN)
    headers = flatten_headers(record.get("meta_headers"))
    if headers.leaves or headers.refusals:
        parts = [*parts, Part(ReportPart.HEADER, headers, parts[0].ended)]
    return parts


def _ids(record: Mapping[str, object], answer: object, index: int | None, notes: list[str]) -> dict[ForeignIdKind, str]:
    """The identifiers of a call. Of a record with several calls, each is named by its place in the record."""
    of_record = record.get("id")
    of_answer = _response_id(answer)
    if of_answer is None and index is None:
        of_answer = record.get("response_id")
    found: dict[ForeignIdKind, str] = {}
    told = (
        (ForeignIdKind.RECORD_ID, of_record),
        (ForeignIdKind.PROVIDER_RESPONSE_ID, of_answer),
        (ForeignIdKind.CLIENT_REQUEST_ID, record.get("request_id")),
    )
    for kind, value in told:
        shown = f"{value}/{index}" if kind is ForeignIdKind.RECORD_ID and index is not None else value
        if isinstance(shown, str) and isinstance(value, str) and IDENTIFIER.fullmatch(shown):
            found[kind] = shown
        elif value is not None and value != "":
            notes.append(ID_DROPPED)
    return found


def _response_id(answer: object) -> object:
    """The id an answer gives itself: of a stream, that of the first event which has one."""
    for event in answer if isinstance(answer, list) else [answer]:
        for path in _ID_PATHS:
            at: object = event
            for step in path:
                at = at.get(step) if isinstance(at, Mapping) else None
            if at:
                return at
    return None


def _created(answer: object) -> datetime | None:
    """When an answer says it was made: whole seconds since 1970, of the first event that says so."""
    for event in answer if isinstance(answer, list) else [answer]:
        inner = event.get("response") if isinstance(event, Mapping) else None
        for place in (event, inner):
            for name in ("created", "created_at"):
                value = place.get(name) if isinstance(place, Mapping) else None
                if _is_second(value):
                    return datetime.fromtimestamp(int(value), UTC)
    return None


def _is_second(value: object) -> TypeGuard[int | Decimal]:
    """Whether a value is a whole second a call can be of. The range comes first: 1E+999999999 cannot be written out."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    if isinstance(value, Decimal) and not value.is_finite():
        return False
    return FIRST_S <= value < LAST_S and value == int(value)


def _usage_expected(
    provider: str | None, api: str, request: object, ended: Ended, http: int | None, *, stream: bool
) -> bool | None:
    """Whether a usage report should exist; null where it cannot be told."""
    dialect = spoken(api)
    if http is not None and http >= 400:
        return False
    if dialect is not None and Role.WOULD_BE_INPUT in dialect.roles.values():
        return False  # a prompt was counted, nothing was served
    if dialect is None or http is None or ended is not Ended.COMPLETE:
        return None
    if not stream or dialect.name != "openai_chat" or asks_for_usage(request):
        return True
    return False if provider in _ONLY_WHEN_ASKED else None
