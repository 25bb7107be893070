"""The folder of a comparison's run: written by the runner beside the model, read by the batch.

<run>/
    comparison.json         what was run, and the digests of all other files; written last
    rows.parquet            one row per answer: numbers, names, and the key of its attempt; no id, no text
    tokenizer.json          of the run, where it has one that can be written so
    spool/*.segment/        the agent's sealed segments: token ids and traces, encrypted
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

VERSION: Final = 1
# In the table `comparison` a row of this ending is of the pairs on which the strategy acted, where these are some.
ACTED: Final = "@acted"
MANIFEST: Final = "comparison.json"
ROWS: Final = "rows.parquet"
TOKENIZER: Final = "tokenizer.json"
SPOOL: Final = "spool"
ENGINE: Final = "comparison-engine"  # the source of token ids: what the adapter saw
TRACER: Final = "comparison"  # the source of state events: what the runner did

COUNTS: Final = (
    "prompt_tokens", "pruned", "attended", "attended_dense", "kv_written", "kv_kept", "kv_evicted", "kv_masked",
    "kv_peak_bytes", "drafted", "accepted", "forward", "hidden", "events", "forced", "forced_agreed",
)  # fmt: skip
REALS: Final = ("seconds", "nll", "kl")
MEANINGS: Final = ("semantic", "bert_score", "semantic_unrelated", "bert_score_unrelated")
_TEXTS: Final = ("pair", "strategy", "stop", "cluster")


def schema() -> pa.Schema:
    """The columns of `rows.parquet`; counts as in `compare.answer.Cost`, null is unknown."""
    return pa.schema(
        [
            *((name, pa.string()) for name in _TEXTS),
            ("run", pa.int32()),  # 0, or 1 for the second run of the baseline
            ("attempt_hi", pa.int64()),
            ("attempt_lo", pa.int64()),
            ("output", pa.int64()),
            ("score", pa.float64()),
            ("origins", pa.list_(pa.struct([("origin", pa.string()), ("start", pa.int64()), ("length", pa.int64())]))),
            *((name, pa.int64()) for name in COUNTS),
            *((name, pa.float64()) for name in (*REALS, *MEANINGS)),
        ]
    )
