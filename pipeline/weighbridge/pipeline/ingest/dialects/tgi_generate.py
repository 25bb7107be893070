"""text-generation-inference, its own API: generated tokens in `details`, the prompt there or in a header only.

    details.generated_tokens 10, header x-prompt-tokens 11   ->   input 11, output 10

Nothing is said about its prefix cache, so how the input splits is unknown.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Merge, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="tgi_generate",
    apis=("tgi_generate", "generate", "generate_stream"),
    providers=("tgi", "huggingface", "text-generation-inference"),
    source="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
    containers=("usage", ""),
    roles={
        **{
            f"{place}{name}": role
            for place in ("details.", "details[*].", "")
            for name, role in {"generated_tokens": Role.OUTPUT, "input_length": Role.INPUT}.items()
        },
        "header.x-prompt-tokens": Role.SERVICE_INPUT,
        "header.x-generated-tokens": Role.SERVICE_OUTPUT,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.PLAIN | {Role.CACHE_WRITE})},
    # A header counts the prompt, the last event what was generated.
    stream=Stream(merge=Merge.START_DELTA, ending=frozenset({"generated_text"}), unclosed=Ended.CUT),
)
