"""llama.cpp's own server API: prompt_n is what was evaluated anew, cache_n what was there; the context is their sum.

    cache_n 236, prompt_n 1, predicted_n 8   ->   uncached 1, cache_read 236, output 8

Versions without cache_n give the whole prompt as tokens_evaluated; what is left of it was cached. tokens_cached is
the length of the context afterwards, not a part of the prompt.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="llamacpp_completion",
    apis=("llamacpp_completion", "completion", "infill"),
    providers=("llama_cpp", "llamacpp", "llama.cpp"),
    source="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    containers=("usage", ""),
    roles={
        **{
            f"{place}{name}": role
            for place in ("timings.", "")
            for name, role in {
                "prompt_n": Role.INPUT_UNCACHED,
                "cache_n": Role.CACHE_READ,
                "predicted_n": Role.OUTPUT,
                "draft_n": Role.EVIDENCE,
                "draft_n_accepted": Role.EVIDENCE,
            }.items()
        },
        "tokens_evaluated": Role.INPUT,
        "tokens_predicted": Role.OUTPUT,
        "tokens_cached": Role.EVIDENCE,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.PLAIN | {Role.CACHE_WRITE})},
    stream=Stream(ending=frozenset({"stop"}), unclosed=Ended.CUT),
    open=True,
)
