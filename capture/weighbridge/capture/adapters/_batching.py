"""Continuous batching: `generate_batch()`, and the manager behind it that servers use on their own.

An attempt begins when its prompt enters the manager's queue, in the thread of its caller, and is read when its last
sequence has ended, in the thread that generates. Nothing runs per generated token or per step: a request is met when
it is queued, when its prompt is looked up in the prefix cache, and when it ends, fails or is cancelled. Those of one
`generate_batch()` are written when it returns, for only then it is known whether its caller got them.
"""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.adapters._batch_request import Ended, Request
from weighbridge.capture.adapters._counts import stated
from weighbridge.capture.adapters._generate_call import Call, Keys, current
from weighbridge.capture.adapters._method import Method
from weighbridge.capture.adapters.adapter import Installed, put_attribute
from weighbridge.capture.binding import Binding
from weighbridge.capture.context import Parameters
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import outcome_word
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason
from weighbridge.schemas.identity import AttemptKey

_CHILD: Final = "__child#"
_SAMPLED: Final = ("temperature", "top_p", "top_k")


@dataclass(slots=True)
class Batch:
    """A call of `generate_batch()` under way.

    Attributes:
        keys: for each prompt the keys its attempts are known by, in order.
        requests: those that were queued.
    """

    keys: Mapping[tuple[int, ...], deque[AttemptKey | None]]
    requests: list[Request] = field(default_factory=list)

    def key(self, prompt: Sequence[int]) -> AttemptKey | None:
        """The next key of this prompt. The framework queues prompts in an order of its own."""
        waiting = self.keys.get(tuple(prompt))
        return waiting.popleft() if waiting else None

    def end(self, results: Mapping[str, Any], left: AttemptStatus | None) -> None:
        """Write the requests that ended.

        Args:
            results: what the caller got, by the name of its request.
            left: how the call ended where it did not return.
        """
        for request in self.requests:
            request.left = left or (None if request.id in results else AttemptStatus.FAILED)
            request.held = False
            # One that is still under way is written by the thread that generates.
            if request.complete():
                request.write()


_batch: ContextVar[Batch | None] = ContextVar("weighbridge_generate_batch", default=None)


class Batches(Method):
    """`model.generate_batch`, watched.

    Args:
        seen: the requests are met one by one; otherwise only what is returned is read.
    """

    def __init__(self, model: Any, binding: Binding, keys: Keys, *, seen: bool) -> None:
        super().__init__(model, "generate_batch")
        self._binding = binding
        self._keys = keys
        self._seen = seen

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        around = current.get()
        if around is not None and (around.ignored or around.attempt.binding is not self._binding):
            return self.original(*args, **kwargs)  # part of a call of another model
        inputs: Any = args[0] if args else kwargs.get("inputs")
        count = len(inputs) if hasattr(inputs, "__len__") else 0
        batch = Batch({})
        with Guard("transformers.batch"):
            batch = self._begin(inputs, count, around)
        token = _batch.set(batch)
        try:
            results = self.original(*args, **kwargs)
        except BaseException as error:
            with Guard("transformers.batch_failed"):
                batch.end({}, _left(error))
                self._write_unqueued(count - len(batch.requests), _left(error))
            raise
        finally:
            _batch.reset(token)
        with Guard("transformers.batch_finish"):
            if self._seen:
                batch.end(results, None)
                self._write_unqueued(count - len(batch.requests), AttemptStatus.FAILED)
            else:
                self._write_results(results)
        return results

    def _begin(self, inputs: Any, count: int, around: Call | None) -> Batch:
        if around is None:
            given: Sequence[AttemptKey | None] = self._keys.take(count)
        else:
            # `generate()` with a paged cache hands its prompts over.
            around.batched, given = True, around.keys
        keys: dict[tuple[int, ...], deque[AttemptKey | None]] = defaultdict(deque)
        if given:
            for prompt, key in zip(inputs, given, strict=False):
                keys[tuple(prompt)].append(key)
        return Batch(keys)

    def _write_unqueued(self, count: int, status: AttemptStatus) -> None:
        """Prompts that never reached the queue."""
        finish = FinishReason.ERROR if status is AttemptStatus.FAILED else FinishReason.ABORT
        for _ in range(count):
            self._binding.begin().finish(outcome_word(status, finish), stated({}))

    def _write_results(self, results: Mapping[str, Any]) -> None:
        """What another version returned: tokens in and out are there; how they came about is not known."""
        outputs: dict[str, list[Any]] = defaultdict(list)
        for name, output in results.items():
            outputs[name.split(_CHILD)[0]].append(output)
        for mine in outputs.values():
            status = AttemptStatus.FAILED if any(output.error for output in mine) else AttemptStatus.SUCCEEDED
            tokens = sum(len(output.generated_tokens) for output in mine)
            known = {"input_computed": len(mine[0].prompt_ids), "output_computed": tokens}
            failed = status is AttemptStatus.FAILED
            self._binding.begin().finish(outcome_word(status), stated({} if failed else known))


class Managers(Method):
    """`model.init_continuous_batching`, which every way into continuous batching goes through: its answer is watched.

    Managers are held weakly: what is put into one goes when it goes.
    """

    def __init__(self, model: Any, binding: Binding, keys: Keys, numbers: Callable[[Parameters], int]) -> None:
        super().__init__(model, "init_continuous_batching")
        self._binding = binding
        self._keys = keys
        self._numbers = numbers
        self._watched: weakref.WeakSet[Requests] = weakref.WeakSet()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        manager = self.original(*args, **kwargs)
        with Guard("transformers.manager"):
            # Into one that is watched already nothing is put again.
            self._watched.add(Requests(manager, self._binding, self._keys, self._numbers))
        return manager

    def remove(self) -> None:
        """Leave the managers that are still there as they were."""
        for requests in list(self._watched):
            requests.installed.remove()


