"""LiteLLM's SpendLogs: rows of the proxy's table, as exported in JSON, JSON Lines or CSV, or pulled from its database.

    {"request_id": "chatcmpl-1", "call_type": "acompletion", "spend": 0.00105, "prompt_tokens": 2600, ...,
     "startTime": "2026-01-15T10:30:00.123Z", "model": "gpt-4o", "custom_llm_provider": "openai", "team_id": ...,
     "metadata": {"usage_object": {...}, "cost_breakdown": {...}}, "status": "success"}

A row is one call the proxy made; tries of one request share `litellm_call_id`. What it charged is kept as evidence.
Messages, answers, users, addresses and keys are read past. The team, else the alias of the key, becomes the pseudonym
of the tenant. The proxy writes 0 where a call reported nothing, so a row of zeros alone is no usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from weighbridge.pipeline.ingest.dialects import litellm as dialect
from weighbridge.pipeline.ingest.finish import attempt_status
from weighbridge.pipeline.ingest.gateway_paths import LITELLM_PARTS, LITELLM_SPEND
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.log_calls import LogCalls
from weighbridge.pipeline.ingest.log_files import LogFormat, joined, leaves_of, microseconds, object_of, part_of
from weighbridge.pipeline.ingest.log_leaves import named_leaves
from weighbridge.pipeline.ingest.log_totals import summed_apart
from weighbridge.pipeline.ingest.record_fields import (
    at,
    epoch_time,
    http_status,
    id_of,
    iso_time,
    name_of,
    refused_time,
    small_number,
)
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Flattened, Refusal

SOURCE = "litellm"
# What an attempt is called that no provider answered: the proxy had the answer in its own cache.
OWN_CACHE = "litellm"
# Fields of `metadata` that are looked at.
METADATA = (
    "usage_object",
    "additional_usage_values",
    "cost_breakdown",
    "user_api_key_team_id",
    "user_api_key_alias",
    "litellm_call_id",
    "attempted_retries",
    "status",
    "error_information",
)
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
COLUMNS = (
    "request_id",
    "call_type",
    "spend",
    *_COUNTS,
    "startTime",
    "endTime",
    "completionStartTime",
    "model",
    "model_group",
    "custom_llm_provider",
    "cache_hit",
    "team_id",
    "status",
    "litellm_call_id",
    "metadata",
)
FORMAT = LogFormat(
    fields=frozenset(COLUMNS),
    numbers=frozenset({"spend", *_COUNTS}),
    objects=frozenset({"metadata"}),
    lists=("data", "logs"),
    marks=(frozenset({"request_id", "startTime", "spend", "call_type"}),),
    what="LiteLLM's SpendLogs",
)
# Our names for LiteLLM's providers, where they differ.
_PROVIDERS = {"vertex_ai": "vertex", "vertex_ai_beta": "vertex", "gemini": "google", "together_ai": "together"}
_PROVIDERS |= {"fireworks_ai": "fireworks", "text-completion-openai": "openai", "azure_text": "azure"}
# Calls that end in tokens whenever they succeed.
_GENERATING = frozenset(
    f"{also}{name}" for name in ("completion", "text_completion", "responses", "generate_content") for also in ("", "a")
) | {"anthropic_messages"}
_TALLY = 10_000
_COLUMN_PATHS = tuple((name, f"spend_log.{name}") for name in _COUNTS)
_PART_PATHS = tuple((name, f"cost_breakdown.{name}") for name in LITELLM_PARTS)
_ENDS = {AttemptStatus.SUCCEEDED: Ended.COMPLETE, AttemptStatus.UNKNOWN: Ended.UNKNOWN}
# The first line of rows that were pulled from a database says which rows they are; it is no row.
PULLED = "pulled"


def call_of(row: Mapping[str, object], source: Source) -> Call:
    """What a row tells about its call."""
    notes: list[str] = []
    metadata = object_of(row.get("metadata"))
    started, refused = _time(row, "startTime")
    ended, _ = _time(row, "endTime")
    first, _ = _time(row, "completionStartTime")
    cached = _from_own_cache(row)
    leaves = Flattened() if cached else _leaves(row, metadata, source.key)
    leaves.refusals.extend(refused)
    status = _status(row, metadata)
    provider = name_of(row.get("custom_llm_provider"), notes)
    provider = OWN_CACHE if cached else source.provider or _PROVIDERS.get(provider or "", provider)
    served = name_of(_plain(row.get("model"), row.get("custom_llm_provider")), notes) or source.model
    attempt: dict[str, object] = {
        "provider": provider,
        "api": dialect.DIALECT.name,
        "model_requested": name_of(row.get("model_group"), notes),
        "model_served": served,
        "status": str(status),
        "http_status": _error_code(metadata),
        "usage_expected": None if cached else _usage_expected(row, status),
        "attempt_number": _attempt_number(metadata),
        "first_token_us": microseconds(started, first) if first != ended else None,
        "total_us": microseconds(started, ended),
    }
    end = _ENDS.get(status, Ended.ERROR)
    call_id = id_of(row.get("litellm_call_id") or at(metadata, "litellm_call_id"), notes)
    return Call(
        attempt,
        part_of(leaves, end),
        _ids(row, started, call_id, notes),
        tuple(dict.fromkeys(notes)),
        served,
        started,
        tenant=_tenant(row, metadata),
        request=call_id,
    )


def _time(row: Mapping[str, object], name: str) -> tuple[datetime | None, Sequence[Refusal]]:
    """A time of the table, which has no zone and is in UTC; some exports write it as epoch milliseconds."""
    told = row.get(name)
    found = iso_time(told.strip().removesuffix(" UTC") if isinstance(told, str) else told) or epoch_time(told, 1000)
    return found, refused_time(told, found)


def _leaves(row: Mapping[str, object], metadata: object, key: bytes) -> Flattened:
    usage = at(metadata, "usage_object")
    # Releases without a usage object have what is beside the three counts here.
    usage = at(metadata, "additional_usage_values") if usage is None else usage
    told = leaves_of("usage", usage, dialect.COUNTED, key)
    columns = named_leaves({path: row.get(name) for name, path in _COLUMN_PATHS})
    if not columns.refusals and not any(leaf.integer for leaf in (*columns.leaves, *told.leaves)):
        told, columns = Flattened(refusals=told.refusals), Flattened()
    breakdown = at(metadata, "cost_breakdown")
    parts = {path: breakdown.get(name) for name, path in _PART_PATHS} if isinstance(breakdown, dict) else {}
    charged = named_leaves({LITELLM_SPEND: row.get("spend"), **parts})
    if not told.leaves and not columns.leaves and not _charges(charged):
        charged = Flattened(refusals=charged.refusals)
    return summed_apart(joined(told, columns, charged), ("usage.", "spend_log."), "total_tokens", _COUNTS[:2])


def _charges(charged: Flattened) -> bool:
    """Whether anything but zeros was charged."""
    return any(leaf.integer or (leaf.text or "").strip("-0.") for leaf in charged.leaves)


def _from_own_cache(row: Mapping[str, object]) -> bool:
    """Whether the proxy answered from its own cache: nobody was called, and nothing was charged.

    The flag says nothing about the provider's cache.
    """
    if str(row.get("cache_hit")).lower() != "true":
        return False
    spend = named_leaves({LITELLM_SPEND: row.get("spend")})
    return not spend.refusals and not _charges(spend)


def _plain(model: object, provider: object) -> object:
    """The model without LiteLLM's provider before it."""
    if isinstance(model, str) and isinstance(provider, str) and provider:
        return model.removeprefix(f"{provider}/")
    return model


