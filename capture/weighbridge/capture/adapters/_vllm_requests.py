"""Finished requests of a vLLM engine, put together to the calls they were made for, one attempt each.

    engine        one `FinishedRequestStats` per choice, prompt or step of a beam, in the step it finished in
    held here     until their call is over, or, of calls no middleware tells, until the engine rests
    written       one attempt with its children; under the call's own key where the middleware saw the call

What is held is lost where the process is killed: at most what finished and was not yet answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._vllm_desk import Desk, ServedCall, Speculation
from weighbridge.capture.binding import Binding
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.layout import ACCEPTED_STEPS, NULL, outcome_word
from weighbridge.schemas.engine_ids import SAME_US, client_id, engine_id
from weighbridge.schemas.enumerations import (
    AttemptStatus,
    Axis,
    ChildKind,
    Encoding,
    Fidelity,
    FinishReason,
    ForeignIdKind,
    GapReason,
    HeadKind,
    Operation,
    Phase,
    PositionSpace,
)
from weighbridge.schemas.state_event import StateEvent

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

COUNTS: Final = (
    "input_computed", "cached_local", "prefill_computed", "output_computed", "drafted", "accepted", "rejected",
    *ACCEPTED_STEPS, "recomputed", "queue_us", "prefill_us", "decode_us", "total_us",
)  # fmt: skip
GRACE_S: Final = 0.2  # after the last byte of an answer: the engine's statistics follow in the same round of its loop
_ALONE_S: Final = 60.0  # for so long requests of a call nobody tells of wait for further ones, while the engine runs
_LONGEST_S: Final = 3600.0
_MOST: Final = 4096
_FINISH: Final = {str(reason): reason for reason in FinishReason}
_STATUS: Final = {FinishReason.ABORT: AttemptStatus.ABORTED, FinishReason.ERROR: AttemptStatus.FAILED}
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished request of the engine; times in microseconds, counts null where the engine does not know."""

    api_id: str
    prompt: int | None
    beam: bool
    arrived_us: int
    total_us: int
    input: int
    output: int
    cached: int | None
    preempted: bool
    finish: FinishReason
    max_tokens: int | None
    queue_us: int
    prefill_us: int
    decode_us: int


