"""Raw usage leaves: where a provider's answer keeps its counts, and how they are kept without its words.

A *leaf* is (path, integer | decimal text | enumeration). The path is the provider's own, from the root of the answer:
`usage.prompt_tokens_details.cached_tokens`. An element of a list is named by its discriminator where that is an
allow-listed enumeration (`usageMetadata.promptTokensDetails[TEXT].tokenCount`, a second one `[TEXT#2]`), else by its
index (`[0]`). Only allow-listed keys stand in clear; an unknown key becomes `h_` + 8 hexadecimal digits of a keyed
hash, so a key that holds text cannot leak it while its number is still kept. Free strings are dropped and counted.

Nothing here knows what a number *means*; that is the dialect's business, in the batch.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from weighbridge.schemas.enumerations import QuarantineReason

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
MAX_DEPTH = 8
MAX_LEAVES = 512
MAX_LIST = 64
# Powers of ten beyond those of a float; written out, the text of such a number would outgrow its source without bound.
MAX_EXPONENT = 400

# Where answers of the known APIs hold usage, from the root of a body or of one stream event.
CONTAINERS: tuple[str, ...] = (
    "usage",
    "usageMetadata",
    "usage_metadata",
    "response.usage",
    "response.usageMetadata",
    "response.body.usage",
    "message.usage",
    "delta.usage",
    "interaction.usage",
    "metadata.usage",
    "meta.billed_units",
    "meta.tokens",
    "meta.cached_tokens",
    "response.meta.billed_units",
    "response.meta.tokens",
    "usage_breakdown",
    "x_groq.usage",
    "x_groq.usage_breakdown",
    "amazon-bedrock-invocationMetrics",
    "timings",
    "promptTokensDetails",
    "results",
    "predictions",
    "details",
)
# Containers that hold text or vectors: of them only these counts are usage, of each element where it is a list.
PICKED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "results": (("tokenCount",),),  # Amazon Titan
    "predictions": (("embeddings", "statistics", "token_count"),),  # Vertex AI predict
    "details": (("generated_tokens",), ("input_length",)),  # text-generation-inference
}
# Of them those that are usage and nothing else: what stands there and is no object is not "no usage".
USAGE_NAMES: frozenset[str] = frozenset({"usage", "usageMetadata", "usage_metadata"})
# Where an answer names the service tier it was served on, where its usage does not. It says nothing by itself, so it is
# read beside usage only.
BESIDE: tuple[str, ...] = ("service_tier", "response.service_tier", "interaction.service_tier", "serviceTier")
# Counts that stand bare at the root of an answer (Ollama, llama.cpp, Bedrock InvokeModel bodies, count_tokens answers).
BARE: frozenset[str] = frozenset(
    {
        "prompt_eval_count",
        "prompt_eval_cached_count",
        "eval_count",
        "inputTextTokenCount",
        "prompt_token_count",
        "generation_token_count",
        "input_tokens",
        "total_tokens",
        "totalTokens",
        "cachedContentTokenCount",
        "inputTokens",
        "totalOutputTextTokenCount",
        "tokens_cached",
        "tokens_evaluated",
        "tokens_predicted",
    }
)

_COUNTED = """
accepted_prediction_tokens audio_prompt_tokens audio_tokens cache_creation_input_tokens cache_read_input_tokens
cache_write_tokens cached_tokens cachedContentTokenCount cacheReadInputTokenCount cacheReadInputTokens
cacheWriteInputTokenCount cacheWriteInputTokens candidatesTokenCount completion_tokens created_cache_tokens
ephemeral_1h_input_tokens ephemeral_5m_input_tokens eval_count generated_tokens generation_token_count image_tokens
input_audio_tokens input_cached_tokens input_text_tokens inputTextTokenCount inputTokenCount inputTokens input_tokens
num_cached_tokens output_audio_tokens output_reasoning_tokens output_text_tokens outputTokenCount outputTokens
output_tokens predicted_n prompt_cache_hit_tokens prompt_cache_miss_tokens prompt_eval_cached_count prompt_eval_count
prompt_n cache_n draft_n draft_n_accepted prompt_token_count promptTokenCount prompt_tokens reasoning_tokens
rejected_prediction_tokens responseTokenCount text_tokens thinking_tokens thoughtsTokenCount tokenCount
toolUsePromptTokenCount totalTokenCount totalTokens total_cached_tokens total_input_tokens total_output_tokens
total_thought_tokens total_tokens total_tool_use_tokens video_tokens tokens num_tokens
num_draft_tokens num_accepted_draft_tokens num_spec_tokens num_spec_steps
cache_creation_tokens grok_tokens device host storage tool_output_tokens
input_length token_count tokens_cached tokens_evaluated tokens_predicted totalOutputTextTokenCount
"""
_TALLY_KEYS = """
automatedReasoningPolicies automatedReasoningPolicyUnits code_interpreter_calls contentPolicyImageUnits
contentPolicyUnits contextualGroundingPolicyUnits document_search_calls file_search_calls image_generation_calls
mcp_calls num_server_side_tools_used num_sources_used readUnits request_count search_units
sensitiveInformationPolicyFreeUnits sensitiveInformationPolicyUnits tool_calls_executed tool_calls_requested
topicPolicyUnits web_fetch_requests web_search_calls web_search_requests wordPolicyUnits x_search_calls
citation_tokens num_search_queries images_count cost_in_usd_ticks classifications generation_requests images
"""
_MEASURE_KEYS = """
seconds prompt_audio_seconds output_audio_seconds billable_audio_seconds cost cost_estimate
completion_time prompt_time queue_time total_time firstByteLatency invocationLatency upstream_inference_cost
upstream_inference_completions_cost upstream_inference_input_cost upstream_inference_output_cost
upstream_inference_prompt_cost total_cost input_cost output_cost request_cost total_duration load_duration
prompt_eval_duration eval_duration prompt_ms predicted_ms prompt_per_token_ms predicted_per_token_ms
prompt_per_second predicted_per_second mean_acceptance_length draft_acceptance_rate cached_cost
input_tokens_cost output_tokens_cost reasoning_tokens_cost citation_tokens_cost search_queries_cost
"""
_GROUP_KEYS = """
billed_units cacheDetails cacheTokensDetails cache_creation candidatesTokensDetails completion_token_details
completion_tokens_details context_details cost_details input_token_details input_tokens_by_modality input_tokens_details
iterations models modalities multimodal_tokens cached_tokens_details output_token_details output_tokens_by_modality
output_tokens_details promptTokenDetails promptTokensDetails prompt_token_details prompt_tokens_details
responseTokensDetails results serverToolUsage server_side_tool_usage_details server_tool_use server_tool_use_details
tool_use_tokens_by_modality toolUsePromptTokensDetails usage usageMetadata usage_metadata usage_breakdown response
message delta interaction metadata meta x_groq amazon-bedrock-invocationMetrics timings speculative_decoding
input_token_details pydantic_ai_gateway acceptance_histogram fallback_credit audio image text video
details embeddings predictions statistics cached_tokens_by_modality
"""
# Keys whose value is one of a closed set; any other value of theirs is dropped as text.
ENUMERATED: Mapping[str, frozenset[str]] = {
    "service_tier": frozenset(
        "auto default flex priority standard batch scale on_demand standard_only performance fast provisioned".split()
    ),
    "serviceTier": frozenset("standard default flex priority batch SERVICE_TIER_UNSPECIFIED".split()),
    "inference_geo": frozenset("not_available global us eu apac".split()),
    "modality": frozenset(
        "TEXT IMAGE AUDIO VIDEO DOCUMENT MODALITY_UNSPECIFIED text image audio video document".split()
    ),
    "trafficType": frozenset(
        "ON_DEMAND ON_DEMAND_FLEX ON_DEMAND_PRIORITY PROVISIONED_THROUGHPUT TRAFFIC_TYPE_UNSPECIFIED".split()
    ),
    "type": frozenset("message advisor_message fallback_message compaction duration tokens".split()),
    "ttl": frozenset({"5m", "1h"}),
    "is_byok": frozenset({"true", "false"}),
    "speed": frozenset({"fast", "standard"}),
    "search_context_size": frozenset({"low", "medium", "high"}),
}
_DISCRIMINATORS = ("modality", "type", "ttl")
# Old answers of Vertex AI give the number of the enumeration instead of its name.
_MODALITY_NUMBERS = {1: "TEXT", 2: "IMAGE", 3: "VIDEO", 4: "AUDIO", 5: "DOCUMENT"}
_MODEL_KEYS = frozenset({"model"})
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_DECIMAL = re.compile(r"-?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?", re.ASCII)

COUNT_KEYS: frozenset[str] = frozenset(_COUNTED.split()) | frozenset(_TALLY_KEYS.split())
MEASURE_KEYS: frozenset[str] = frozenset(_MEASURE_KEYS.split())
KEYS: frozenset[str] = COUNT_KEYS | MEASURE_KEYS | frozenset(_GROUP_KEYS.split()) | frozenset(ENUMERATED) | _MODEL_KEYS


class Leaf(NamedTuple):
    """One raw leaf. Exactly one of `integer` and `text` is set."""

    path: str
    integer: int | None
    text: str | None


class Refusal(NamedTuple):
    """One value that cannot be read: where it stood (an allow-listed path) and why. Never the value."""

    path: str
    reason: QuarantineReason


@dataclass(slots=True)
class Flattened:
    """The leaves of one answer or stream event, and an account of what was not kept.

    Attributes:
        leaves: in the order of the paths.
        refusals: unreadable values; an answer that has any goes to quarantine.
        dropped_strings: how many free strings were left out.
        integral_floats: paths whose value came as a float without a fraction and is kept as an integer.
    """

    leaves: list[Leaf] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    dropped_strings: int = 0
    integral_floats: list[str] = field(default_factory=list)

    @property
    def shape(self) -> str:
        """The paths, separated by one space: what answers of one form have in common."""
        return " ".join(leaf.path for leaf in self.leaves)

    def integers(self) -> list[int | None]:
        """The integer of each leaf, null where it has a text."""
        return [leaf.integer for leaf in self.leaves]

    def texts(self) -> list[str | None] | None:
        """The text of each leaf, or null where no leaf has one."""
        return [leaf.text for leaf in self.leaves] if any(leaf.text is not None for leaf in self.leaves) else None


def hashed_key(key: bytes, name: str) -> str:
    """The stand-in of an unknown key: `h_` and 8 hexadecimal digits of its keyed hash."""
    return "h_" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=key[:64], digest_size=4).hexdigest()


def locate(body: object) -> Iterator[tuple[str, object]]:
    """Where the answer `body` (one JSON object, or one event of a stream) keeps usage: (path, what stands there)."""
    if not isinstance(body, Mapping):
        return
    for container in CONTAINERS:
        at: object = body
        for step in container.split("."):
            at = at.get(step) if isinstance(at, Mapping) else None
        bare = container == "meta.cached_tokens" or container.rsplit(".", 1)[-1] in USAGE_NAMES
        if bool(at) if isinstance(at, (Mapping, list)) else bare and at is not None:
            yield container, at
    for name in sorted(BARE & body.keys()):
        if body[name] is not None and not isinstance(body[name], (Mapping, list)):
            yield name, body[name]


def flatten_body(body: object, key: bytes) -> Flattened:
    """The usage leaves of one answer or stream event.

    Args:
        body: the parsed JSON object. Numbers may be int, float or `decimal.Decimal`.
        key: the installation's pseudonym key, which names unknown keys.
    """
    out = Flattened()
    for path, value in locate(body):
        if path in PICKED:
            _pick(out, path, value, key)
        elif path.rsplit(".", 1)[-1] in USAGE_NAMES and not isinstance(value, (Mapping, list)):
            out.refusals.append(Refusal(path, QuarantineReason.NOT_AN_OBJECT))
        else:
            _walk(out, path, path.rsplit(".", 1)[-1], value, key, 1)
    if out.leaves:
        out.leaves += _beside(body)
    out.leaves.sort(key=lambda leaf: leaf.path)
    return out


def _beside(body: object) -> Iterator[Leaf]:
    """The service tier, where it stands beside the usage; Bedrock wraps its own in an object."""
    for path in BESIDE:
        at: object = body
        for step in path.split("."):
            at = at.get(step) if isinstance(at, Mapping) else None
        told = at.get("type") if isinstance(at, Mapping) else at
        if isinstance(told, str) and told in ENUMERATED[path.rsplit(".", 1)[-1]]:
            yield Leaf(path, None, told)


def _pick(out: Flattened, container: str, value: object, key: bytes) -> None:
    """The counts of a container that holds other things beside them."""
    rows = [(f"{container}[{index}]", item) for index, item in enumerate(value)] if isinstance(value, list) else []
    for path, item in rows or [(container, value)]:
        for steps in PICKED[container]:
            at: object = item
            for step in steps:
                at = at.get(step) if isinstance(at, Mapping) else None
            if at is not None:
                _walk(out, ".".join((path, *steps)), steps[-1], at, key, 1)


def flatten(usage: object, key: bytes, path: str = "usage") -> Flattened:
    """The leaves of one usage object that stood at `path` of its answer."""
    out = Flattened()
    _walk(out, path, path.rsplit(".", 1)[-1], usage, key, 1)
    out.leaves.sort(key=lambda leaf: leaf.path)
    return out


def _walk(out: Flattened, path: str, name: str, value: object, key: bytes, depth: int) -> None:
    if value is None:
        return
    if type(value) is int and depth <= MAX_DEPTH and len(out.leaves) < MAX_LEAVES:  # as most leaves are
        _scalar(out, path, name, value)
    elif depth > MAX_DEPTH:
        out.refusals.append(Refusal(path, QuarantineReason.TOO_DEEP))
    elif len(out.leaves) >= MAX_LEAVES:
        if not out.refusals or out.refusals[-1].reason is not QuarantineReason.TOO_LARGE:
            out.refusals.append(Refusal(path, QuarantineReason.TOO_LARGE))
    elif isinstance(value, Mapping):
        for inner, item in value.items():
            shown = inner if inner in KEYS else hashed_key(key, str(inner))
            _walk(out, f"{path}.{shown}", str(inner), item, key, depth + 1)
    elif isinstance(value, (list, tuple)):
        _walk_list(out, path, name, value, key, depth)
    else:
        _scalar(out, path, name, value)


def label_of(item: Mapping[object, object], index: int, seen: dict[str, int]) -> tuple[str, str | None]:
    """How the `index`-th element of a list of objects is named, and the key that named it, if one did.

    `seen` counts the discriminators met so far in this list.
    """
    for discriminator in _DISCRIMINATORS:
        told = item.get(discriminator)
        named = _MODALITY_NUMBERS.get(told) if discriminator == "modality" and type(told) is int else None
        label = named or told
        if isinstance(label, str) and label in ENUMERATED[discriminator]:
            seen[label] = seen.get(label, 0) + 1
            # A number stays a leaf: it is named, not replaced.
            return (label if seen[label] == 1 else f"{label}#{seen[label]}"), discriminator if named is None else None
    return str(index), None


def _walk_list(out: Flattened, path: str, name: str, items: Sequence[object], key: bytes, depth: int) -> None:
    if len(items) > MAX_LIST:
        out.refusals.append(Refusal(path, QuarantineReason.TOO_LARGE))
        return
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            _walk(out, f"{path}[{index}]", name, item, key, depth + 1)
            continue
        label, skip = label_of(item, index, seen)
        for inner, value in item.items():
            if inner != skip:
                shown = inner if inner in KEYS else hashed_key(key, str(inner))
                _walk(out, f"{path}[{label}].{shown}", str(inner), value, key, depth + 1)


def _scalar(out: Flattened, path: str, name: str, value: object) -> None:
    if isinstance(value, bool):
        _boolean(out, path, name, "true" if value else "false")
    elif isinstance(value, int):
        if INT64_MIN <= value <= INT64_MAX:
            out.leaves.append(Leaf(path, value, None))
        else:
            out.refusals.append(Refusal(path, QuarantineReason.RANGE))
    elif isinstance(value, (float, Decimal)):
        _fractional(out, path, name, value)
    elif isinstance(value, str):
        _string(out, path, name, value)
    else:
        out.refusals.append(Refusal(path, QuarantineReason.TYPE))


def _boolean(out: Flattened, path: str, name: str, text: str) -> None:
    if name in COUNT_KEYS:
        out.refusals.append(Refusal(path, QuarantineReason.TYPE))
    else:
        out.leaves.append(Leaf(path, None, text))


def _fractional(out: Flattened, path: str, name: str, value: float | Decimal) -> None:
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        out.refusals.append(Refusal(path, QuarantineReason.NOT_A_NUMBER))
    elif isinstance(value, Decimal) and abs(_exponent(value)) > MAX_EXPONENT:
        out.refusals.append(Refusal(path, QuarantineReason.RANGE))
    elif name not in COUNT_KEYS:
        out.leaves.append(Leaf(path, None, decimal_text(value)))
    elif not INT64_MIN <= value <= INT64_MAX:
        out.refusals.append(Refusal(path, QuarantineReason.RANGE))
    elif value != int(value):
        out.refusals.append(Refusal(path, QuarantineReason.FRACTION))
    else:
        out.leaves.append(Leaf(path, int(value), None))
        out.integral_floats.append(path)


def _exponent(value: Decimal) -> int:
    """The exponent of a finite decimal's last digit; of an infinity or NaN, which have none, 0."""
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _string(out: Flattened, path: str, name: str, value: str) -> None:
    if name in COUNT_KEYS:
        out.refusals.append(Refusal(path, QuarantineReason.TYPE))
    elif value in ENUMERATED.get(name, ()) or (name in _MODEL_KEYS and _MODEL.fullmatch(value)):
        out.leaves.append(Leaf(path, None, value))
    elif name in MEASURE_KEYS and _DECIMAL.fullmatch(value):
        _fractional(out, path, name, Decimal(value))
    else:
        out.dropped_strings += 1


def decimal_text(value: float | Decimal) -> str:
    """A finite number as plain decimal digits: the shortest text that reads back as the same number."""
    return format(value if isinstance(value, Decimal) else Decimal(repr(value)), "f")
