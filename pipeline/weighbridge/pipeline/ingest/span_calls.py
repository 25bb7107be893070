"""What a span says about a call of a model: whose names its counts stand under, and the columns of its attempt.

Five families name the same figures in their own way, and mean different things by them: each has a dialect. Which of
them wrote a span shows in the names it used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL
from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.log_files import first, microseconds, part_of
from weighbridge.pipeline.ingest.log_leaves import SPAN_PATHS, named_leaves
from weighbridge.pipeline.ingest.parameters import parameters
from weighbridge.pipeline.ingest.parts import Part
from weighbridge.pipeline.ingest.record_fields import http_status, id_of, name_of
from weighbridge.pipeline.ingest.span_records import SpanRecord
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind
from weighbridge.schemas.leaves import Flattened

ZEROS_DROPPED = "zeros_of_error"
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
_ASKED = ("gen_ai.request.model", "ai.model.id", "llm.request.model")
_SERVED = ("gen_ai.response.model", "ai.response.model", "llm.response.model", "llm.model_name", "embedding.model_name")
_RESPONSE = ("gen_ai.response.id", "ai.response.id", "llm.response.id")
_STREAM = ("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming")
_FINISH = ("gen_ai.response.finish_reasons", "ai.response.finishReason", "llm.finish_reason")
_HTTP = ("http.response.status_code", "http.status_code", "error.type")
_SETTINGS = ("max_tokens", "temperature", "top_p", "top_k")
_OPERATION = ("gen_ai.operation.name", "openinference.span.kind", "llm.request.type", "ai.operationId")
_REQUEST = ("aws.request_id", "gen_ai.request.id")
_SETTING_NAMES = tuple(f"gen_ai.request.{name}" for name in _SETTINGS)
# All that is ever taken out of a span.
KEPT: frozenset[str] = SPAN_PATHS.union(
    _PROVIDER, _ASKED, _SERVED, _RESPONSE, _STREAM, _FINISH, _HTTP, _OPERATION, _REQUEST, _SETTING_NAMES
)
# How frameworks call a provider, in our words; anything else keeps its name.
_PROVIDERS: Mapping[str, str] = {
    "aws.bedrock": "bedrock",
    "aws_bedrock": "bedrock",
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "az.ai.openai": "azure",
    "az.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure-openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gemini": "google",
    "google.generative-ai": "google",
    "google.vertex": "vertex",
    "gcp.vertex_ai": "vertex",
    "vertex_ai": "vertex",
    "vertexai": "vertex",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "x_ai": "xai",
    "moonshot_ai": "moonshot",
}
_PAIRS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
    ("llm.usage.prompt_tokens", "llm.usage.completion_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
    ("ai.usage.inputTokens", "ai.usage.outputTokens"),
    ("ai.usage.promptTokens", "ai.usage.completionTokens"),
)
_TOTALS = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens")
_PLAIN = frozenset((*_TOTALS, *(name for pair in _PAIRS for name in pair)))
# Operations that call a model, and those that stand around such calls.
_CALLS = frozenset({"chat", "text_completion", "generate_content", "embeddings", "completion", "llm", "embedding"})
_AROUND = frozenset({"invoke_agent", "create_agent", "execute_tool", "invoke_workflow", "agent", "chain", "tool"})


@dataclass(frozen=True)
class SpanUsage:
    """A span with what it says about a call.

    Attributes:
        span: the span.
        leaves: the counts it carries, under the names it gives them.
    """

    span: SpanRecord
    leaves: Flattened

    @classmethod
    def of(cls, span: SpanRecord, also: Collection[str] = ()) -> SpanUsage:
        """Take out of a span what is named here, and let go of the rest of its attributes.

        Args:
            span: the span as its file has it.
            also: further attributes to keep.
        """
        wanted = sorted(name for name in span.attributes if name in KEPT or name in also)
        kept = replace(span, attributes={name: span.attributes[name] for name in wanted})
        return cls(kept, _unsummed(named_leaves(kept.attributes)))

    @property
    def operation(self) -> str:
        """What it did, in the words of whoever wrote it; empty where it does not say."""
        told = first(self.span.attributes, _OPERATION)
        return told.lower() if isinstance(told, str) else ""

    @property
    def calls_model(self) -> bool:
        """Whether it says that it is one call of a model."""
        return self.operation in _CALLS or ".do" in self.vercel

    @property
    def around(self) -> bool:
        """Whether it says that it stands around calls."""
        return self.operation in _AROUND

    @property
    def vercel(self) -> str:
        """The operation of the Vercel AI SDK; empty for other spans."""
        told = self.span.attributes.get("ai.operationId")
        return told if isinstance(told, str) else ""

    @property
    def usage(self) -> dict[str, int]:
        """The counts under one name each, whoever gave them, to hold spans against each other."""
        found: dict[str, int] = {}
        for leaf in self.leaves.leaves:
            name = _SAME.get(leaf.path)
            if name and leaf.integer is not None:
                found[name] = leaf.integer
        return {} if self.empty_error else found

    @cached_property
    def empty_error(self) -> bool:
        """Whether it failed and all its counts are zero: then they stand for unknown."""
        return self.span.failed and bool(self.leaves.leaves) and not any(leaf.integer for leaf in self.leaves.leaves)

    @cached_property
    def response(self) -> str | None:
        """The id the provider gave the answer."""
        return id_of(first(self.span.attributes, _RESPONSE), [])

    @property
    def api(self) -> str:
        """The dialect its names belong to."""
        if self.operation in {"embeddings", "embedding"} or self.vercel.startswith("ai.embed"):
            return "span_embeddings"
        names = [leaf.path for leaf in self.leaves.leaves] or list(self.span.attributes)
        if any(name.startswith("llm.token_count.") for name in names):
            return "openinference"
        if any(name.startswith("ai.usage.") for name in names):
            return "vercel_ai"
        system = first(self.span.attributes, ("gen_ai.provider.name", "gen_ai.system"))
        if system == "strands-agents" or "gen_ai.usage.cache_write_input_tokens" in names:
            return "strands"
        return "otel_gen_ai"


def _unsummed(leaves: Flattened) -> Flattened:
    """The leaves, a total that is the sum of input and output called so, as in `log_totals`.

    A library may write it under the root of another: OpenLLMetry's total of `gen_ai.usage` is in `llm.usage`.
    """
    counts = {leaf.path: leaf.integer for leaf in leaves.leaves if leaf.integer is not None}
    if not any(count for name, count in counts.items() if name not in _PLAIN):
        return leaves
    sums = {counts[one] + counts[other] for one, other in _PAIRS if one in counts and other in counts}
    out = [
        leaf._replace(path=f"{leaf.path.rpartition('.')[0]}.{SUMMED_TOTAL}")
        if leaf.path in _TOTALS and leaf.integer in sums
        else leaf
        for leaf in leaves.leaves
    ]
    out.sort(key=lambda leaf: leaf.path)
    return Flattened(out, leaves.refusals, leaves.dropped_strings, leaves.integral_floats)


def call_of(told: SpanUsage, tenant: object = None, task: object = None, notes: tuple[str, ...] = ()) -> Call:
    """The call a span stands for.

    Args:
        told: the span.
        tenant, task: whose it was and what for, where an attribute says so.
        notes: what is known about it from the spans around it.
    """
    span, attributes = told.span, told.span.attributes
    noticed = list(notes)
    provider = name_of(_provider(first(attributes, _PROVIDER)), noticed)
    asked, served = (name_of(first(attributes, names), noticed) for names in (_ASKED, _SERVED))
    status, http = _status(told)
    attempt: dict[str, object] = {
        "provider": provider,
        "api": told.api,
        "model_requested": asked,
        "model_served": served,
        "stream": _streamed(told),
        "http_status": http,
        "status": str(status),
        "finish_reason": finish_reason([{"finish_reason": _last(first(attributes, _FINISH))}]),
        "usage_expected": status is AttemptStatus.SUCCEEDED,
        "total_us": microseconds(span.start, span.end),
        **parameters({name: attributes.get(path) for name, path in zip(_SETTINGS, _SETTING_NAMES, strict=True)}),
    }
    parts = _parts(told, status)
    if told.empty_error:
        noticed.append(ZEROS_DROPPED)
    return Call(
        attempt,
        parts,
        _ids(told, noticed),
        tuple(dict.fromkeys(noticed)),
        served or asked,
        span.start,
        tenant=tenant if isinstance(tenant, str) and tenant else None,
        task=name_of(task, noticed),
    )


def _parts(told: SpanUsage, status: AttemptStatus) -> list[Part]:
    if told.empty_error:
        return []
    failed = status in {AttemptStatus.FAILED, AttemptStatus.REJECTED}
    return part_of(told.leaves, Ended.ERROR if failed else Ended.COMPLETE)


def _ids(told: SpanUsage, notes: list[str]) -> dict[ForeignIdKind, str]:
    """What names a call: its span within its trace. The id of an answer names none, two calls may share it."""
    span = told.span
    found: dict[ForeignIdKind, str] = {}
    if span.id is not None:
        found[ForeignIdKind.RECORD_ID] = span.id if span.trace is None else f"{span.trace}/{span.id}"
        found[ForeignIdKind.SPAN_ID] = span.id
    response = id_of(first(span.attributes, _RESPONSE), notes)
    if response is not None:
        found[ForeignIdKind.PROVIDER_RESPONSE_ID] = response
    request = id_of(first(span.attributes, _REQUEST), notes)
    if request is not None:
        found[ForeignIdKind.CLIENT_REQUEST_ID] = request
    if span.trace is not None:
        found[ForeignIdKind.TRACE_ID] = span.trace
    return found


def _status(told: SpanUsage) -> tuple[AttemptStatus, int | None]:
    http = next((code for name in _HTTP if (code := http_status(told.span.attributes.get(name))) is not None), None)
    failed = told.span.failed or told.span.attributes.get("error.type") is not None
    if http is not None and 400 <= http < 500:
        return AttemptStatus.REJECTED, http
    if failed or (http is not None and http >= 500):
        return AttemptStatus.FAILED, http
    return AttemptStatus.SUCCEEDED, http


def _streamed(told: SpanUsage) -> bool | None:
    value = first(told.span.attributes, _STREAM)
    if isinstance(value, bool):
        return value
    return True if "Stream" in told.vercel.rsplit(".", 1)[-1] else None


def _provider(value: object) -> object:
    """A provider in our words. The Vercel SDK adds the API after a dot, as in `openai.responses`."""
    if not isinstance(value, str):
        return value
    shown = value.lower()
    head = shown.rsplit(".", 1)[0]
    return _PROVIDERS.get(shown) or _PROVIDERS.get(head) or (head if shown.endswith(_APIS) else shown)


_APIS = (".chat", ".responses", ".completion", ".embedding", ".messages", ".transcription", ".speech", ".image")


def _last(value: object) -> object:
    return value[-1] if isinstance(value, list) and value else value


# Names of one figure, to hold spans of different families against each other.
_GEN_AI_NAMES = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
    "total": ("total_tokens",),
}
_SAME: Mapping[str, str] = {
    **{
        f"{root}.{name}": same
        for root in ("gen_ai.usage", "llm.usage")
        for same, names in _GEN_AI_NAMES.items()
        for name in names
    },
    "llm.token_count.prompt": "input",
    "llm.token_count.completion": "output",
    "llm.token_count.total": "total",
    **{f"ai.usage.{name}": "input" for name in ("promptTokens", "inputTokens", "tokens")},
    **{f"ai.usage.{name}": "output" for name in ("completionTokens", "outputTokens")},
    "ai.usage.totalTokens": "total",
}
