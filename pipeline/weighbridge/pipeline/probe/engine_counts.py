"""What the engine's own counters say happened between two moments, and whether anybody else was there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from weighbridge.pipeline.ingest.scrape import samples_in
from weighbridge.schemas.enumerations import EngineCounter
from weighbridge.schemas.errors import ContractError

_MODEL_LABELS = ("model_name", "model")
# Of an engine that counts what it finished, the first of these that it has tells how many requests there were.
_REQUESTS = (EngineCounter.REQUESTS_FINISHED, EngineCounter.FINISHED_SAMPLES)


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one model at one moment, summed over processes and labels. Absent ones are not there."""

    engine: str
    values: Mapping[EngineCounter, int]

    @property
    def requests(self) -> int | None:
        """Requests that were finished; null where the engine does not count them."""
        return next((self.values[name] for name in _REQUESTS if name in self.values), None)


@dataclass(frozen=True, slots=True)
class EngineCount:
    """What was counted between two moments.

    Attributes:
        input: tokens of prompts, cached ones included; null where the engine counts none, or only computed ones.
        computed: tokens of prompts that were computed, where the engine counts those alone.
        output: generated tokens.
        requests: that were finished; null where the engine does not count them.
    """

    input: int | None
    computed: int | None
    output: int | None
    requests: int | None


def counters(text: str, model: str) -> Counters:
    """The counters of a text as `/metrics` gives it.

    Args:
        text: of one moment.
        model: where some counters name it, only those count.

    Raises:
        ContractError: it is no such text, or has no counter of an engine that is known.
    """
    samples = samples_in(text)
    if not samples:
        raise ContractError(
            "no counter of a known engine is in these metrics (vLLM, SGLang and llama.cpp are known); check --metrics"
        )
    named = [s for s in samples if model in (s.labels.get(label) for label in _MODEL_LABELS)]
    sums: defaultdict[EngineCounter, int] = defaultdict(int)
    for sample in named or samples:
        label = sample.metric.label
        if isfinite(sample.value) and sample.value == int(sample.value):
            sums[sample.metric.counts(None if label is None else sample.labels.get(label))] += int(sample.value)
    return Counters(samples[0].metric.engine, dict(sums))


def between(before: Counters, after: Counters) -> EngineCount | None:
    """What was counted between; null where a counter began anew."""
    difference = {name: value - before.values.get(name, 0) for name, value in after.values.items()}
    if any(value < 0 for value in difference.values()) or before.values.keys() - after.values.keys():
        return None
    requests = next((difference[name] for name in _REQUESTS if name in difference), None)
    return EngineCount(
        difference.get(EngineCounter.PROMPT_TOKENS),
        difference.get(EngineCounter.PROMPT_TOKENS_COMPUTED),
        difference.get(EngineCounter.GENERATION_TOKENS),
        requests,
    )