def _status(row: Mapping[str, object], metadata: object) -> AttemptStatus:
    told = row.get("status") or at(metadata, "status")
    if told == "success":
        return AttemptStatus.SUCCEEDED
    if told != "failure":
        return AttemptStatus.UNKNOWN
    return attempt_status(_error_code(metadata), Ended.ERROR, closing_known=True)


def _error_code(metadata: object) -> int | None:
    """The provider's HTTP status of a failed call; of a successful one nothing is written."""
    return http_status(at(metadata, "error_information", "error_code"))


def _usage_expected(row: Mapping[str, object], status: AttemptStatus) -> bool | None:
    if status in {AttemptStatus.FAILED, AttemptStatus.REJECTED}:
        return False
    generating = str(row.get("call_type")) in _GENERATING
    return True if generating and status is AttemptStatus.SUCCEEDED else None


def _attempt_number(metadata: object) -> int | None:
    """Which try of its request this was: one more than the tries before it."""
    before = small_number(at(metadata, "attempted_retries"))
    return before + 1 if before is not None and before < _TALLY else None


def _tenant(row: Mapping[str, object], metadata: object) -> str | None:
    told = (row.get("team_id"), at(metadata, "user_api_key_team_id"), at(metadata, "user_api_key_alias"))
    return next((name for name in told if isinstance(name, str) and name), None)


def _ids(
    row: Mapping[str, object], started: datetime | None, call_id: str | None, notes: list[str]
) -> dict[ForeignIdKind, str]:
    """What names a row. A provider may give two calls one response id, so the time of the call belongs to the name."""
    request = id_of(row.get("request_id"), notes)
    if request is None:
        return {}
    found = {}
    moment = "" if started is None else f"@{int(started.timestamp() * 1000)}"
    if id_of(request + moment, notes):
        found[ForeignIdKind.RECORD_ID] = request + moment
    # Where the provider named no answer, the proxy's own id of the call stands in; it names no answer of anybody's.
    if request not in {call_id, ""} and (row.get("status") == "success" or not row.get("status")):
        found[ForeignIdKind.PROVIDER_RESPONSE_ID] = request
    return found


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    calls = LogCalls(stage)
    for line in FORMAT.records(source.path):
        row = line.value
        if row is not None and PULLED in row:
            continue
        records += 1
        if row is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
        elif not FORMAT.marked(row) or not row.get("request_id"):
            stage.refuse(line.number, [Refusal("request_id", QuarantineReason.MISSING_FIELD)])
        else:
            calls.add(line.number, call_of(row, source), row)
    return stage.staged(records)


IMPORTER = Importer(
    name="litellm",
    doc="LiteLLM's SpendLogs as JSON, JSON Lines or CSV: counts and charges of each call; no message, user or key.",
    recognises=FORMAT.recognises,
    check=FORMAT.check,
    read=_read,
)