def finished(stats: Any, at: float) -> Finished:
    """Read one `FinishedRequestStats`; `at` is the time of its step, seconds since 1970."""
    told = engine_id(str(stats.request_id))
    ended, took = round(at * _MICRO), round(stats.e2e_latency * _MICRO)
    cached = stats.num_cached_tokens
    return Finished(
        told.api_id, told.prompt, told.beam, ended - took, took, stats.num_prompt_tokens, stats.num_generation_tokens,
        None if cached is None or cached < 0 else cached, stats.num_preemptions > 0,
        _FINISH.get(str(stats.finish_reason), FinishReason.OTHER), stats.max_tokens_param,
        round(stats.queued_time * _MICRO), round(stats.prefill_time * _MICRO), round(stats.decode_time * _MICRO),
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class _Group:
    """Requests of one call as far as they have finished."""

    requests: list[Finished]
    added_at: float
    held_at: float

    def takes(self, one: Finished) -> bool:
        """Whether a request is of the same call: by its id, and, but for beams, by the instant it arrived in."""
        first = self.requests[0]
        together = one.beam or abs(one.arrived_us - first.arrived_us) <= SAME_US
        return (one.api_id, one.beam) == (first.api_id, first.beam) and together


class EngineCalls:
    """Holds finished requests and writes their calls. Steps add, keeper and steps settle."""

    def __init__(self, recorder: Recorder, context: Context, desk: Desk, clock: Callable[[], float]) -> None:
        """Prepare.

        Args:
            recorder: where the engine's rows go.
            context: framework, version and model of all of them.
            desk: the calls the middleware of this process knows.
            clock: monotonic seconds.
        """
        self._recorder = recorder
        self._context = context
        self._desk = desk
        self._clock = clock
        self._lock = threading.RLock()
        self._groups: list[_Group] = []
        self._bindings: dict[Context, Binding] = {}
        self.external = False  # some prompt came out of an external cache: which part of which one, no request tells

    def add(self, one: Finished) -> None:
        """Take a finished request."""
        now = self._clock()
        with self._lock:
            for group in self._groups:
                if group.takes(one):
                    group.requests.append(one)
                    group.added_at = now
                    return
            self._groups.append(_Group([one], now, now))
            if len(self._groups) > _MOST:
                self._alone(self._groups.pop(0))

    def forget(self) -> None:
        """In a forked child: what is held here the parent writes."""
        self._lock = threading.RLock()
        self._groups = []

    def settle(self, *, at_rest: bool, last: bool = False) -> None:
        """Write the calls that are whole. `at_rest`: nothing runs in the engine; `last`: there is no later time."""
        now = self._clock()
        with self._lock:
            for group in list(self._groups):
                if self._settled(group, now, at_rest=at_rest, last=last):
                    self._groups.remove(group)

    def _settled(self, group: _Group, now: float, *, at_rest: bool, last: bool) -> bool:
        first = group.requests[0]
        calls = self._desk.fitting(first.api_id, first.arrived_us, first.max_tokens)
        quiet = last or now - group.added_at >= GRACE_S
        if not calls:
            old = now - group.held_at >= _LONGEST_S
            if not (last or old) and self._desk.awaits(first.api_id, first.arrived_us):
                return False
            if not (last or (quiet and at_rest) or now - group.added_at >= _ALONE_S):
                return False
            self._alone(group)
            return True
        over = all(call.closed_at is not None and now - call.closed_at >= GRACE_S for call in calls)
        if not (last or (over and quiet)):
            return False
        alone = len(calls) == 1 and not any(
            other is not group and self._fits(other, calls[0]) for other in self._groups
        )
        if alone:
            self._desk.take(calls[0])
        else:
            self._recorder.losses.count(GapReason.AMBIGUOUS, attempts=0)
        self._write(group, calls[0] if alone else None)
        return True

    def _alone(self, group: _Group) -> None:
        """Write requests without their call. Where one of their id is known, and is not of their time, that is said."""
        if self._desk.knows(group.requests[0].api_id):
            self._recorder.losses.count(GapReason.AMBIGUOUS, attempts=0)
        self._write(group, None)

    def _fits(self, group: _Group, call: ServedCall) -> bool:
        first = group.requests[0]
        return call in self._desk.fitting(first.api_id, first.arrived_us, first.max_tokens)

    def _write(self, group: _Group, call: ServedCall | None) -> None:
        requests = sorted(group.requests, key=lambda one: one.arrived_us) if group.requests[0].beam else group.requests
        first = min(requests, key=lambda one: one.arrived_us)
        binding = self._bound(call)
        attempt = binding.begin(key=None if call is None else call.key)
        attempt.arrived_us = first.arrived_us
        attempt.parameters = self._recorder.parameters(_parameters(requests))
        reasons = {one.finish for one in requests}
        finish = reasons.pop() if len(reasons) == 1 else None
        for number, kind, outcome, counts, parent in _children(requests):
            self._recorder.finish_child(attempt, number, kind, outcome, counts, parent)
        status = _STATUS.get(finish or FinishReason.STOP, AttemptStatus.SUCCEEDED)
        drafts = call.speculation if call is not None and len(requests) == 1 else None
        if drafts is not None and drafts.per_step and attempt.level > 1:
            attempt.offer_trace(partial(_verify_steps, drafts))
        attempt.finish(outcome_word(status, finish), self._counts(requests, drafts))
        self._name(attempt, first, joined=call is not None)

    def _name(self, attempt: Any, first: Finished, *, joined: bool) -> None:
        """The ids others know the call by; where the middleware saw it, its own row has them."""
        client = client_id(first.api_id)
        if not joined:
            put = self._recorder.put_foreign_id
            put(attempt, ForeignIdKind.RECORD_ID, f"{first.api_id}@{first.arrived_us}")
            put(attempt, ForeignIdKind.PROVIDER_RESPONSE_ID, first.api_id)
            if client is not None:
                put(attempt, ForeignIdKind.CLIENT_REQUEST_ID, client)

    def _bound(self, call: ServedCall | None) -> Binding:
        context = self._context
        if call is not None and call.context is not None:
            told = call.context
            context = replace(context, tenant=told.tenant, task=told.task, route=told.route)
        found = self._bindings.get(context)
        if found is None:
            if len(self._bindings) >= _MOST:
                self._bindings.clear()
            found = self._bindings[context] = self._recorder.bind(context, counts=COUNTS)
        return found

    def _counts(self, requests: Sequence[Finished], drafts: Speculation | None) -> tuple[int, ...]:
        prompts = sum(one.input for one in requests)
        cached = None if any(one.cached is None for one in requests) else sum(one.cached or 0 for one in requests)
        single = requests[0] if len(requests) == 1 else None
        known = {
            "input_computed": prompts,
            "cached_local": cached if not self.external or cached == 0 else None,
            "prefill_computed": None if cached is None else prompts - cached,
            "output_computed": sum(one.output for one in requests),
            # How much of it was computed again is in no record of the request.
            "recomputed": None if any(one.preempted for one in requests) else 0,
            "total_us": max(map(_end, requests)) - min(one.arrived_us for one in requests),
        }
        if single is not None:
            known |= {"queue_us": single.queue_us, "prefill_us": single.prefill_us, "decode_us": single.decode_us}
        if drafts is not None:
            known |= {
                "drafted": drafts.drafted,
                "accepted": drafts.accepted_tokens,
                "rejected": drafts.drafted - drafts.accepted_tokens,
                **_histogram(drafts.accepted),
            }
        return tuple(NULL if known.get(name) is None else int(known[name] or 0) for name in COUNTS)


def _end(one: Finished) -> int:
    return one.arrived_us + one.total_us


def _verify_steps(drafts: Speculation) -> list[StateEvent]:
    """Each verify step: how many of its drafted tokens were accepted. Which tokens, the server does not say."""
    return [
        StateEvent(
            seq=step, step=step, phase=Phase.VERIFY, axis=Axis.EMIT, op=Operation.ACCEPT, layer_lo=None, layer_hi=None,
            head_lo=None, head_hi=None, head_kind=HeadKind.NONE, pos_space=PositionSpace.DRAFT_NODE,
            n_universe=drafted, n_members=accepted, enc=Encoding.COUNT, fidelity=Fidelity.COUNTS,
        )
        for step, (drafted, accepted) in enumerate(drafts.per_step)
    ]  # fmt: skip


def _histogram(accepted: Sequence[int]) -> dict[str, int]:
    """Verify steps by how much of their draft they accepted, in the fixed bins."""
    bins = dict.fromkeys(ACCEPTED_STEPS, 0)
    for length, steps in enumerate(accepted):
        bins[f"accepted_steps_{'16' if length > 15 else '8_15' if length > 7 else length}"] += steps
    return bins


def _parameters(requests: Sequence[Finished]) -> Parameters:
    if not requests[0].beam:
        return Parameters(max_tokens=requests[0].max_tokens)
    lengths = [one.input for one in requests]
    # Each step of a beam asks for one token. As many beams go on side by side as have a prompt of one length.
    return Parameters(beams=max(lengths.count(length) for length in lengths))


def _children(requests: Sequence[Finished]) -> Iterable[tuple[int, ChildKind, int, tuple[int, ...], int]]:
    """Number, kind, outcome, counts, and the child it shares its prompt with, of the requests of a call of several."""
    if len(requests) == 1:
        return
    first: dict[int | None, int] = {}
    several = len({one.prompt for one in requests}) == len(requests)
    kind = ChildKind.BEAM if requests[0].beam else ChildKind.PROMPT if several else ChildKind.CHOICE
    for number, one in enumerate(requests, 1):
        known = {"input_computed": one.input, "output_computed": one.output}
        counts = tuple(known.get(name, NULL) for name in COUNTS)
        status = _STATUS.get(one.finish, AttemptStatus.SUCCEEDED)
        shared = first.setdefault(None if one.beam else one.prompt, number)
        yield number, kind, outcome_word(status, one.finish), counts, 0 if shared == number else shared
