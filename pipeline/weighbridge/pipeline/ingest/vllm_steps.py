"""Steps of a vLLM engine as a stat logger of one's own writes them.

    {"step": 16, "scheduler": {"num_running_reqs": 1, "prefix_cache_stats": {"requests": 1, "queries": 401}},
     "iteration": {"iteration_timestamp": 1795970133.748703, "num_generation_tokens": 1,
                   "time_to_first_tokens_iter": [0.017105], "prompt_token_stats": {"computed": 401, "total": 401}}}

That is one call of a stat logger's `record`: `SchedulerStats` and `IterationStats`, zeros left out. How steps are added
up is told by `weighbridge.schemas.engine_steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from weighbridge.pipeline.ingest.http_calls import microseconds
from weighbridge.pipeline.ingest.record_fields import at
from weighbridge.schemas.engine_steps import SERIES, Series, Step
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import Refusal

_LIMIT = 2**63
Record = Mapping[str, object]
_BUSY = ("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs")
# Where each counter stands in a step, in the order of `SERIES`.
_PATHS: tuple[tuple[str, ...], ...] = (
    ("iteration", "num_generation_tokens"),
    ("iteration", "prompt_token_stats", "total"),
    ("iteration", "prompt_token_stats", "cached_tokens"),
    ("iteration", "prompt_token_stats", "computed"),
    ("iteration", "prompt_token_stats", "local_cache_hit"),
    ("iteration", "prompt_token_stats", "external_kv_transfer"),
    ("scheduler", "prefix_cache_stats", "queries"),
    ("scheduler", "prefix_cache_stats", "hits"),
    ("scheduler", "prefix_cache_stats", "preempted_queries"),
    ("scheduler", "prefix_cache_stats", "preempted_hits"),
    ("iteration", "num_preempted_reqs"),
    ("iteration", "n_finished"),
    ("scheduler", "spec_decoding_stats", "num_drafts"),
    ("scheduler", "spec_decoding_stats", "num_draft_tokens"),
    ("scheduler", "spec_decoding_stats", "num_accepted_tokens"),
)
_PLACES: tuple[tuple[Series, tuple[str, ...]], ...] = tuple(zip(SERIES, _PATHS, strict=True))


def is_step(record: Record) -> bool:
    """Whether a record is of this form."""
    return "step" in record and "scheduler" in record and "iteration" in record


def step_of(number: int, record: Record) -> Step | list[Refusal]:
    """One record, or why it cannot be read."""
    refusals: list[Refusal] = []
    counts: Counter[Series] = Counter()
    for series, path in _PLACES:
        value = at(record, *path)
        if isinstance(value, list):  # one item per request
            value = len(value)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            refusals.append(Refusal(".".join(path), QuarantineReason.TYPE))
        elif not 0 <= value < _LIMIT:
            refusals.append(Refusal(".".join(path), QuarantineReason.RANGE))
        else:
            counts[series] = value
    step, told = record["step"], at(record, "iteration", "iteration_timestamp")
    when = microseconds(told)
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        refusals.append(Refusal("step", QuarantineReason.TYPE))
    if told is not None and when is None:
        refusals.append(Refusal("attempt.arrived_at", QuarantineReason.BAD_TIME))
    if refusals or not isinstance(step, int):
        return refusals
    busy = any(at(record, "scheduler", name) for name in _BUSY)
    first = at(record, "iteration", "time_to_first_tokens_iter")
    waits = [wait for each in first if (wait := microseconds(each)) is not None] if isinstance(first, list) else []
    return Step(number, step, busy, when, None if when is None else when - max(waits, default=0), counts)