class Requests:
    """The requests of one manager.

    Attributes:
        installed: what was put into it.
    """

    def __init__(self, manager: Any, binding: Binding, keys: Keys, numbers: Callable[[Parameters], int]) -> None:
        self.installed = Installed(supported=True)
        self._binding = binding
        self._keys = keys
        self._numbers = numbers
        self._config = manager.generation_config
        self._under_way: dict[str, Request] = {}
        self._put(manager.input_queue, "put", self._queue)
        self._put(manager.output_router, "fail_and_deliver", self._fail)
        self._put(manager, "_create_batch_processor", self._create)
        if manager.batch_processor is not None:
            self._watch(manager.batch_processor)

    def _put(self, target: Any, name: str, instead: Callable[..., Any]) -> None:
        """Call `instead` with a method and its arguments in the place of the method."""
        original = getattr(target, name)
        if not isinstance(original, _Instead):
            put_attribute(self.installed, target, name, _Instead(instead, original))

    def _watch(self, processor: Any) -> None:
        self._put(processor.cache, "search_prefix_match", self._search)
        self._put(processor.scheduler, "finish_request", self._finish)
        self._put(processor.scheduler, "set_request_cancellation", self._cancel)

    # -- in the threads of callers -------------------------------------------------------------------------------------

    def _queue(self, put: Callable[..., Any], state: Any, *args: Any, **kwargs: Any) -> Any:
        if _batch.get() is None and current.get() is not None:
            return put(state, *args, **kwargs)  # part of a call of `generate()`
        with Guard("transformers.queued"):
            self._begin(state)
        try:
            return put(state, *args, **kwargs)
        except BaseException as error:
            with Guard("transformers.refused"):
                request = self._under_way.pop(state.request_id)
                request.left = _left(error)
                request.write()
            raise

    def _begin(self, state: Any) -> None:
        batch = _batch.get()
        keys = self._keys.take(1) if batch is None else [batch.key(state.initial_tokens)]
        attempt = self._binding.begin(key=keys[0] if keys else None)
        attempt.parameters = self._numbers(self._parameters(state))
        eos = state.eos_token_id
        request = Request(
            attempt,
            id=state.request_id,
            began=state.created_time,
            wanted=1 + state.num_children,
            ends=() if eos is None else tuple(eos) if isinstance(eos, (list, tuple)) else (eos,),
            limit=state.max_new_tokens,
            held=batch is not None,
        )
        self._under_way[request.id] = request
        if batch is not None:
            batch.requests.append(request)

    def _parameters(self, state: Any) -> Parameters:
        own, sampled = state.logit_processor_kwargs, self._config.do_sample
        return Parameters(
            max_tokens=state.max_new_tokens,
            n=1 + state.num_children,
            **{name: own.get(name, getattr(self._config, name, None)) for name in _SAMPLED if sampled},
        )

    # -- in the thread that generates ----------------------------------------------------------------------------------

    def _create(self, create: Callable[..., Any]) -> Any:
        processor = create()
        with Guard("transformers.processor"):
            self._watch(processor)
        return processor

    def _search(self, search: Callable[..., int], name: str, tokens: list[int]) -> int:
        found = search(name, tokens)
        with Guard("transformers.prefix"):
            if (request := self._under_way.get(name)) is not None:
                request.cached = found
        return found

    def _finish(self, finish: Any, name: str) -> Any:
        with Guard("transformers.ended"):
            state = finish.__self__.active_requests.get(name)
            # One that makes room for others is finished here too, to be queued again; it has no end of its own.
            if state is not None and state.status.name == "FINISHED" and state.lifespan[1] >= 0:
                self._end(state, AttemptStatus.SUCCEEDED)
        return finish(name)

    def _cancel(self, cancel: Any, name: str) -> Any:
        with Guard("transformers.cancelled"):
            scheduler = cancel.__self__
            state = scheduler.active_requests.get(name) or scheduler.waiting_requests.get(name)
            if state is not None:
                self._end(state, AttemptStatus.ABORTED)
        return cancel(name)

    def _fail(self, fail: Callable[..., Any], state: Any, error: Exception) -> Any:
        answer = fail(state, error)
        with Guard("transformers.failed"):
            self._end(state, AttemptStatus.FAILED)
        return answer

    def _end(self, state: Any, status: AttemptStatus) -> None:
        """One sequence of a request ended."""
        name, _, fork = state.request_id.partition(_CHILD)
        child = 2 + int(fork) if fork else 1
        request = self._under_way.get(name)
        if request is None or any(each.child == child for each in request.ended):
            return
        if status is not AttemptStatus.SUCCEEDED:
            request.wanted -= state.num_children  # it will not be forked any more
        restarted = state._true_initial_tokens > 0  # noqa: SLF001 - nothing else tells
        request.ended.append(Ended(child, state.to_generation_output(), status, restarted))
        if request.complete():
            self._under_way.pop(name, None)
            if not request.held:
                request.write()


class _Instead:
    """A callable in the place of a bound method."""

    __slots__ = ("_instead", "_original")

    def __init__(self, instead: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._instead = instead
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._instead(self._original, *args, **kwargs)


def _left(error: BaseException) -> AttemptStatus:
    return AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.ABORTED
