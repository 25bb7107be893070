"""The plan of the demonstration: a tiny random model, made-up prompts, and strategies from harmless to ruinous.

The model speaks no language, so what is said of these strategies is true of nothing else. It shows the road.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.plan import DEMO, Plan

PROMPTS: Final = 60
_SYSTEM: Final = "the scale weighs what was really served"
_WORDS: Final = "a lorry drives on and off, tokens are counted once, never guessed, the note that came along".split()


def demo_plan(prompts: int = PROMPTS, max_new_tokens: int = 8, seed: int = 7) -> Plan:
    """The plan; the same seed gives the same prompts."""
    source = Random(seed)  # noqa: S311 - prompts, not secrets
    given: list[dict[str, Any]] = []
    for number in range(1, prompts + 1):
        text = " ".join(source.choice(_WORDS) for _ in range(source.randrange(40, 48)))
        given.append({"pair": f"p{number}", "cluster": None, "parts": [["system", _SYSTEM], ["user", f" {text}"]]})
    strategies: dict[str, dict[str, Any]] = {
        "drafts_3": {"draft_length": 3},
        "topk_16": {"attention_topk": 16},
        "limit_56": {"kv_cache_limit": 56, "sinks": 12},
        "limit_64": {"kv_cache_limit": 64, "sinks": 12},
        "window_8": {"window": 8, "sinks": 0},
        "key_norm_50": {"compression_ratio": 0.5},
        "pruned_20": {"token_pruning_ratio": 0.2},
    }
    return Plan(
        model=DEMO, name="tiny-random-llama", prompts=given, strategies=strategies, max_new_tokens=max_new_tokens,
        seed=seed, gate=Gate(margins={"agreement": 0.15}), by="kv_entries",
    )  # fmt: skip
