"""Langfuse observations, as its batch export, its API and its blob storage export write them: JSON, JSON Lines or CSV.

    {"id": "1cff...", "traceId": "0801...", "parentObservationId": null, "type": "GENERATION", "model": "gpt-4o-mini",
     "startTime": "2025-06-11T14:01:34.290Z", "usageDetails": {"input": 663, "output": 225, "total": 888},
     "costDetails": {"total": 0.00023}, "level": "DEFAULT"}

Of a trace, the innermost observations that carry usage are calls; those around them only repeat it and are counted as
duplicates. A generation without usage is a call that reported nothing. Spans and events that say nothing of tokens are
no records of calls. Inputs, outputs, metadata, names and users are read past, but for the provider in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from weighbridge.pipeline.ingest.dialect import Role
from weighbridge.pipeline.ingest.dialects._langfuse import ROLES
from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL
from weighbridge.pipeline.ingest.gateway_paths import LANGFUSE_CALCULATED, LANGFUSE_COSTS
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.log_calls import LogCalls
from weighbridge.pipeline.ingest.log_files import LogFormat, first, joined, leaves_of, microseconds, part_of
from weighbridge.pipeline.ingest.log_leaves import named_leaves
from weighbridge.pipeline.ingest.log_totals import summed_apart
from weighbridge.pipeline.ingest.parameters import parameters, tier_requested
from weighbridge.pipeline.ingest.record_fields import at, id_of, iso_time, name_of, refused_time
from weighbridge.pipeline.ingest.span_tree import Place, Span, places
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Flattened, Refusal

SOURCE = "langfuse"
# Our name for a field = how the API and the batch export call it, how the blob storage export does.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    "trace": ("traceId", "trace_id"),
    "parent": ("parentObservationId", "parent_observation_id"),
    "type": ("type",),
    "model": ("model", "provided_model_name"),
    "start": ("startTime", "start_time"),
    "end": ("endTime", "end_time"),
    "first": ("completionStartTime", "completion_start_time"),
    "level": ("level",),
    "usage": ("usageDetails", "usage_details"),
    "provided": ("providedUsageDetails", "provided_usage_details"),
    "cost": ("costDetails", "cost_details"),
    "older": ("usage",),
    "parameters": ("modelParameters", "model_parameters"),
    "metadata": ("metadata",),
}
_OLDEST = ("promptTokens", "completionTokens", "totalTokens")
_OBJECTS = ("usage", "provided", "cost", "older", "parameters", "metadata")
FORMAT = LogFormat(
    fields=frozenset(name for names in _FIELDS.values() for name in names) | set(_OLDEST) | set(LANGFUSE_CALCULATED),
    numbers=frozenset(_OLDEST) | set(LANGFUSE_CALCULATED),
    objects=frozenset(name for field in _OBJECTS for name in _FIELDS[field]),
    lists=("data", "observations"),
    marks=(
        frozenset({"id", "traceId", "parentObservationId", "type"}),
        frozenset({"id", "trace_id", "parent_observation_id", "type", "usage_details"}),
    ),
    what="Langfuse's observations",
)
# Observations that are calls by their own word, and where their metadata may name the provider.
_CALLS = ("GENERATION", "EMBEDDING")
_PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "ls_provider", "llm.provider")
_NAMES = tuple(name for name in ROLES if name != SUMMED_TOTAL)
# The dialect of a record, by whether it tells types of cached tokens and whether it tells one of reasoning.
_APIS = {
    (True, True): "langfuse",
    (True, False): "langfuse_input_types",
    (False, True): "langfuse_output_types",
    (False, False): "langfuse_totals",
}
_CACHE = frozenset({Role.CACHE_READ, Role.CACHE_WRITE, Role.CACHE_WRITE_5M, Role.CACHE_WRITE_1H})
# What a log adds up for a total of its own: every type of usage.
_PARTS = frozenset(_NAMES) - {"total", "totalTokens"}
_OLDEST_PATHS = tuple((name, f"observation.{name}") for name in _OLDEST)
_CALCULATED = tuple((name, f"observation.{name}") for name in LANGFUSE_CALCULATED)
_TOKENS = (None, "", "TOKENS")


def _usage(row: Mapping[str, object], key: bytes) -> Flattened:
    """What was told about tokens, in the newest words the row has: by type, else the three counts of older releases.

    A unit other than tokens counts something else. Where the row says that the emitter provided nothing, the counts
    are Langfuse's own and no report of anybody's.
    """
    provided, usage = first(row, _FIELDS["provided"]), first(row, _FIELDS["usage"])
    if provided is not None and not provided:
        return Flattened()
    if usage:
        # What was provided is in there, and the total with it where there was none.
        leaves = leaves_of("usageDetails", usage, _NAMES, key)
        return summed_apart(leaves, ("usageDetails.",), "total", ("input", "output"), _PARTS)
    older = first(row, _FIELDS["older"])
    if isinstance(older, Mapping) and older.get("unit") in _TOKENS and any(older.get(n) for n in ("input", "output")):
        return named_leaves({f"usage.{name}": older.get(name) for name in ("input", "output", "total")})
    oldest = named_leaves({path: row.get(name) for name, path in _OLDEST_PATHS})
    return oldest if oldest.refusals or any(leaf.integer for leaf in oldest.leaves) else Flattened()


def _charged(row: Mapping[str, object]) -> Flattened:
    costs = first(row, _FIELDS["cost"])
    # Some types have a dot in their name.
    told = {LANGFUSE_COSTS[name]: cost for name, cost in _items(costs) if name in LANGFUSE_COSTS}
    return named_leaves(told | {path: row[name] for name, path in _CALCULATED if name in row})


def _items(costs: object) -> Iterable[tuple[str, object]]:
    return costs.items() if isinstance(costs, dict) else ()


def _span(row: Mapping[str, object], usage: Flattened) -> Span:
    """A row as a span, its counts in words that all rows share."""
    told = {leaf.path.partition(".")[2]: leaf.integer for leaf in usage.leaves if leaf.integer is not None}
    shared = {str(ROLES[name]): count for name, count in told.items() if name in ROLES}
    ids = (first(row, _FIELDS[name]) for name in ("trace", "id", "parent"))
    trace, own, parent = (value if isinstance(value, str) else None for value in ids)
    return Span(trace, own, parent, shared or None)


def call_of(row: Mapping[str, object], usage: Flattened, source: Source) -> Call:
    """What an observation tells about its call."""
    notes: list[str] = []
    told = first(row, _FIELDS["start"])
    started, ended = iso_time(told), iso_time(first(row, _FIELDS["end"]))
    leaves = joined(usage, _charged(row)) if usage.leaves or usage.refusals else Flattened()
    leaves.refusals.extend(refused_time(told, started))
    failed = row.get("level") == "ERROR"
    status = AttemptStatus.FAILED if failed else AttemptStatus.UNKNOWN
    if not failed and usage.leaves and ended is not None:
        status = AttemptStatus.SUCCEEDED
    model = name_of(first(row, _FIELDS["model"]), notes) or source.model
    attempt: dict[str, object] = {
        "provider": source.provider or _provider(row, notes),
        "api": _api(usage),
        "model_served": model,
        "status": str(status),
        "usage_expected": False if failed else None,
        "first_token_us": microseconds(started, iso_time(first(row, _FIELDS["first"]))),
        "total_us": microseconds(started, ended),
        **parameters(first(row, _FIELDS["parameters"])),
        "tier_requested": tier_requested(first(row, _FIELDS["parameters"])),
    }
    end = Ended.ERROR if failed else Ended.COMPLETE if ended is not None else Ended.UNKNOWN
    return Call(attempt, part_of(leaves, end), _ids(row, notes), tuple(dict.fromkeys(notes)), model, started)


def _api(usage: Flattened) -> str:
    roles = {ROLES.get(leaf.path.partition(".")[2]) for leaf in usage.leaves}
    return _APIS[bool(roles & _CACHE), Role.REASONING in roles]


def _provider(row: Mapping[str, object], notes: list[str]) -> str | None:
    metadata = first(row, _FIELDS["metadata"])
    for holder in (metadata, at(metadata, "attributes")):
        for name in _PROVIDERS:
            if isinstance(holder, Mapping) and isinstance(holder.get(name), str):
                return name_of(holder[name], notes)
    return None


def _ids(row: Mapping[str, object], notes: list[str]) -> dict[ForeignIdKind, str]:
    """What names an observation: its id within its trace. One that is a span of OpenTelemetry is known as that too."""
    own, trace = id_of(first(row, _FIELDS["id"]), notes), id_of(first(row, _FIELDS["trace"]), notes)
    found: dict[ForeignIdKind, str] = {}
    if own is not None:
        named = own if trace is None else f"{trace}/{own}"
        if id_of(named, notes):
            found[ForeignIdKind.RECORD_ID] = named
        if len(own) == 16 and not set(own) - set("0123456789abcdef"):
            found[ForeignIdKind.SPAN_ID] = own
    if trace is not None:
        found[ForeignIdKind.TRACE_ID] = trace
    return found


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    spans = [_span(row, _usage(row, source.key)) for row in _rows(source)]
    around = {(span.trace, span.parent) for span in spans if span.parent is not None}
    calls = LogCalls(stage)
    records = 0
    stands = iter(zip(spans, places(spans), strict=True))
    for line in FORMAT.records(source.path):
        if line.value is None or not FORMAT.marked(line.value):
            missing = [Refusal("id" if line.value else "", line.reason or QuarantineReason.MISSING_FIELD)]
            stage.refuse(line.number, missing)
            records += 1
            continue
        span, place = next(stands)
        usage = _usage(line.value, source.key)
        holds_others = (span.trace, span.id) in around
        silent = place is Place.SILENT and (line.value.get("type") not in _CALLS or holds_others)
        if silent and not usage.refusals:
            continue
        records += 1
        if place in {Place.REPEATS, Place.DIFFERS}:
            stage.repeat()
        else:
            calls.add(line.number, call_of(line.value, usage, source), line.value)
    return stage.staged(records)


def _rows(source: Source) -> Iterator[Mapping[str, object]]:
    """The observations of a file."""
    for line in FORMAT.records(source.path):
        if line.value is not None and FORMAT.marked(line.value):
            yield line.value


IMPORTER = Importer(
    name="langfuse",
    doc="Langfuse observations as JSON, JSON Lines or CSV: usage and cost of each generation, once; no text.",
    recognises=FORMAT.recognises,
    check=FORMAT.check,
    read=_read,
)
