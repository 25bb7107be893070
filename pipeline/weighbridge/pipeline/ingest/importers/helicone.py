"""Helicone requests, as its API answers them and its export tool writes them: JSON, JSON Lines or CSV.

    {"request_id": "...", "response_id": "...", "request_created_at": "2026-01-15T10:30:00Z", "response_status": 200,
     "provider": "OPENAI", "model": "gpt-4o", "prompt_tokens": 200, "completion_tokens": 50,
     "prompt_cache_read_tokens": 1800, "prompt_cache_write_tokens": 0, "delay_ms": 900, "cost": 0.00325}

The API answers costs in dollars; the column of Helicone's own table counts billionths of them, and rows of that table
are told by their column `organization_id`. A count of -1 is Helicone's word for "not counted". A request that Helicone
answered from its own cache called nobody. Bodies, users, properties and paths are read past, but for the id in a body.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialects import helicone as dialect
from weighbridge.pipeline.ingest.finish import attempt_status
from weighbridge.pipeline.ingest.gateway_paths import HELICONE_BILLIONTHS, HELICONE_DOLLARS
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.log_calls import LogCalls
from weighbridge.pipeline.ingest.log_files import LogFormat, first, part_of
from weighbridge.pipeline.ingest.log_leaves import named_leaves
from weighbridge.pipeline.ingest.record_fields import (
    at,
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

SOURCE = "helicone"
OWN_CACHE = "helicone"
_COUNTS = tuple(dialect.DIALECT.roles)
_COUNT_PATHS = {name: f"request_response.{name}" for name in _COUNTS}
_ADDED = {"prompt_tokens", "completion_tokens"}
_TIMES = ("request_created_at", "response_created_at")
_STATUS = ("response_status", "status")
_MODELS = ("response_model", "model", "model_override", "request_model")
_COSTS = ("cost", "costUSD", "cost_usd")
_NO_REFERENCE = "00000000-0000-0000-0000-000000000000"
# What the API calls delay_ms is `latency` in the table itself, in milliseconds as well.
_OF_THE_TABLE = "latency"
FORMAT = LogFormat(
    fields=frozenset(
        {
            *("request_id", "response_id", "provider", "delay_ms", "time_to_first_token", "cache_reference_id"),
            *(_OF_THE_TABLE, "organization_id", *_TIMES, *_STATUS, *_MODELS, *_COUNTS, *_COSTS),
        }
    ),
    numbers=frozenset({*_COUNTS, *_COSTS}),
    objects=frozenset(),
    lists=("data",),
    marks=(
        frozenset({"response_id", "request_created_at", "prompt_tokens", "completion_tokens"}),
        frozenset({"request_id", "request_created_at", "prompt_tokens", "completion_tokens"}),
    ),
    what="Helicone's requests",
)
# Our names for Helicone's providers, where they differ.
_PROVIDERS = {"togetherai": "together", "google_vertex": "vertex", "google_ai_studio": "google", "aws": "bedrock"}


def call_of(row: Mapping[str, object], source: Source) -> Call:
    """What a row tells about its call."""
    notes: list[str] = []
    told = first(row, _TIMES)
    created = iso_time(told.removesuffix(" UTC") if isinstance(told, str) else told)
    cached = row.get("cache_reference_id") not in (None, "", _NO_REFERENCE)
    leaves = Flattened() if cached else _leaves(row)
    leaves.refusals.extend(refused_time(told, created))
    http = http_status(first(row, _STATUS))
    ended = Ended.UNKNOWN if http is None else Ended.ERROR if http >= 400 else Ended.COMPLETE
    status = attempt_status(http, ended, closing_known=True)
    model = name_of(first(row, _MODELS), notes) or source.model
    attempt: dict[str, object] = {
        "provider": OWN_CACHE if cached else source.provider or _provider(row, notes),
        "api": dialect.DIALECT.name,
        "model_requested": name_of(row.get("request_model"), notes),
        "model_served": model,
        "status": str(status),
        "http_status": http,
        "usage_expected": False if status in {AttemptStatus.FAILED, AttemptStatus.REJECTED} else None,
        "first_token_us": _thousandfold(row.get("time_to_first_token")),
        "total_us": _thousandfold(first(row, ("delay_ms", _OF_THE_TABLE))),
    }
    return Call(attempt, part_of(leaves, ended), _ids(row, notes), tuple(dict.fromkeys(notes)), model, created)


def _leaves(row: Mapping[str, object]) -> Flattened:
    """The counts and the charge; a row that counted nothing has neither."""
    counts = {name: told for name in _COUNTS if (told := row.get(name)) != -1}
    if _ADDED - counts.keys():
        counts.pop("total_tokens", None)  # added up with a -1 in it
    found = named_leaves({_COUNT_PATHS[name]: value for name, value in counts.items()})
    if not found.refusals and not any(leaf.integer for leaf in found.leaves):
        return Flattened()
    dollars = HELICONE_BILLIONTHS if is_of_the_table(row) else HELICONE_DOLLARS
    charged = named_leaves({dollars: first(row, _COSTS)})
    return Flattened(
        sorted([*found.leaves, *charged.leaves], key=lambda leaf: leaf.path),
        sorted([*found.refusals, *charged.refusals]),
        charged.dropped_strings,
        found.integral_floats,
    )


def is_of_the_table(row: Mapping[str, object]) -> bool:
    """Whether a row is one of Helicone's own table: its costs are counted in billionths of a dollar."""
    return "organization_id" in row and "delay_ms" not in row


def _provider(row: Mapping[str, object], notes: list[str]) -> str | None:
    told = name_of(row.get("provider"), notes)
    return None if told is None else _PROVIDERS.get(told.lower(), told.lower())


def _thousandfold(value: object) -> int | None:
    """Milliseconds as microseconds."""
    number = small_number(value)
    return None if number is None else number * 1000


def _ids(row: Mapping[str, object], notes: list[str]) -> dict[ForeignIdKind, str]:
    """What names a request. The export tool's CSV has the id of the response only, so that one goes first."""
    told = {
        ForeignIdKind.RECORD_ID: first(row, ("response_id", "request_id")),
        ForeignIdKind.PROVIDER_RESPONSE_ID: at(row, "response_body", "id"),
        ForeignIdKind.CLIENT_REQUEST_ID: row.get("request_id"),
    }
    return {kind: shown for kind, value in told.items() if (shown := id_of(value, notes)) is not None}


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    calls = LogCalls(stage)
    records = 0
    for line in FORMAT.records(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
        elif not FORMAT.marked(line.value):
            stage.refuse(line.number, [Refusal("request_id", QuarantineReason.MISSING_FIELD)])
        else:
            calls.add(line.number, call_of(line.value, source), line.value)
    return stage.staged(records)


IMPORTER = Importer(
    name="helicone",
    doc="Helicone requests as JSON, JSON Lines or CSV: counts and cost of each request; no body, user or property.",
    recognises=FORMAT.recognises,
    check=FORMAT.check,
    read=_read,
)
