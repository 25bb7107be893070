"""`generate()` of transformers 5.x: one attempt per prompt, read once when the call is over.

    with transformers.ADAPTER.install(model, recorder, Context(model_served="tiny-llama"), tokenizer=tokenizer):
        model.generate(...)

What the host gets is what it would have got: nothing of the call is changed, exceptions pass as they are, and no code
runs per generated token (per verify step under speculation, a few integers). Two private methods are wrapped on the
instance, each called once per call: the one that fixes the lengths and the one that makes the candidate generator.
Outside the versions this was run with, neither is touched: prompt and output are still counted where the result shows
them beyond doubt, drafts are unknown.

Computed: every token generated for a returned sequence, its end token included. Delivered: without the end token, which
a host skips when it decodes. A stop string stays in the ids and is delivered. Beams that were not returned appear in
`forward` only. Counts of an assistant model's own passes are not in `forward`.

Inside a server's middleware of this product a single prompt takes the key of the answer, so that both rows are of one
attempt; the recorder of each then needs an installation name of its own, for a row is known by its key and its source.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._generation import UNKNOWN, Asked, Drafts, Row, Work, rows, work
from weighbridge.capture.adapters._identity import model_fingerprint
from weighbridge.capture.adapters.adapter import Adapter, Installed, put_attribute
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.wire.carried import answering
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, FinishReason, RunStream
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

COUNTS: Final = (
    "input_computed", "cached_local", "cached_external", "prefill_computed", "output_computed", "output_delivered",
    "withheld_end_token", "drafted", "accepted", "rejected", "bonus", "undrafted", "recomputed", "verify_width",
    "padding", "forward", "first_token_us", "total_us",
)  # fmt: skip
_SETTINGS: Final = (
    "eos_token_id", "pad_token_id", "max_length", "max_new_tokens", "min_new_tokens", "num_beams",
    "num_return_sequences", "use_cache", "do_sample", "temperature", "top_p", "top_k", "length_penalty",
    "stop_strings", "guidance_scale", "penalty_alpha", "dola_layers", "token_healing",
)  # fmt: skip
_KEPT: Final = 256
_NOTHING: Final = (UNKNOWN,) * len(COUNTS)


@dataclass(slots=True)
class _Call:
    """A call of `generate()` under way."""

    attempt: Attempt
    began_ns: int
    drafts: Drafts
    fresh: bool
    keys: Sequence[AttemptKey | None] = ()
    config: Any = None
    start: int | None = None
    ignored: bool = False


_call: ContextVar[_Call | None] = ContextVar("weighbridge_generate", default=None)
_keys: ContextVar[Sequence[AttemptKey]] = ContextVar("weighbridge_generate_keys", default=())


@contextmanager
def attempt_keys(*keys: AttemptKey) -> Iterator[None]:
    """Give the next call's attempts these keys, in the order of its prompts: those a caller already knows them by."""
    token = _keys.set(keys)
    try:
        yield
    finally:
        _keys.reset(token)


