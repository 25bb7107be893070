"""What to do about a cause where that depends on who answered: one sentence per cause and family of providers.

A cause has a cure of its own (`Cause.cure`), which holds wherever this table says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.reconcile.explain.cause import Cause

# Family -> providers, as readings name them.
FAMILIES: Mapping[str, frozenset[str]] = {
    "vllm": frozenset({"vllm", "crusoe"}),
    "sglang": frozenset({"sglang"}),
    "llama_cpp": frozenset({"llama_cpp", "lmstudio", "ollama", "ollama_cloud"}),
    "transformers": frozenset({"transformers", "tgi", "huggingface"}),
    "openai": frozenset({"openai", "azure"}),
    "anthropic": frozenset({"anthropic"}),
    "bedrock": frozenset({"bedrock", "bedrock_mantle"}),
    "google": frozenset({"google", "vertex"}),
    "xai": frozenset({"xai"}),
    "router": frozenset({"openrouter", "litellm", "together", "fireworks"}),
}
_OF_PROVIDER = {provider: family for family, providers in FAMILIES.items() for provider in providers}

CURES: Mapping[tuple[str, str], str] = {
    ("usage_missing", "vllm"): "Start the server with `--enable-force-include-usage`, so that every stream ends with "
    "its usage.",
    ("usage_missing", "sglang"): "Ask for `stream_options.include_usage` in every stream; SGLang sends none unasked.",
    ("usage_missing", "llama_cpp"): "Take counts from the server's own timings; its streams may carry no usage at all.",
    ("usage_missing", "openai"): "Set `stream_options.include_usage` in every stream, and read it to its last event.",
    ("usage_missing", "bedrock"): "Read the stream to its `metadata` event, which carries the usage.",
    ("aborted", "vllm"): "Read streams to their end; vLLM counts aborted tokens in its counters and reports none.",
    ("aborted", "anthropic"): "Keep the usage of `message_start`: it tells the input even where the client leaves.",
    ("cache_convention", "vllm"): "Start the server with `--enable-prompt-tokens-details`, and count its input whole: "
    "cached tokens are inside `prompt_tokens`, but outside the `input_tokens` of /v1/messages.",
    ("cache_convention", "anthropic"): "Add cache reads and writes to `input_tokens`: this API counts them beside it.",
    ("cache_convention", "bedrock"): "Add cache reads and writes to `inputTokens` for Anthropic and Nova models only.",
    ("cache_convention", "openai"): "Count cached tokens once: they are inside `prompt_tokens` and `input_tokens`.",
    ("cache_convention", "google"): "Count cached tokens once: they are inside `promptTokenCount`.",
    ("cache_convention", "llama_cpp"): "Add `cache_n` to `prompt_n`: the timings count processed tokens only.",
    ("reasoning_convention", "google"): "Add `thoughtsTokenCount` to `candidatesTokenCount`: it is counted beside it.",
    ("reasoning_convention", "xai"): "Add `reasoning_tokens` to `completion_tokens`: it is counted beside it.",
    ("reasoning_convention", "openai"): "Count reasoning once: it is inside `completion_tokens` and `output_tokens`.",
    ("end_token_convention", "llama_cpp"): "Add one token per answer that ended by itself: this server leaves it out.",
    ("padding_counted", "transformers"): "Count with the attention mask: the width of `generate`'s tensors is padding "
    "too.",
    ("stream_merge", "vllm"): "With `continuous_usage_stats` each chunk carries the total so far: take the last.",
    ("stream_merge", "anthropic"): "The `output_tokens` of each `message_delta` is the total so far: take the last.",
    ("stream_merge", "google"): "Every chunk repeats `usageMetadata` with the totals so far: take the last.",
    ("iterations_left_out", "anthropic"): "Add up `iterations`: the top of the usage leaves compactions and advisors "
    "out.",
    ("retry", "router"): "Read the router's log of tries: it sends a request again and bills what each try used.",
    ("retry", "openai"): "Set `max_retries=0` in the SDK and repeat calls yourself, so that each try is recorded.",
    ("retry", "anthropic"): "Set `max_retries=0` in the SDK and repeat calls yourself, so that each try is recorded.",
    ("fallback", "router"): "Read the router's own record of which model answered, and price it as that model.",
    ("sparse_counted", "transformers"): "Report `input_ids` by the attention mask, not the cache's sequence length "
    "after a press.",
    ("over_cap", "xai"): "Limit reasoning with `reasoning_effort`: `max_tokens` holds for the completion alone.",
    ("tokenizer_version", "openai"): "Take the encoding the model is listed with (o200k_base since gpt-4o), not the "
    "older one.",
    ("tokenizer_version", "anthropic"): "Count with the API's own `count_tokens` of that very model: its tokenizer "
    "changes between models.",
}  # fmt: skip


def cure_of(cause: Cause, provider: str | None) -> str:
    """What to do about a cause at a provider, in one sentence."""
    return CURES.get((cause.code, _OF_PROVIDER.get(provider or "", "")), cause.cure)
