"""Steps of a serving engine, added up to counters as a scrape would show them wherever the engine came to rest.

A step tells no call. Its figures are added up, and what they have come to is told where a stretch of work begins and
where it ends: between two of those times nothing ran, and whoever ran between two others ran in that stretch.

Where step numbers are missing, counting begins anew, as after a restart. What a step without a time tells (a prompt
that left before its first token has none) counts from the end of the stretch before on, and is told with the next
begin. The agent inside an engine and the importer of recorded steps add up alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weighbridge.schemas.enumerations import CounterUnit
from weighbridge.schemas.enumerations import EngineCounter as C

STRETCH_US: Final = 60_000_000  # a stretch that lasts is told of that often
Series = tuple[C, str | None]
# The counters that steps are added up to, with the label of a part. The order is that of a journal's record.
SERIES: Final[tuple[Series, ...]] = (
    (C.GENERATION_TOKENS, None),
    (C.PROMPT_TOKENS, None),
    (C.PROMPT_TOKENS_CACHED, None),
    (C.PROMPT_TOKENS_BY_SOURCE, "local_compute"),
    (C.PROMPT_TOKENS_BY_SOURCE, "local_cache_hit"),
    (C.PROMPT_TOKENS_BY_SOURCE, "external_kv_transfer"),
    (C.PREFIX_CACHE_QUERIES, None),
    (C.PREFIX_CACHE_HITS, None),
    (C.PREEMPTED_QUERIES, None),
    (C.PREEMPTED_HITS, None),
    (C.PREEMPTIONS, None),
    (C.REQUESTS_FINISHED, None),
    (C.DRAFTS, None),
    (C.DRAFTED_TOKENS, None),
    (C.ACCEPTED_TOKENS, None),
)
_REQUESTS: Final = frozenset({C.REQUESTS_FINISHED})
_EVENTS: Final = frozenset({C.PREEMPTIONS, C.DRAFTS})


def unit_of(counter: C) -> CounterUnit:
    """What a counter of steps counts in."""
    if counter in _REQUESTS:
        return CounterUnit.REQUESTS
    return CounterUnit.EVENTS if counter in _EVENTS else CounterUnit.TOKENS


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

    def end(self, at_us: int | None = None) -> Iterator[Told]:
        """There are no more steps; `at_us` is the time of that, for what steps without a time have counted."""
        if self._open:
            yield from self._rest()
        if self._untold and at_us is not None:
            yield from self._tell(at_us)

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