class _Watched:
    """`model.generate`, watched. Copies and pickles of the model get their own, unwatched method."""

    def __init__(self, model: Any, original: Callable[..., Any], binding: Binding) -> None:
        functools.update_wrapper(self, original)
        self._model = model
        self._original = original
        self._binding = binding
        self._known: dict[Parameters, int] = {}
        self._taken: set[AttemptKey] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._model, "generate")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = _call.get()
        call = None
        with Guard("transformers.begin"):
            call = self._begin(args, kwargs) if outer is None else replace(outer, ignored=True)
        token = _call.set(call)
        try:
            result = self._original(*args, **kwargs)
        except BaseException as error:
            if outer is None and call is not None:
                with Guard("transformers.failed"):
                    self._failed(call, error, args, kwargs)
            raise
        finally:
            _call.reset(token)
        if outer is None and call is not None:
            with Guard("transformers.finish"):
                _Reading(self._model, self._binding, call, args, kwargs).finish(result, self._known)
        return result

    def _begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> _Call:
        keys = [self._once(key) for key in _given_keys(args, kwargs)]
        attempt = self._binding.begin(key=keys[0] if keys else None)
        return _Call(attempt, time.perf_counter_ns(), Drafts(keep=attempt.level >= 2), _fresh(kwargs), keys)

    def _once(self, key: AttemptKey) -> AttemptKey | None:
        """The key, the first time; a second call for the same answer is an attempt of its own, not a revision."""
        if key in self._taken:
            return None
        if len(self._taken) >= _KEPT:
            self._taken.clear()
        self._taken.add(key)
        return key

    def _failed(self, call: _Call, error: BaseException, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """An exception ends every prompt of the call; how far the engine had come is known of verify steps only."""
        aborted = not isinstance(error, Exception)
        word = outcome_word(
            AttemptStatus.ABORTED if aborted else AttemptStatus.FAILED,
            FinishReason.ABORT if aborted else FinishReason.ERROR,
        )
        counts = dict(zip(COUNTS, _NOTHING, strict=True))
        counts["total_us"] = (time.perf_counter_ns() - call.began_ns) // 1000
        if call.drafts.accepted:
            counts |= _drafting(call.drafts, sum(call.drafts.accepted) + len(call.drafts.accepted))
        prompts = _tensor(args, kwargs, "inputs", "input_ids", "inputs_embeds")
        for attempt in _attempts(self._binding, call, 1 if prompts is None else prompts.shape[0]):
            attempt.finish(word, tuple(counts.values()))


def _fresh(kwargs: dict[str, Any]) -> bool:
    """Whether the call starts without keys and values of earlier calls.

    How many tokens a cache stands for cannot be told from its length once something was evicted from it.
    """
    given = [kwargs[name] for name in ("cache", "past_key_values") if kwargs.get(name) is not None]
    return all(hasattr(cache, "get_seq_length") and int(cache.get_seq_length()) == 0 for cache in given)


def _given_keys(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[AttemptKey]:
    """The keys the caller named, else, for a single prompt, that of the answer a server's middleware is watching."""
    given = _keys.get()
    if given or (around := answering.get()) is None:
        return given
    prompts = _tensor(args, kwargs, "inputs", "input_ids", "inputs_embeds")
    return (around.key,) if prompts is None or prompts.shape[0] == 1 else ()


def _attempts(binding: Binding, call: _Call, count: int) -> list[Attempt]:
    """One attempt per prompt; all arrived when the call began."""
    out = [call.attempt]
    for index in range(1, count):
        attempt = binding.begin(key=call.keys[index] if index < len(call.keys) else None)
        attempt.arrived_us = call.attempt.arrived_us
        out.append(attempt)
    return out


def _tensor(args: Sequence[Any], kwargs: dict[str, Any], *names: str) -> Any:
    """The first argument of these names that is a tensor; `inputs` may stand first without a name."""
    for name in names:
        value = args[0] if name == "inputs" and args else kwargs.get(name)
        if hasattr(value, "shape"):
            return value
    return None


class _Reading:
    """Reads one finished call."""

    def __init__(self, model: Any, binding: Binding, call: _Call, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.took_us = (time.perf_counter_ns() - call.began_ns) // 1000
        self.model = model
        self.binding = binding
        self.call = call
        self.kwargs = kwargs
        self.given = args[1] if len(args) > 1 else kwargs.get("generation_config")
        self.criteria = args[3] if len(args) > 3 else kwargs.get("stopping_criteria")
        self.ids = _tensor(args, kwargs, "inputs", "input_ids")
        self.embeds = _tensor((), kwargs, "inputs_embeds")
        self.mask = _tensor((), kwargs, "attention_mask")
        self.both_ways = bool(getattr(model.config, "is_encoder_decoder", False))
        self.settings = {name: self._setting(name) for name in _SETTINGS}

    def _setting(self, name: str) -> Any:
        """A generation setting: as it was prepared, else as the call, its configuration or the model's gives it."""
        if self.call.config is not None:
            return getattr(self.call.config, name, None)
        for value in (
            self.kwargs.get(name),
            getattr(self.given, name, None),
            getattr(self.model.generation_config, name, None),
        ):
            if value is not None:
                return value
        return None

    def finish(self, result: Any, known: dict[Parameters, int]) -> None:
        """Write the attempts of the call. `known` keeps numbers of parameters."""
        sequences = getattr(result, "sequences", result)
        first = self.embeds if self.ids is None else self.ids
        prompts = 1 if first is None else first.shape[0]
        start = self._start(sequences)
        asked = self._asked(start)
        parameters = _number(self.binding.recorder, self._parameters(start), known)
        found = None if start is None else rows(sequences, start, asked)
        lengths = self._prompt_lengths(prompts)
        for index, attempt in enumerate(_attempts(self.binding, self.call, prompts)):
            attempt.parameters = parameters
            if found is None or start is None:
                self._write_unread(attempt, lengths[index])
                continue
            each = len(found) // prompts
            mine = range(index * each, (index + 1) * each)
            steps = sequences.shape[1] - start
            done = self._work(lengths[index], steps, [found[at].computed for at in mine], asked)
            self._write(attempt, index, lengths[index], sequences, start, mine, found, done)

    # -- the arguments -------------------------------------------------------------------------------------------------

    def _start(self, sequences: Any) -> int | None:
        """Columns of the result that were not generated; None where that is not certain."""
        if not hasattr(sequences, "shape") or len(sequences.shape) != 2:
            return None
        if self.call.start is not None:
            return self.call.start if sequences.shape[1] >= self.call.start else None
        if self.both_ways or self.ids is None or len(self.ids.shape) != 2:
            return None
        (count, width), (returned, whole) = self.ids.shape, sequences.shape
        if whole < width or not count or returned % count:
            return None
        again = self.ids if returned == count else self.ids.repeat_interleave(returned // count, 0)
        return width if bool((sequences[:, :width] == again.to(sequences.device)).all()) else None

    def _asked(self, start: int | None) -> Asked:
        wanted = self.settings
        eos = wanted["eos_token_id"]
        limit = wanted["max_length"]
        if self.call.config is None and wanted["max_new_tokens"] is not None and start is not None:
            limit = start + wanted["max_new_tokens"]
        return Asked(
            eos=() if eos is None else tuple(map(int, eos)) if isinstance(eos, (list, tuple)) else (int(eos),),
            pad=self._pad(),
            limit=limit,
            beams=wanted["num_beams"] or 1,
            cached=wanted["use_cache"] is not False,
            stop=self._stop_check(),
            foreign=bool(self.criteria),
            odd=self._odd(),
        )

    def _pad(self) -> int | None:
        """The padding token; where none is set, `generate()` pads with the first end token."""
        pad = self.settings["pad_token_id"]
        if pad is None:
            eos = self.settings["eos_token_id"]
            pad = (eos[0] if eos else None) if isinstance(eos, (list, tuple)) else eos
        return None if pad is None else int(pad)

    def _stop_check(self) -> Any:
        strings, tokenizer = self.settings["stop_strings"], self.kwargs.get("tokenizer")
        if not strings or tokenizer is None:
            return None
        from transformers import StopStringCriteria  # noqa: PLC0415 - the host has loaded it

        criteria = StopStringCriteria(tokenizer=tokenizer, stop_strings=strings)
        return lambda ids: criteria(ids, None)

    def _odd(self) -> bool:
        """Whether forward passes are run that no formula covers: a cache that was filled before, guidance, others."""
        wanted = self.settings
        return (
            self.both_ways
            or not self.call.fresh
            or bool(self.kwargs.get("synced_gpus"))
            or self.kwargs.get("custom_generate") is not None
            or wanted["guidance_scale"] not in (None, 1, 1.0)
            or any(wanted[name] for name in ("penalty_alpha", "dola_layers", "token_healing"))
        )

    def _parameters(self, start: int | None) -> Parameters:
        wanted = self.settings
        most, sampled, beams = wanted["max_new_tokens"], wanted["do_sample"], wanted["num_beams"] or 1
        if most is None and wanted["max_length"] is not None and start is not None:
            most = wanted["max_length"] - start
        strings = wanted["stop_strings"]
        return Parameters(
            max_tokens=most,
            min_tokens=wanted["min_new_tokens"],
            temperature=wanted["temperature"] if sampled else None,
            top_p=wanted["top_p"] if sampled else None,
            top_k=wanted["top_k"] if sampled else None,
            n=wanted["num_return_sequences"] or 1,
            beams=beams,
            length_penalty=wanted["length_penalty"] if beams > 1 else None,
            stop_strings=0 if not strings else 1 if isinstance(strings, str) else len(strings),
        )

    def _prompt_lengths(self, prompts: int) -> list[int]:
        """Tokens of each prompt: by the attention mask, else by the rule `generate()` itself uses without one."""
        if self.mask is not None and len(self.mask.shape) == 2 and self.mask.shape[0] == prompts:
            return [int(value) for value in self.mask.sum(1).tolist()]
        if self.ids is None or len(self.ids.shape) != 2:
            width = self.call.start if self.embeds is None else self.embeds.shape[1]
            return [UNKNOWN if width is None or self.ids is not None else int(width)] * prompts
        width, pad = self.ids.shape[1], self.settings["pad_token_id"]
        eos = self.settings["eos_token_id"]
        ends = eos if isinstance(eos, (list, tuple)) else (eos,)
        if self.both_ways or pad is None or pad in ends:
            return [width] * prompts
        return [int(value) for value in (self.ids != pad).sum(1).tolist()]

    # -- the counts ----------------------------------------------------------------------------------------------------

    def _work(self, prompt: int, steps: int, computed: list[int], asked: Asked) -> Work:
        if self.both_ways:
            return Work(prefill=prompt)
        first = self.ids if self.embeds is None else self.embeds
        width = prompt if first is None else first.shape[1]
        return work(prompt, width, steps, computed, asked, self.call.drafts)

    def _write_unread(self, attempt: Attempt, prompt: int) -> None:
        """The call succeeded, but what it returned does not show beyond doubt what was generated."""
        counts = dict(zip(COUNTS, _NOTHING, strict=True))
        counts |= {"input_computed": prompt, "total_us": self.took_us}
        attempt.finish(outcome_word(AttemptStatus.SUCCEEDED), tuple(counts.values()))

    def _write(
        self, attempt: Attempt, index: int, prompt: int, sequences: Any, start: int, mine: range, found: list[Row],
        done: Work,
    ) -> None:  # fmt: skip
        mark = [found[at] for at in mine]
        beams = (self.settings["num_beams"] or 1) > 1
        if len(mark) > 1:
            for child, row in enumerate(mark, 1):
                self._write_child(attempt, child, ChildKind.BEAM if beams else ChildKind.CHOICE, prompt, row)
        counts = self._counts(prompt, mark, done)
        expected = -1
        if attempt.level >= 2:
            expected = self.binding.recorder.offer_ids(
                attempt, list(self._runs(attempt, index, prompt, sequences, start, mine, found))
            )
        finishes = {row.finish for row in mark}
        finish = finishes.pop() if len(finishes) == 1 else FinishReason.OTHER
        attempt.finish(outcome_word(AttemptStatus.SUCCEEDED, finish), tuple(counts.values()), None, expected)

    def _counts(self, prompt: int, mark: list[Row], done: Work) -> dict[str, int]:
        counts = dict(zip(COUNTS, _NOTHING, strict=True))
        fresh = self.call.fresh
        output = UNKNOWN if any(row.computed < 0 for row in mark) else sum(row.computed for row in mark)
        ends = sum(row.end_token for row in mark)
        counts |= {
            "input_computed": prompt,
            "cached_local": 0 if fresh else UNKNOWN,
            "cached_external": 0 if fresh else UNKNOWN,
            "prefill_computed": prompt if fresh else UNKNOWN,
            "output_computed": output,
            "output_delivered": output if output < 0 else output - ends,
            "withheld_end_token": UNKNOWN if output < 0 else ends,
            "recomputed": done.recomputed,
            "verify_width": done.verify_width,
            "padding": done.padding,
            "forward": done.forward,
            "total_us": self.took_us,
        }
        if self.call.config is not None:
            counts |= _drafting(self.call.drafts, output)
            if self.call.drafts.first_ns:
                counts["first_token_us"] = (self.call.drafts.first_ns - self.call.began_ns) // 1000
        return counts

    def _write_child(self, attempt: Attempt, child: int, kind: ChildKind, prompt: int, row: Row) -> None:
        counts = dict(zip(COUNTS, _NOTHING, strict=True))
        known = row.computed >= 0
        counts |= {
            "input_computed": prompt,
            "output_computed": row.computed,
            "output_delivered": row.computed - row.end_token if known else UNKNOWN,
            "withheld_end_token": int(row.end_token) if known else UNKNOWN,
        }
        word = outcome_word(AttemptStatus.SUCCEEDED, row.finish)
        self.binding.recorder.finish_child(attempt, child, kind, word, tuple(counts.values()))

    # -- the ids -------------------------------------------------------------------------------------------------------

    def _runs(
        self, attempt: Attempt, index: int, prompt: int, sequences: Any, start: int, mine: range, found: list[Row]
    ) -> Iterator[Run]:
        """The ids of one attempt: its prompt, each output, and each verify step's draft (position, proposed ids).

        How many of a draft were accepted follows from where the next one starts. Rows are copied: what the host does to
        its tensors later does not reach them, and they do not hold on to the batch.
        """
        number = 0
        if self.ids is not None:
            yield Run(attempt.hi, attempt.lo, 0, number, RunStream.PROMPT, 0, _copy(self._prompt(index, prompt)))
            number += 1
        for child, at in enumerate(mine, 1):
            computed = found[at].computed
            if computed > 0:
                ids = _copy(sequences[at, start : start + computed])
                slot = child if len(mine) > 1 else 0
                yield Run(attempt.hi, attempt.lo, slot, number, RunStream.OUTPUT, 0, ids)
                number += 1
        for position, ids in zip(self.call.drafts.starts, self.call.drafts.ids, strict=False):
            yield Run(attempt.hi, attempt.lo, 0, number, RunStream.DRAFT, position, _copy(ids))
            number += 1

    def _prompt(self, index: int, length: int) -> Any:
        """The prompt without its padding, wherever that stands."""
        row = self.ids[index]
        if self.mask is not None and self.mask.shape == self.ids.shape:
            return row[self.mask[index] != 0]
        return row if length == row.shape[0] else row[row != self.settings["pad_token_id"]]


def _number(recorder: Recorder, parameters: Parameters, known: dict[Parameters, int]) -> int:
    """The number of these parameters in the recorder's dictionary; the last few are kept at hand."""
    number = known.get(parameters)
    if number is None:
        if len(known) >= _KEPT:
            known.clear()
        number = known[parameters] = recorder.parameters(parameters)
    return number


def _copy(ids: Any) -> Any:
    return ids.detach().to("cpu", copy=True)


def _drafting(drafts: Drafts, output: int) -> dict[str, int]:
    """What speculation did. Without a draft every token is undrafted. What does not add up to the output is unknown."""
    drafted, accepted, steps = sum(drafts.drafted), sum(drafts.accepted), len(drafts.accepted)
    counts = {"drafted": drafted, "accepted": accepted, "rejected": drafted - accepted}
    if not steps:
        return counts | {"bonus": 0, "undrafted": output}
    if accepted + steps != output:
        return counts | {"bonus": UNKNOWN, "undrafted": UNKNOWN}
    bonus = sum(1 for length in drafts.drafted[:steps] if length)
    return counts | {"bonus": bonus, "undrafted": steps - bonus}


class _Hook:
    """A private method of the model, with something done after it. Copies of the model get their own, plain method."""

    def __init__(self, model: Any, name: str, after: Callable[[_Call, dict[str, Any], Any], None]) -> None:
        self._model = model
        self._name = name
        self._after = after
        self._original = getattr(model, name)
        functools.update_wrapper(self, self._original)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._model, self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._original(*args, **kwargs)
        call = _call.get()
        if call is not None and not call.ignored:
            with Guard(f"transformers.{self._name}"):
                self._after(call, kwargs, answer)
        return answer


def _note_lengths(call: _Call, kwargs: dict[str, Any], config: Any) -> None:
    """Keeps the configuration as it was prepared, and how many columns the generation starts with."""
    if isinstance(kwargs.get("input_ids_length"), int):
        call.config, call.start = config, kwargs["input_ids_length"]


def _note_candidates(call: _Call, _: dict[str, Any], generator: Any) -> None:
    """Notes, per verify step, how many tokens the candidate generator proposed and how many were accepted."""
    _note_drafts(generator, call.drafts)


def _note_drafts(generator: Any, drafts: Drafts) -> None:
    propose, update = generator.get_candidates, generator.update_candidate_strategy

    def get_candidates(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        answer = propose(input_ids, *args, **kwargs)
        with Guard("transformers.draft"):
            before = input_ids.shape[1]
            drafts.starts.append(before)
            drafts.drafted.append(answer[0].shape[1] - before)
            if drafts.keep:
                drafts.ids.append(answer[0][0, before:])
        return answer

    def update_candidate_strategy(input_ids: Any, scores: Any, num_matches: Any, *args: Any, **kwargs: Any) -> Any:
        with Guard("transformers.accept"):
            drafts.first_ns = drafts.first_ns or time.perf_counter_ns()
            drafts.accepted.append(int(num_matches))
        return update(input_ids, scores, num_matches, *args, **kwargs)

    vars(generator)["get_candidates"] = get_candidates
    vars(generator)["update_candidate_strategy"] = update_candidate_strategy


_WATCHED: Final = {"_prepare_generated_length": _note_lengths, "_get_candidate_generator": _note_candidates}


def install(
    model: Any,
    recorder: Recorder,
    context: Context | None = None,
    *,
    tokenizer: Any = None,
    fingerprint: bool = True,
) -> Installed:
    """Watch `model.generate` until the answer is removed or its `with` block ends.

    Args:
        model: a model with `generate`.
        recorder: where attempts go.
        context: provenance, tenant, task, route; framework, version and fingerprints are added where it has none.
        tokenizer: the tokenizer of the model's callers, for its fingerprint and its template's.
        fingerprint: whether to read a sample of the weights for `model_revision`.

    Raises:
        ConfigError: the model has no `generate`, or is watched already.
    """
    original = getattr(model, "generate", None)
    if original is None:
        raise ConfigError(f"{type(model).__name__} has no generate(); pass a generative model of transformers")
    if isinstance(original, _Watched):
        raise ConfigError("generate() of this model is watched already; remove that first")
    binding = recorder.bind(_provenance(model, context or Context(), tokenizer, fingerprint=fingerprint), counts=COUNTS)
    installed = Installed(supported=ADAPTER.admit(recorder))
    if installed.supported:
        for name, after in _WATCHED.items():
            if callable(getattr(model, name, None)):
                put_attribute(installed, model, name, _Hook(model, name, after))
    put_attribute(installed, model, "generate", _Watched(model, original, binding))
    return installed


def _provenance(model: Any, context: Context, tokenizer: Any, *, fingerprint: bool) -> Context:
    found: dict[str, str | None] = {"framework": "transformers", "framework_version": ADAPTER.version()}
    with Guard("transformers.fingerprint"):
        if fingerprint:
            found["model_revision"] = model_fingerprint(model)
        if tokenizer is not None:
            from weighbridge.recount.transformers import TransformersRecounter  # noqa: PLC0415 - takes a second

            counter = TransformersRecounter(tokenizer)
            found |= {"tokenizer": counter.tokenizer, "template": counter.template}
    missing = {name: value for name, value in found.items() if getattr(context, name) is None}
    return replace(context, **missing)  # type: ignore[arg-type]


ADAPTER: Final = Adapter(name="transformers", framework="transformers", first="5.24", below="5.25", install=install)
