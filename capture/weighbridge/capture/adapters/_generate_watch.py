"""What is put in place of methods of a model: `generate`, and three private methods that each run once per call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from weighbridge.capture.adapters import _speculation
from weighbridge.capture.adapters._generate_arguments import Arguments, fresh, prompts
from weighbridge.capture.adapters._generate_call import Call, Keys, beforehand, current
from weighbridge.capture.adapters._generate_reading import Reading, fail
from weighbridge.capture.adapters._method import Method
from weighbridge.capture.adapters._speculation import Drafts
from weighbridge.capture.binding import Binding
from weighbridge.capture.context import Parameters
from weighbridge.capture.guard import Guard

_HOME: Final = "transformers.generation.utils"
_KEPT: Final = 256


class Numbers:
    """The numbers that generation parameters have in a recorder's dictionary; the last few are kept at hand."""

    def __init__(self, binding: Binding) -> None:
        self._recorder = binding.recorder
        self._known: dict[Parameters, int] = {}

    def __call__(self, parameters: Parameters) -> int:
        number = self._known.get(parameters)
        if number is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            number = self._known[parameters] = self._recorder.parameters(parameters)
        return number


class Watched(Method):
    """`model.generate`, watched."""

    def __init__(self, model: Any, binding: Binding, keys: Keys, numbers: Numbers) -> None:
        super().__init__(model, "generate")
        self._binding = binding
        self._keys = keys
        self._numbers = numbers
        self._plain = getattr(self.original, "__module__", None) == _HOME

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = current.get()
        call = None
        with Guard("transformers.begin"):
            call = self._begin(args, kwargs) if outer is None else replace(outer, ignored=True)
        token = current.set(call)
        try:
            result = self.original(*args, **kwargs)
        except BaseException as error:
            if outer is None and call is not None and not call.batched:
                with Guard("transformers.failed"):
                    fail(self._binding, call, error, self.model, args, kwargs)
            raise
        finally:
            current.reset(token)
        if outer is None and call is not None and not call.batched:
            with Guard("transformers.finish"):
                arguments = Arguments(self.model, call, args, kwargs)
                Reading(self._binding, arguments, plain=self._plain, number=self._numbers).finish(result)
        return result

    def _begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        keys = self._keys.take(prompts(args, kwargs) or 1)
        attempt = self._binding.begin(key=keys[0] if keys else None)
        drafts = Drafts(keep=attempt.level >= 2)
        return Call(attempt, time.perf_counter_ns(), drafts, fresh(kwargs), keys, told=list(beforehand.get()))


class Hook(Method):
    """A private method of the model, with something done after it."""

    def __init__(self, model: Any, name: str, after: Callable[[Call, dict[str, Any], Any], None]) -> None:
        super().__init__(model, name)
        self._after = after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self.original(*args, **kwargs)
        call = current.get()
        if call is not None and not call.ignored:
            with Guard(f"transformers.{self.name}"):
                self._after(call, kwargs, answer)
        return answer


class FirstToken:
    """A stopping criterion that stops nothing: it takes the time at which the first token can be read, and leaves.

    It stands last in a list that belongs to one call, is called once, and is not there when the second token comes.
    """

    def __init__(self, call: Call, criteria: list[Any]) -> None:
        self._call = call
        self._criteria = criteria

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> bool:
        with Guard("transformers.first_token"):
            self._criteria.remove(self)
            # A device computes behind the host, which has to wait for the token in this step anyway.
            input_ids[0, -1].item()
            self._call.first_ns = time.perf_counter_ns()
        return False


def _note_lengths(call: Call, kwargs: dict[str, Any], config: Any) -> None:
    """Keeps the configuration as it was prepared, and how many columns the generation starts with."""
    if isinstance(kwargs.get("input_ids_length"), int):
        call.config, call.start = config, kwargs["input_ids_length"]
        call.prepared += 1


def _note_candidates(call: Call, _: dict[str, Any], generator: Any) -> None:
    _speculation.watch(generator, call.drafts)


def _await_first_token(call: Call, _: dict[str, Any], criteria: Any) -> None:
    if not call.first_ns:
        criteria.append(FirstToken(call, criteria))


HOOKS: Final = {
    "_prepare_generated_length": _note_lengths,
    "_get_stopping_criteria": _await_first_token,
    "_get_candidate_generator": _note_candidates,
}
