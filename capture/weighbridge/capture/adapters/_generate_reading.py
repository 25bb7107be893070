"""A call of `generate()` that is over, read into records: one attempt per prompt, a child per further sequence."""

from __future__ import annotations

import functools
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.capture.adapters._cache_rules import CacheTrace, Geometry, geometry, passes
from weighbridge.capture.adapters._counts import UNKNOWN, stated
from weighbridge.capture.adapters._generate_arguments import Arguments, prompts
from weighbridge.capture.adapters._generate_call import Call, Told, attempts, leaving
from weighbridge.capture.adapters._generation import Asked, Row, Work, rows, work
from weighbridge.capture.adapters._press_trace import PressTrace
from weighbridge.capture.adapters._speculation import add_drafts, drafting
from weighbridge.capture.adapters._token_runs import offer
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.context import Parameters
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import outcome_word
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, FinishReason
from weighbridge.schemas.parts import Parallel, Part
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import StateEvent, Trace

_OF_CACHE = ("attended", "kv_appended", "kv_evicted", "kv_merged", "kv_kept")


@dataclass(slots=True)
class _Read:
    """What was found in a result: its columns that were not generated, its rows, and how they were asked for."""

    sequences: Any
    start: int
    asked: Asked
    rows: list[Row]

    @property
    def steps(self) -> int:
        """Columns that were generated."""
        return int(self.sequences.shape[1]) - self.start


