"""Which providers are serving frameworks: where one's own server answers, who answers and what computes are one name.

A client that speaks to a server of one's own by the API of somebody else is often told the name of that API instead
(`openai`), which says nothing about what computed.
"""

from __future__ import annotations

# As providers are called (`facts/`), and as their metrics call them (`engine_counters.toml`).
FRAMEWORKS = frozenset({"llama_cpp", "llamacpp", "sglang", "tensorrt_llm", "tgi", "transformers", "vllm"})


def framework_of(provider: str | None) -> str | None:
    """The framework that a provider is; null where it is none that is known."""
    return provider if provider in FRAMEWORKS else None
