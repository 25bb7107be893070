"""The host around `generate()`: its objects stay as they are, its errors are its own, and ours never reach it."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.capture.adapters.conftest import END, PROMPT, Force, check, one, paged, tiny

from weighbridge.capture import guard
from weighbridge.capture.adapters import (
    _batch_request,
    _batching,
    _generate_arguments,
    _generate_call,
    _generate_reading,
    _generate_watch,
    _speculation,
    _token_runs,
)
from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.content import Run
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import RunStream

# Many models or many erasures: with the tests of whole systems.
pytestmark = pytest.mark.system

Read = Callable[[Recorder, str], list[dict[str, Any]]]


def raising(*_: Any, **__: Any) -> Any:
    raise RuntimeError("CANARY")


# Where something of ours could break, and how: every one of them in turn.
BREAKS: dict[str, tuple[Any, str]] = {
    "begin": (Binding, "begin"),
    "keys": (_generate_call.Keys, "take"),
    "arguments": (_generate_arguments.Arguments, "__init__"),
    "reading": (_generate_reading.Reading, "finish"),
    "failing": (_generate_watch, "fail"),
    "fresh": (_generate_watch, "fresh"),
    "drafted": (_speculation.Drafts, "__init__"),
    "first_token": (time, "perf_counter_ns"),
    "numbers": (_generate_watch.Numbers, "__call__"),
    "drafts": (_speculation, "watch"),
    "runs": (_token_runs, "offer"),
    "batch": (_batching.Batches, "_begin"),
    "batch_end": (_batching.Batch, "end"),
    "managers": (_batching, "Requests"),
    "queued": (_batching.Requests, "_begin"),
    "watch": (_batching.Requests, "_watch"),
    "ended": (_batching.Requests, "_end"),
    "written": (_batch_request.Request, "write"),
}


@pytest.mark.parametrize("where", BREAKS)
def test_what_breaks_in_us_does_not_break_the_host(
    where: str, frameworks: tuple[Any, Any], deep_recorder: Recorder, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    torch, transformers = frameworks
    model = tiny(frameworks)
    monkeypatch.delenv(guard.RAISE_VARIABLE)

    def run() -> list[Any]:
        torch.manual_seed(2)
        if target in (_batching, _batching.Batches, _batching.Batch, _batching.Requests, _batch_request.Request):
            results = model.generate_batch([PROMPT, PROMPT[:3]], **paged(transformers, max_new_tokens=4))
            return [{name: result.generated_tokens for name, result in results.items()}]
        with pytest.raises(ZeroDivisionError):
            model.generate(**one(torch), max_new_tokens=9, logits_processor=[lambda *_: 1 / 0])
        return [
            model.generate(**one(torch), max_new_tokens=9, do_sample=True, num_return_sequences=2).tolist(),
            model.generate(**one(torch), max_new_tokens=9, do_sample=False, prompt_lookup_num_tokens=4).tolist(),
        ]

    target, name = BREAKS[where]
    there, before = set(vars(model)), run()
    installed = adapter.install(model, deep_recorder)
    with monkeypatch.context() as patch:
        patch.setattr(target, name, raising)
        after = run()
    installed.remove()
    assert after == before
    assert set(vars(model)) == there
    assert "CANARY" not in caplog.text


def test_the_hosts_criteria_processors_and_configuration_stay_as_they_are(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, transformers = frameworks
    seen: list[int] = []

    class Note:
        def __call__(self, ids: Any, *_: Any, **__: Any) -> Any:
            seen.append(ids.shape[1])
            return torch.zeros(ids.shape[0], dtype=torch.bool)

    criteria = transformers.StoppingCriteriaList([Note()])
    processors = transformers.LogitsProcessorList([Force(8, [[9] * 4])])
    config = transformers.GenerationConfig(max_new_tokens=4, do_sample=False)
    lists, before = (list(criteria), list(processors)), copy.deepcopy(vars(config))
    with adapter.install(llama, recorder):
        llama.generate(torch.tensor([PROMPT]), config, processors, criteria)
        llama.generate(inputs=torch.tensor([PROMPT]), generation_config=config, stopping_criteria=criteria)
    assert (list(criteria), list(processors)) == lists
    assert vars(config) == before
    assert seen[:4] == [9, 10, 11, 12]
    rows = written(recorder, "attempt")
    assert [(row["input_computed"], row["output_computed"], row["max_tokens"]) for row in rows] == [(8, 4, 4)] * 2


@pytest.mark.parametrize("raised", [KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, SystemExit, OSError])
def test_a_streamer_that_raises_ends_the_attempt(
    raised: type[BaseException], frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    error = raised("CANARY")

    class Broken:
        def __init__(self) -> None:
            self.put_before = 0

        def put(self, _: Any) -> None:
            self.put_before += 1
            if self.put_before == 4:
                raise error

        def end(self) -> None: ...

    with adapter.install(llama, recorder), pytest.raises(raised) as seen:
        llama.generate(**one(torch), max_new_tokens=9, min_new_tokens=9, do_sample=False, streamer=Broken())
    assert seen.value is error
    (row,) = written(recorder, "attempt")
    assert row["status"] == ("failed" if issubclass(raised, Exception) else "aborted")
    assert {row[name] for name in ("input_computed", "output_computed", "output_delivered")} == {None}
    assert row["prefill_us"] + row["decode_us"] == row["total_us"]


def test_of_embeddings_the_positions_are_known_and_the_ids_are_not(
    frameworks: tuple[Any, Any], llama: Any, deep_recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, _ = frameworks
    embed = llama.get_input_embeddings()
    ids = torch.tensor([[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]])
    mask = (ids != 0).long()
    offered: list[Run] = []

    def note(attempt: Attempt, runs: list[Run]) -> int:
        offered.extend(runs)
        return -1

    monkeypatch.setattr(deep_recorder, "offer_ids", note)
    settings = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False}
    with adapter.install(llama, deep_recorder):
        masked = llama.generate(inputs_embeds=embed(ids), attention_mask=mask, **settings)
        both = llama.generate(torch.tensor([[4] * 5]), inputs_embeds=embed(ids[1:]), **settings)
    assert masked.shape == (2, 3)
    assert both.shape[1] == 5 + 3
    rows = written(deep_recorder, "attempt")
    names = ("input_computed", "prefill_computed", "output_computed", "padding")
    assert [tuple(row[name] for name in names) for row in rows] == [(3, 3, 3, 2), (5, 5, 3, 0), (5, 5, 3, 0)]
    assert {run.stream for run in offered} == {RunStream.OUTPUT}
    assert [run.ids.tolist() for run in offered] == [*masked.tolist(), both[0, 5:].tolist()]


def test_calls_of_many_threads_and_a_removal_in_their_midst(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    ready, removed = threading.Barrier(5), threading.Event()

    def run(number: int) -> list[int]:
        def wait(ids: Any, scores: Any) -> Any:
            if ids.shape[1] == 10:
                ready.wait(timeout=60)
                removed.wait(timeout=60)
            return scores

        out = model.generate(
            **one(torch), max_new_tokens=30, do_sample=False, return_dict_in_generate=bool(number % 2),
            prompt_lookup_num_tokens=4 if number == 3 else None, logits_processor=[
                Force(8, [[9, 9, 9, *[9] * number, END]]), wait if number < 3 else lambda _, scores: scores,
            ],
        )  # fmt: skip
        if number == 3:
            ready.wait(timeout=60)
            removed.wait(timeout=60)
        return [int(token) for token in getattr(out, "sequences", out)[0]]

    with ThreadPoolExecutor(4) as pool:
        installed = adapter.install(model, recorder)
        runs = [pool.submit(run, number) for number in range(4)]
        ready.wait(timeout=60)
        installed.remove()
        there = set(vars(model))
        removed.set()
        outputs = [each.result() for each in runs]
    assert not there & {"generate", "_get_stopping_criteria", "_prepare_generated_length", "_get_candidate_generator"}
    assert [len(output) - 8 for output in outputs] == [4, 5, 6, 7]
    rows = written(recorder, "attempt")
    assert sorted(row["output_computed"] for row in rows) == [4, 5, 6, 7]
    for row in rows:
        check(row)


def test_a_generate_inside_another_is_part_of_it(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, transformers = frameworks
    judge = tiny(frameworks, num_hidden_layers=1)
    asked = 0

    def ask(ids: Any, scores: Any) -> Any:
        nonlocal asked
        asked += 1
        judge.generate(ids, max_new_tokens=6, do_sample=False, prompt_lookup_num_tokens=2)
        if asked == 1:
            judge.generate_batch(ids.tolist(), **paged(transformers, max_new_tokens=2))
        return scores

    with adapter.install(llama, recorder), adapter.install(judge, recorder):
        out = llama.generate(**one(torch), max_new_tokens=5, min_new_tokens=5, do_sample=False, logits_processor=[ask])
        judge.generate(**one(torch), max_new_tokens=2, min_new_tokens=2, do_sample=False)
    outer, alone = written(recorder, "attempt")
    assert asked == 5
    assert (outer["input_computed"], outer["output_computed"], outer["drafted"]) == (8, out.shape[1] - 8, 0)
    assert (alone["input_computed"], alone["output_computed"]) == (8, 2)
