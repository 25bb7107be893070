"""What our own engine did for the attempts it served: times, caches, speculation, passes, attention.

The conservation identities hold by construction, for every row:

    input_computed = cached_local + cached_external + prefill_computed + cache_correction
    output_computed = output_delivered + withheld_*          drafted = accepted + rejected
    accepted + bonus + undrafted = output_computed           forward = prefill + recomputed + verify widths + padding
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate import world
from weighbridge.pipeline.simulate.lengths import Lengths, of_model
from weighbridge.pipeline.simulate.traffic import Traffic
from weighbridge.pipeline.simulate.world import Ints

DRAFT_LENGTH = 3
_PREFILL_PER_S = 9_000
_DECODE_US = 16_000


def engine_columns(rng: np.random.Generator, traffic: Traffic, tokens: Lengths) -> dict[str, Ints]:
    """The engine's columns of the attempt table; they are to be nulled where another engine served the attempt."""
    cached = tokens.cached
    # A prompt that is cached whole has its last position computed again, or there would be nothing to predict from.
    whole = cached == tokens.prompt
    external = np.where(rng.random(traffic.rows) < 0.1, cached // 2, 0)
    prefill = np.where(whole, 1, tokens.prompt - cached)
    recomputed = np.where(rng.random(traffic.rows) < 0.004, prefill // 2, 0)
    drafting = _drafting(rng, traffic, tokens)
    return {
        "input_computed": tokens.prompt,
        "cached_local": cached - external,
        "cached_external": external,
        "prefill_computed": prefill,
        "cache_correction": tokens.prompt - cached - prefill,
        "output_computed": tokens.output,
        "output_delivered": tokens.output - tokens.end - tokens.trimmed,
        "reasoning_computed": tokens.reasoning,
        "withheld_end_token": tokens.end,
        "withheld_stop_trimmed": tokens.trimmed,
        "withheld_aborted": np.zeros_like(cached),
        "withheld_truncated": np.zeros_like(cached),
        **drafting,
        "recomputed": recomputed,
        "padding": np.zeros_like(cached),
        "forward": prefill + recomputed + drafting["verify_width"],
    }


def _drafting(rng: np.random.Generator, traffic: Traffic, tokens: Lengths) -> dict[str, Ints]:
    """Speculation. The first output token comes from the prefill; each later step verifies its draft and one more."""
    left = np.maximum(tokens.output - 1, 0)
    drafts = np.array([model.speculates for model in world.MODELS])[traffic.model]
    fewest = -(-left // (DRAFT_LENGTH + 1))
    steps = fewest + np.floor((left - fewest) * rng.beta(2.0, 3.0, traffic.rows)).astype(np.int64)
    accepted = np.where(drafts, left - steps, 0)
    drafted = np.where(drafts, DRAFT_LENGTH * steps, 0)
    return {
        "drafted": drafted,
        "accepted": accepted,
        "rejected": drafted - accepted,
        "bonus": np.where(drafts, steps, 0),
        "undrafted": np.where(drafts, tokens.output - left, tokens.output),
        "verify_width": np.where(drafts, (DRAFT_LENGTH + 1) * steps, left),
    }


def attention_columns(traffic: Traffic, tokens: Lengths, engine: dict[str, Ints]) -> dict[str, Ints]:
    """Keys read and KV entries kept by dense attention, exact where nothing was drafted or computed twice."""
    entries = of_model("layers")[traffic.model] * of_model("kv_heads")[traffic.model]
    start = tokens.prompt - engine["prefill_computed"]
    end = tokens.prompt + np.maximum(tokens.output - 1, 0)
    read = (end * (end + 1) - start * (start + 1)) // 2
    return {
        "attended": read,
        "attended_dense": read,
        "kv_appended": (end - start) * entries,
        "kv_evicted": np.zeros_like(read),
        "kv_merged": np.zeros_like(read),
        "kv_kept": end * entries,
    }


def times(rng: np.random.Generator, traffic: Traffic, tokens: Lengths) -> dict[str, Ints]:
    """Times in microseconds: the engine's own (queue, prefill, decode), and those a client sees too."""
    queue = np.floor(rng.exponential(25_000, traffic.rows)).astype(np.int64)
    prefill = 8_000 + (tokens.prompt - tokens.cached) * 1_000_000 // _PREFILL_PER_S
    decode = tokens.output * (_DECODE_US + rng.integers(-4_000, 9_000, traffic.rows))
    return {
        "queue_us": queue,
        "prefill_us": prefill,
        "decode_us": decode,
        "first_token_us": queue + prefill,
        "total_us": queue + prefill + decode,
    }
