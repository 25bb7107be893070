"""Steps of a vLLM engine, added up to counters as a scrape would show them wherever the engine came to rest.

    {"step": 16, "scheduler": {"num_running_reqs": 1, "prefix_cache_stats": {"requests": 1, "queries": 401}},
     "iteration": {"iteration_timestamp": 1795970133.748703, "num_generation_tokens": 1,
                   "time_to_first_tokens_iter": [0.017105], "prompt_token_stats": {"computed": 401, "total": 401}}}

That is one call of a stat logger's `record`: `SchedulerStats` and `IterationStats`, zeros left out. A step tells no
call. Its figures are added up, and what they have come to is told where a stretch of work begins and where it ends:
between two of those times nothing ran, and whoever ran between two others ran in that stretch.

Where step numbers are missing, counting begins anew, as after a restart. What a step without a time tells (a prompt
that left before its first token has none) counts from the end of the stretch before on, and is told with the next
begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from weighbridge.pipeline.ingest.http_calls import microseconds
from weighbridge.pipeline.ingest.record_fields import at
from weighbridge.schemas.enumerations import EngineCounter as C
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import Refusal

STRETCH_US = 60_000_000  # a stretch that lasts is told of that often
_LIMIT = 2**63
Record = Mapping[str, object]
Series = tuple[C, str | None]
_BUSY = ("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs")
# Where each counter stands in a step: counter, label, path.
_PLACES: tuple[tuple[Series, tuple[str, ...]], ...] = (
    ((C.GENERATION_TOKENS, None), ("iteration", "num_generation_tokens")),
    ((C.PROMPT_TOKENS, None), ("iteration", "prompt_token_stats", "total")),
    ((C.PROMPT_TOKENS_CACHED, None), ("iteration", "prompt_token_stats", "cached_tokens")),
    ((C.PROMPT_TOKENS_BY_SOURCE, "local_compute"), ("iteration", "prompt_token_stats", "computed")),
    ((C.PROMPT_TOKENS_BY_SOURCE, "local_cache_hit"), ("iteration", "prompt_token_stats", "local_cache_hit")),
    ((C.PROMPT_TOKENS_BY_SOURCE, "external_kv_transfer"), ("iteration", "prompt_token_stats", "external_kv_transfer")),
    ((C.PREFIX_CACHE_QUERIES, None), ("scheduler", "prefix_cache_stats", "queries")),
    ((C.PREFIX_CACHE_HITS, None), ("scheduler", "prefix_cache_stats", "hits")),
    ((C.PREEMPTED_QUERIES, None), ("scheduler", "prefix_cache_stats", "preempted_queries")),
    ((C.PREEMPTED_HITS, None), ("scheduler", "prefix_cache_stats", "preempted_hits")),
    ((C.PREEMPTIONS, None), ("iteration", "num_preempted_reqs")),
    ((C.REQUESTS_FINISHED, None), ("iteration", "n_finished")),
    ((C.DRAFTS, None), ("scheduler", "spec_decoding_stats", "num_drafts")),
    ((C.DRAFTED_TOKENS, None), ("scheduler", "spec_decoding_stats", "num_draft_tokens")),
    ((C.ACCEPTED_TOKENS, None), ("scheduler", "spec_decoding_stats", "num_accepted_tokens")),
)
SERIES: tuple[Series, ...] = tuple(series for series, _ in _PLACES)


class Told(NamedTuple):
    """What the steps have come to.

    Attributes:
        number: the place in its file of the step that showed it.
        at_us: when, microseconds since 1970.
        began_us: when counting began; null where it began before the first step.
        counts: by counter and label; what no step has named is 0, for steps leave zeros out.
    """

    number: int
    at_us: int
    began_us: int | None
    counts: Mapping[Series, int]


class Step(NamedTuple):
    """One step: its number, whether work is left after it, when it ended, since when its requests were there."""

    number: int
    step: int
    busy: bool
    at_us: int | None
    since_us: int | None
    counts: Counter[Series]


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


@dataclass(slots=True)
class Steps:
    """Steps of one engine while they are added up, in the order they were taken."""

    _counts: Counter[Series] = field(default_factory=Counter)
    _last: int | None = None  # the number of the step before
    _number: int = 0
    _at: int | None = None  # the time of the last step that had one
    _told: int | None = None  # the time of what was told last
    _began: int | None = None
    _open: bool = False  # work is under way
    _fresh: bool = True  # nothing was told since counting began
    _untold: bool = False  # something was counted since

    def add(self, step: Step) -> Iterator[Told]:
        """Add a step; what is to be told because of it."""
        if self._last is not None and step.step != self._last + 1:
            yield from self._anew(step)
        if not self._open and step.at_us is not None and step.since_us is not None and (step.busy or step.counts):
            yield from self._begin(step.number, step.since_us)
        elif self._open and step.at_us is None and not step.busy:
            yield from self._rest()  # whoever ran was gone before this step: nobody is left
        self._last, self._number = step.step, step.number
        self._counts += step.counts
        self._untold = self._untold or bool(step.counts)
        if step.at_us is None:
            return
        self._at = step.at_us
        if not step.busy:
            yield from self._rest()
        elif self._told is not None and step.at_us - self._told >= STRETCH_US:
            yield from self._tell(step.at_us)

    def end(self) -> Iterator[Told]:
        """There are no more steps."""
        if self._open:
            yield from self._rest()

    def _begin(self, number: int, since: int) -> Iterator[Told]:
        self._open, self._number = True, number
        if self._fresh and self._began is None:
            # Of an engine whose first step is here it is known that it had counted nothing before.
            self._began = since
        yield from self._tell(since)

    def _rest(self) -> Iterator[Told]:
        self._open = False
        if self._at is not None:
            yield from self._tell(self._at)

    def _anew(self, step: Step) -> Iterator[Told]:
        """Steps are missing: tell what was counted before them, and begin again."""
        if self._open:
            yield from self._rest()
        since = step.since_us
        if self._untold and since is not None:
            yield from self._tell(since - 2)
        self._counts, self._untold, self._fresh = Counter(), False, True
        if since is not None and (self._told is None or since - 1 > self._told):
            self._began = since - 1
            yield from self._tell(since - 1)
        else:
            self._began = self._told

    def _tell(self, at_us: int) -> Iterator[Told]:
        if self._told is not None and at_us <= self._told:
            return
        self._told, self._untold, self._fresh = at_us, False, False
        yield Told(self._number, at_us, self._began, {series: self._counts[series] for series in SERIES})