class Reading:
    """One finished call.

    Args:
        arguments: what it was given.
        plain: its `generate()` is the framework's own.
        number: gives parameters their number in the recorder's dictionary.
    """

    def __init__(
        self, binding: Binding, arguments: Arguments, *, plain: bool, number: Callable[[Parameters], int]
    ) -> None:
        self._binding = binding
        self._arguments = arguments
        self._call = arguments.call
        self._plain = plain
        self._number = number
        # Where one pass was seen, prepared by the framework itself.
        self._seen = self._call.prepared == 1 and not arguments.custom
        self._layers: Geometry | None = None
        self._strategy: Strategy | None = None
        self._times = times(self._call) if self._seen else {"total_us": times(self._call)["total_us"]}

    def finish(self, result: Any) -> None:
        """Write the attempts of the call."""
        found = self._read(getattr(result, "sequences", result))
        self._layers = self._geometry(found)
        self._strategy = None if self._layers is None else self._layers.strategy(_version())
        count = self._arguments.prompts
        if count is None:
            count = 1 if found is None else max(1, len(found.rows) // self._arguments.choices)
        parameters = self._number(self._arguments.parameters(None if found is None else found.start))
        lengths = self._arguments.lengths(count)
        for index, attempt in enumerate(attempts(self._binding, self._call, count)):
            attempt.parameters = parameters
            if found is None:
                self._write_unread(attempt, lengths[index])
            else:
                each = len(found.rows) // count
                self._write(attempt, index, lengths[index], found, range(index * each, (index + 1) * each))

    def _read(self, sequences: Any) -> _Read | None:
        """None where the result does not show beyond doubt what was generated."""
        start = self._arguments.start(sequences, plain=self._plain)
        if start is None:
            return None
        asked = self._arguments.asked(start)
        return _Read(sequences, start, asked, rows(sequences, start, asked))

    def _write_unread(self, attempt: Attempt, prompt: int) -> None:
        known = {"input_computed": prompt} | self._times
        attempt.finish(outcome_word(AttemptStatus.SUCCEEDED), stated(known))

    def _write(self, attempt: Attempt, index: int, prompt: int, found: _Read, mine: range) -> None:
        own = [found.rows[at] for at in mine]
        if len(own) > 1:
            kind = ChildKind.BEAM if self._arguments.beams > 1 else ChildKind.CHOICE
            for child, row in enumerate(own, 1):
                word = outcome_word(AttemptStatus.SUCCEEDED, row.finish)
                known = {"input_computed": prompt} | _outputs([row])
                attempt.binding.recorder.finish_child(attempt, child, kind, word, stated(known))
        expected = UNKNOWN
        told = [self._told(prompt, row, found) for row in own]
        if attempt.level >= 2:
            drafts = self._call.drafts
            outputs = [
                (child if len(own) > 1 else 0, found.sequences[at, found.start : found.start + found.rows[at].computed])
                for child, at in enumerate(mine, 1)
                if found.rows[at].computed > 0
            ]
            ids = self._arguments.prompt(index, prompt)
            expected = offer(attempt, ids, outputs, zip(drafts.starts, drafts.ids, strict=False))
            for child, (at, each) in enumerate(zip(mine, told, strict=True), 1):
                self._trace(attempt, at, each, child if len(own) > 1 else 0)
        finishes = {row.finish for row in own}
        finish = finishes.pop() if len(finishes) == 1 else FinishReason.OTHER
        known = self._known(prompt, own, self._work(prompt, own, found)) | whole(
            _added(mine, told), told, attempt.binding.recorder.part
        )
        attempt.finish(outcome_word(AttemptStatus.SUCCEEDED, finish), stated(known), None, expected)

    def _told(self, prompt: int, row: Row, found: _Read) -> list[Told]:
        """What was done to the tokens of a sequence: what was watched; else what a plain cache comes to."""
        told = list(self._call.told)
        if any(isinstance(each, PressTrace) for each in told):
            return told
        with Guard("transformers.cache"):
            if self._layers is not None and row.computed > 0 and prompt >= 0:
                steps, asked = found.steps, found.asked
                seen, done = passes(prompt, row.computed, steps, cached=asked.cached, drafts=self._call.drafts)
                told.insert(0, CacheTrace(self._layers, seen, done, asked.cached, self._strategy))
        return told

    def _geometry(self, found: _Read | None) -> Geometry | None:
        """The layers of the model, where what they hold follows from its configuration."""
        plain = found is not None and not found.asked.odd and found.asked.beams == 1
        if not plain or not self._seen or not self._call.fresh or self._arguments.both_ways:
            return None
        with Guard("transformers.geometry"):
            kwargs = self._arguments.kwargs
            given = kwargs.get("cache", kwargs.get("past_key_values"))
            return geometry(
                self._arguments.model.config, given, getattr(self._call.config, "cache_implementation", None)
            )
        return None

    def _trace(self, attempt: Attempt, index: int, told: list[Told], child: int = 0) -> None:
        """Hand over what speculation and others did; the events are made off the request path."""
        drafts = self._call.drafts
        if not drafts.starts and not told:
            return

        def events() -> list[StateEvent]:
            trace = Trace()
            for each in told:
                each.add_to(trace, index)
            if drafts.strategy is not None:
                trace.strategy_id = drafts.strategy.strategy_id
            add_drafts(trace, drafts)
            return trace.events

        strategies = [each for each in (drafts.strategy, *(each.strategy for each in told)) if each is not None]
        held = sum(each.held_bytes for each in told) + 64 * len(drafts.starts)
        attempt.offer_trace(events, strategies, child=child, held_bytes=held)

    def _work(self, prompt: int, own: list[Row], found: _Read) -> Work:
        if self._arguments.both_ways:
            return Work(prefill=prompt)
        width = self._arguments.width()
        computed = [row.computed for row in own]
        return work(prompt, prompt if width is None else width, found.steps, computed, found.asked, self._call.drafts)

    def _known(self, prompt: int, own: list[Row], done: Work) -> dict[str, int]:
        counts = {
            "input_computed": prompt,
            "recomputed": done.recomputed,
            "verify_width": done.verify_width,
            "padding": done.padding,
            "forward": done.forward,
        }
        if self._call.fresh:
            counts |= {"cached_local": 0, "cached_external": 0, "prefill_computed": prompt}
        outputs = _outputs(own)
        if self._seen:
            counts |= drafting(self._call.drafts, outputs.get("output_computed", UNKNOWN))
        return counts | outputs | self._times


@functools.cache
def _version() -> str:
    return importlib.metadata.version("transformers")


def _outputs(own: Sequence[Row]) -> dict[str, int]:
    """The output counts of some rows; nothing where a row's length is not known."""
    if any(row.computed < 0 for row in own):
        return {}
    output, ends = sum(row.computed for row in own), sum(row.end_token for row in own)
    return {"output_computed": output, "output_delivered": output - ends, "withheld_end_token": ends}


def _added(mine: Sequence[int], told: Sequence[list[Told]]) -> dict[str, int]:
    """The counts of all sequences of a prompt, added; one that is not known for each of them is not known."""
    each = []
    for at, of_it in zip(mine, told, strict=True):
        counts: dict[str, int] = {}
        for one in of_it:
            counts |= one.counts(at)
        each.append(counts)
    names = set(each[0]).intersection(*each) if each else set()
    return {name: sum(c[name] for c in each) for name in names if min(c[name] for c in each) >= 0}


def whole(counts: dict[str, int], told: Sequence[list[Told]], part: Part | None) -> dict[str, int]:
    """The counts that hold for the whole model: a press sees the cache of its process, and a stage of a pipeline the
    layers of its own, and not what others keep."""
    if part is None or part.world == 1 or part.kind is Parallel.DATA:
        return counts
    pressed = any(isinstance(each, PressTrace) for of_it in told for each in of_it)
    if part.kind is not Parallel.PIPELINE and not pressed:
        return counts
    return {name: count for name, count in counts.items() if name not in _OF_CACHE}


def times(call: Call) -> dict[str, int]:
    """Microseconds of a call that is over: prefill, which ends with the first token, and decoding make up its total."""
    total = (time.perf_counter_ns() - call.began_ns) // 1000
    if not call.first_ns:
        return {"total_us": total}
    first = (call.first_ns - call.began_ns) // 1000
    return {"prefill_us": first, "first_token_us": first, "decode_us": total - first, "total_us": total}


def fail(
    binding: Binding, call: Call, error: BaseException, model: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """An exception ended every prompt of a call. How far the engine had come is known of verify steps, and where a
    server ended the call of a client that has gone."""
    left = next((told for kind, told in leaving.items() if isinstance(error, kind)), None)
    aborted = left is not None or not isinstance(error, Exception)
    word = outcome_word(
        AttemptStatus.ABORTED if aborted else AttemptStatus.FAILED,
        FinishReason.ABORT if aborted else FinishReason.ERROR,
    )
    known, count = times(call), prompts(args, kwargs) or 1
    steps = call.drafts.accepted
    if steps:
        known |= drafting(call.drafts, sum(steps) + len(steps))
    elif left is not None and count == 1 and (computed := left(kwargs.get("streamer"))) is not None:
        known |= {"input_computed": Arguments(model, call, args, kwargs).lengths(1)[0], "output_computed": computed}
    for attempt in attempts(binding, call, count):
        attempt.finish(word, stated(known))
