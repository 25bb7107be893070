"""Ollama's own API: whether prompt_eval_count holds cached tokens depends on a version the answer does not name.

    prompt 237, of it cached 236          ->   input 237, uncached 1
    prompt 1, runner: cached 236, new 1   ->   input 237, uncached 1: only new tokens were in the prompt count

Servers that count the cached tokens give the whole prompt. Older ones give the new part, or nothing where all of it was
cached: without a cached count the input is ASSUMED to be the whole prompt.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="ollama_native",
    apis=("ollama_native", "ollama_chat", "ollama_generate", "chat", "generate"),
    providers=("ollama",),
    source="https://github.com/ollama/ollama/blob/main/docs/api.md",
    containers=("usage", ""),
    roles={
        "prompt_eval_count": Role.INPUT,
        "prompt_eval_cached_count": Role.CACHE_READ,
        "eval_count": Role.OUTPUT,
        # Of the runner below, where a log holds it beside the answer.
        "timings.prompt_n": Role.INPUT_UNCACHED,
        "timings.cache_n": Role.CACHE_READ,
        "timings.predicted_n": Role.OUTPUT,
        # Logs name its endpoint of OpenAI's shape `chat` too.
        "prompt_tokens": Role.INPUT,
        "completion_tokens": Role.OUTPUT,
        "total_tokens": Role.TOTAL,
        "prompt_tokens_details.cached_tokens": Role.CACHE_READ,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True, False), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.PLAIN | {Role.CACHE_WRITE})},
    stream=Stream(ending=frozenset({"done"}), unclosed=Ended.CUT),
    guessed=frozenset({Axis.INPUT_INCLUDES_CACHE}),
)
