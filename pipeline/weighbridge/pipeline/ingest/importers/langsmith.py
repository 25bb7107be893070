"""LangSmith runs, as its API and its exports write them: JSON or JSON Lines, flat or with the runs inside each other.

    {"id": "...", "trace_id": "...", "parent_run_id": "...", "run_type": "llm", "start_time": "2026-01-15T10:30:00",
     "status": "success", "extra": {"metadata": {"ls_provider": "openai", "ls_model_name": "gpt-4o"}},
     "outputs": {"usage_metadata": {"input_tokens": 1200, "output_tokens": 80, "input_token_details": {...}}}}

Only the innermost runs of a model are calls. LangSmith adds the tokens of the runs inside a chain up on the chain, so
whatever stands around a call repeats it. Inputs, outputs, tags, names and everything else in the metadata are read
past; of an answer its id and its usage are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weighbridge.pipeline.ingest.dialects import langsmith as dialect
from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL
from weighbridge.pipeline.ingest.gateway_paths import LANGSMITH_COSTS
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import Line
from weighbridge.pipeline.ingest.log_calls import LogCalls
from weighbridge.pipeline.ingest.log_files import LogFormat, joined, leaves_of, microseconds, part_of
from weighbridge.pipeline.ingest.log_leaves import named_leaves
from weighbridge.pipeline.ingest.log_totals import summed_apart
from weighbridge.pipeline.ingest.parameters import parameters, tier_requested
from weighbridge.pipeline.ingest.record_fields import at, id_of, iso_time, name_of, refused_time
from weighbridge.pipeline.ingest.span_tree import Place, Span, places
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Flattened, Refusal

SOURCE = "langsmith"
FORMAT = LogFormat(
    fields=frozenset(),
    numbers=frozenset(),
    objects=frozenset(),
    lists=("runs", "data"),
    marks=(frozenset({"id", "run_type", "trace_id"}), frozenset({"id", "run_type", "dotted_order"})),
    what="LangSmith's runs",
)
_CALLS = ("llm", "embedding")
_NAMES = tuple(name for name in dialect.DIALECT.roles if name != SUMMED_TOTAL)
_TOLD_NAMES = (*_NAMES, *LANGSMITH_COSTS)
_COST_PATHS = tuple((name, f"run.{name}") for name in LANGSMITH_COSTS)
_OF_RUN = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_token_details", "completion_token_details")
# Where a run keeps the usage of its answer, the surest first.
_PLACES = (
    ("outputs", "usage_metadata"),
    ("extra", "metadata", "usage_metadata"),
    ("outputs", "message", "usage_metadata"),
)
# Where a message that LangChain took apart keeps it.
_MESSAGES = (("message", "kwargs"), ("message", "data"), ("message",))
_STATUS = {"success": AttemptStatus.SUCCEEDED, "error": AttemptStatus.FAILED}


def _usage(run: Mapping[str, object], key: bytes) -> Flattened:
    """What the answer says about its tokens, else what the run says about them."""
    usage = _told(run)
    if usage is None:
        of_run = {name: run[name] for name in _OF_RUN if run.get(name) is not None}
        leaves = leaves_of("run", of_run, _NAMES, key)
        if not leaves.refusals and not any(leaf.integer for leaf in leaves.leaves):
            return Flattened()
        return summed_apart(leaves, ("run.",), "total_tokens", ("prompt_tokens", "completion_tokens"))
    leaves = leaves_of("usage_metadata", usage, _TOLD_NAMES, key)
    return summed_apart(leaves, ("usage_metadata.",), "total_tokens", ("input_tokens", "output_tokens"))


def _told(run: Mapping[str, object]) -> object:
    found = next((usage for place in _PLACES if (usage := at(run, *place)) is not None), None)
    if found is not None:
        return found
    for message in _generations(run):
        for holder in _MESSAGES:
            usage = at(message, *holder, "usage_metadata")
            if usage is not None:
                return usage
    return at(run, "outputs", "llm_output", "token_usage")


def _generations(run: Mapping[str, object]) -> Iterator[object]:
    """The answers of a run: LangChain keeps them in lists, one per prompt."""
    held = at(run, "outputs", "generations")
    for batch in held if isinstance(held, list) else []:
        yield from batch if isinstance(batch, list) else [batch]


def _span(run: Mapping[str, object], usage: Flattened) -> Span:
    counts = {leaf.path.partition(".")[2]: leaf.integer for leaf in usage.leaves if leaf.integer is not None}
    roles = {str(role): counts[name] for name, role in dialect.DIALECT.roles.items() if name in counts}
    # Ids of runs are unique everywhere, and what a chain sums up is no usage of its own.
    usage_of_its_own = (roles or None) if run.get("run_type") in _CALLS else None
    return Span(None, _text(run.get("id")), _text(run.get("parent_run_id")), usage_of_its_own)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def call_of(run: Mapping[str, object], usage: Flattened, source: Source) -> Call:
    """What a run of a model tells about its call."""
    notes: list[str] = []
    metadata = at(run, "extra", "metadata")
    told = run.get("start_time")
    started, ended = iso_time(told), iso_time(run.get("end_time"))
    costs = named_leaves({path: run.get(name) for name, path in _COST_PATHS})
    leaves = joined(usage, costs) if usage.leaves or usage.refusals else Flattened()
    leaves.refusals.extend(refused_time(told, started))
    status = _STATUS.get(str(run.get("status")), AttemptStatus.UNKNOWN)
    if run.get("status") is None and run.get("error"):
        status = AttemptStatus.FAILED
    model = name_of(at(metadata, "ls_model_name"), notes) or source.model
    attempt: dict[str, object] = {
        "provider": source.provider or name_of(at(metadata, "ls_provider"), notes),
        "api": dialect.DIALECT.name,
        "model_served": model,
        "status": str(status),
        "usage_expected": False if status is AttemptStatus.FAILED else None,
        "first_token_us": microseconds(started, iso_time(run.get("first_token_time"))),
        "total_us": microseconds(started, ended),
        **parameters(at(run, "extra", "invocation_params")),
        "tier_requested": tier_requested(at(run, "extra", "invocation_params")),
    }
    end = {AttemptStatus.SUCCEEDED: Ended.COMPLETE, AttemptStatus.FAILED: Ended.ERROR}.get(status, Ended.UNKNOWN)
    return Call(attempt, part_of(leaves, end), _ids(run, notes), tuple(dict.fromkeys(notes)), model, started)


def _ids(run: Mapping[str, object], notes: list[str]) -> dict[ForeignIdKind, str]:
    answers = [at(run, "outputs", "id")]
    answers += [at(m, *holder, "response_metadata", "id") for m in _generations(run) for holder in _MESSAGES]
    told = {
        ForeignIdKind.RECORD_ID: run.get("id"),
        ForeignIdKind.PROVIDER_RESPONSE_ID: next((answer for answer in answers if answer), None),
        ForeignIdKind.TRACE_ID: run.get("trace_id"),
    }
    return {kind: shown for kind, value in told.items() if (shown := id_of(value, notes)) is not None}


def _runs(source: Source) -> Iterator[Line]:
    """The runs of a file, those inside another one after it; then all are numbered on."""
    number, nested = 0, False
    for line in FORMAT.records(source.path):
        for run in _unfolded(line.value):
            nested = nested or run is not line.value
            yield Line(number if nested else line.number, run, line.reason)
            number += 1


def _unfolded(run: dict[str, object] | None) -> Iterator[dict[str, object] | None]:
    waiting = [run]
    while waiting:
        at_hand = waiting.pop()
        yield at_hand
        inside = at_hand.get("child_runs") if at_hand else None
        if isinstance(inside, list):
            waiting += [child for child in reversed(inside) if isinstance(child, dict)]


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    spans = [_span(run.value, _usage(run.value, source.key)) for run in _runs(source) if run.value is not None]
    around = {span.parent for span in spans if span.usage is not None}
    calls = LogCalls(stage)
    records = 0
    stands = iter(zip(spans, places(spans), strict=True))
    for line in _runs(source):
        run = line.value
        span, place = next(stands) if run is not None else (None, Place.SILENT)
        if run is None or span is None or not FORMAT.marked(run):
            records += 1
            stage.refuse(line.number, [Refusal("id" if run else "", line.reason or QuarantineReason.MISSING_FIELD)])
        elif place in {Place.REPEATS, Place.DIFFERS}:
            records += 1
            stage.repeat()
        elif run.get("run_type") in _CALLS and (place is Place.COUNTS or span.id not in around):
            records += 1
            content = {name: value for name, value in run.items() if name != "child_runs"}
            calls.add(line.number, call_of(run, _usage(run, source.key), source), content)
    return stage.staged(records)


IMPORTER = Importer(
    name="langsmith",
    doc="LangSmith runs as JSON or JSON Lines: the usage of each innermost run of a model; no input, output or tag.",
    recognises=FORMAT.recognises,
    check=FORMAT.check,
    read=_read,
)
