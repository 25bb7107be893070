"""The engine's half of the vLLM adapter: statistics of one engine, step by step, become calls and counters."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._token_ids import wall_us
from weighbridge.capture.adapters._vllm_desk import Desk
from weighbridge.capture.adapters._vllm_requests import EngineCalls, finished
from weighbridge.capture.context import Context
from weighbridge.capture.engine_counters import EngineCounters
from weighbridge.capture.guard import Guard, raises, report
from weighbridge.schemas.engine_steps import SERIES, Step
from weighbridge.schemas.enumerations import GapReason

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

FRAMEWORK: Final = "vllm"
_MICRO: Final = 1_000_000
_EXTERNAL: Final = SERIES[5]
# Where each counter of a step stands, in the order of `SERIES`: whose attribute, and its name.
_ITERATION, _PROMPTS, _CACHE, _SPECULATION = range(4)
_PLACES: Final = (
    (_ITERATION, "num_generation_tokens"),
    (_PROMPTS, "total"),
    (_PROMPTS, "cached_tokens"),
    (_PROMPTS, "computed"),
    (_PROMPTS, "local_cache_hit"),
    (_PROMPTS, "external_kv_transfer"),
    (_CACHE, "queries"),
    (_CACHE, "hits"),
    (_CACHE, "preempted_queries"),
    (_CACHE, "preempted_hits"),
    (_ITERATION, "num_preempted_reqs"),
    (_ITERATION, "finished_requests"),
    (_SPECULATION, "num_drafts"),
    (_SPECULATION, "num_draft_tokens"),
    (_SPECULATION, "num_accepted_tokens"),
)
_BUSY: Final = ("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs")


class EngineWatch:
    """Reads the statistics of one engine, step by step. Never raises into it."""

    def __init__(
        self, recorder: Recorder, desk: Desk, *, model: str | None, engine: int = 0, version: str | None = None,
        clock: Callable[[], float] = time.monotonic, wall: Callable[[], int] = wall_us,
    ) -> None:  # fmt: skip
        """Prepare.

        Args:
            recorder: where the engine's rows go; its installation is not that of the server's side.
            desk: the calls the middleware of this process knows.
            model: its name as it is served.
            engine: which of several data-parallel engines.
            version: of vLLM.
            clock, wall: monotonic seconds, and microseconds since 1970.
        """
        context = Context(provider=FRAMEWORK, framework=FRAMEWORK, framework_version=version, model_served=model)
        self._pid = os.getpid()
        self._recorder = recorder
        self._desk = desk
        self._name = (model, version, f"engine:{engine}")
        self._lock = threading.RLock()
        self._wall = wall
        self._number = 0
        self._busy = False
        self._counters = self._counting()
        self.calls = EngineCalls(recorder, context, desk, clock)
        recorder.chores.append(self.settle)

    def _counting(self) -> EngineCounters:
        model, version, rank = self._name
        return EngineCounters(self._recorder, engine=FRAMEWORK, model=model, rank=rank, version=version)

    def record(self, scheduler: Any, iteration: Any) -> None:
        """Take the statistics of one step; either may be None."""
        self._here()
        with Guard("vllm.record"), self._lock:
            self._number += 1
            at = None if iteration is None else float(iteration.iteration_timestamp)
            self._busy = any(getattr(scheduler, name, 0) for name in _BUSY) if scheduler is not None else self._busy
            for stats in () if iteration is None else iteration.finished_requests:
                self._finished(stats, at or 0.0)
            step = self._step(scheduler, iteration, at)
            self.calls.external = self.calls.external or bool(step.counts[_EXTERNAL])
            self._counters.add(step)
        self.settle()

    def _here(self) -> None:
        """In a forked child: what is held, counted or locked here is the parent's."""
        if self._pid == os.getpid():
            return
        self._pid, self._lock = os.getpid(), threading.RLock()
        self._number, self._busy = 0, False
        self._desk.here()
        self.calls.forget()
        with Guard("vllm.fork"):
            self._counters = self._counting()

    def _finished(self, stats: Any, at: float) -> None:
        """Take one finished request. One that cannot be read is lost, and its step goes on."""
        try:
            self.calls.add(finished(stats, at))
        except Exception as error:
            self._recorder.losses.count(GapReason.SERIALISE)
            report(error, "vllm.finished")
            if raises():
                raise

    def _step(self, scheduler: Any, iteration: Any, at: float | None) -> Step:
        holders = (
            iteration,
            getattr(iteration, "prompt_token_stats", None),
            getattr(scheduler, "prefix_cache_stats", None),
            getattr(scheduler, "spec_decoding_stats", None),
        )
        counts: Counter[Any] = Counter()
        for series, (holder, name) in zip(SERIES, _PLACES, strict=True):
            value = getattr(holders[holder], name, 0)
            counted = len(value) if isinstance(value, list) else value
            if counted:
                counts[series] = int(counted)
        when = None if at is None else int(at * _MICRO)
        waits = getattr(iteration, "time_to_first_tokens_iter", None) or ()
        since = None if when is None else when - int(max(waits, default=0) * _MICRO)
        return Step(self._number, self._number, self._busy, when, since, counts)

    def settle(self, last: bool = False) -> None:
        """Write the calls that are whole; the keeper and every step ask for it."""
        if self._pid != os.getpid():
            return  # a forked child in which no engine has counted a step
        with Guard("vllm.settle"), self._lock:
            self.calls.settle(at_rest=not self._busy, last=last)
            if last:
                self._counters.end(self._wall())

    def restarted(self) -> None:
        """The engine counts from nothing again."""
        self._here()
        with Guard("vllm.restarted"), self._lock:
            self._counters.end(self._wall())
            self._counters = self._counting()
