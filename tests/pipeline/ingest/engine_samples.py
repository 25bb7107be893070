"""Records as engines of one's own and their clients write them; constructed after recorded ones."""

from __future__ import annotations

from typing import Any

BEGAN = 1_768_473_000.0  # 2026-01-15 10:30:00 UTC
Record = dict[str, Any]


def http_call(number: int, **client: Any) -> Record:
    """A completion of 7 + 6 tokens that took 80 ms; `client` changes what its client saw."""
    usage = {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13}
    body = {
        "id": f"cmpl-call-{number}",
        "model": "m",
        "choices": [{"index": 0, "text": "six tokens", "finish_reason": "length", "token_ids": [1, 2, 3, 4, 5, 6]}],
        "usage": usage,
    }
    return {
        "request": {
            "method": "POST",
            "path": "/v1/completions",
            "headers": {"X-Request-Id": f"call-{number}"},
            "body": {"model": "m", "prompt": "seven tokens", "max_tokens": 6},
        },
        "response": {"status": 200, "headers": {}, "body": body, "events": None},
        "client": {"t_start_unix": BEGAN + number, "first_byte_ms": 80.0, "end_ms": 80.5, "aborted": False, **client},
    }


def finished(number: int, **more: Any) -> Record:
    """A finished engine request of that call."""
    row = {
        "iteration_timestamp": BEGAN + number + 0.07,
        "e2e_latency": 0.06,
        "request_id": f"cmpl-call-{number}-0",
        "finish_reason": "length",
        "num_prompt_tokens": 7,
        "num_generation_tokens": 6,
        "num_cached_tokens": 0,
        "num_preemptions": 0,
        "max_tokens_param": 6,
        "queued_time": 0.001,
        "prefill_time": 0.02,
        "decode_time": 0.03,
    }
    return row | more


def step(number: int, *, busy: bool = False, at: float | None = None, **counts: Any) -> Record:
    """A step in which one token was generated."""
    scheduler: Record = {"num_running_reqs": 1} if busy else {}
    for name in ("prefix_cache_stats", "spec_decoding_stats"):
        if name in counts:
            scheduler[name] = counts.pop(name)
    when = BEGAN + number if at is None else at
    iteration: Record = {"iteration_timestamp": when, "num_generation_tokens": 1, **counts}
    return {"step": number, "scheduler": scheduler, "iteration": iteration}


def idle(number: int, **scheduler: Any) -> Record:
    """A step without an iteration: it has no time."""
    return {"step": number, "scheduler": scheduler, "iteration": None}
