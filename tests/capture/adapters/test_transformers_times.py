"""When the first token came, on a clock that only forward passes move; and that nothing runs per generated token."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from tests.capture.adapters.conftest import END, PAD, PROMPT, Force, check, forwards, one, paged, tiny, tiny_t5

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.recorder import Recorder

# Many models, months or demonstrations: with the tests of whole systems.
pytestmark = pytest.mark.system

Read = Callable[[Recorder, str], list[dict[str, Any]]]
PASS_US = 1000
CALLS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "one_token": {"do_sample": False, "max_new_tokens": 1},
    "three": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "do_sample": False},
    "lookup": {"do_sample": False, "prompt_lookup_num_tokens": 4},
    "no_cache": {"do_sample": False, "use_cache": False},
    "chunked": {"do_sample": False, "prefill_chunk_size": 3},
    "dictionary": {"do_sample": False, "return_dict_in_generate": True, "output_scores": True, "output_logits": True},
}
PREFILLS = {"chunked": 3}


class Clock:
    """Stands still but for the passes of the models it is tied to."""

    def __init__(self) -> None:
        self.ns = 5_000_000_000

    def tie(self, module: Any) -> Any:
        return module.register_forward_hook(self._tick)

    def _tick(self, *_: Any) -> None:
        self.ns += PASS_US * 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: made.ns)
    return made


@pytest.mark.parametrize("case", CALLS)
def test_the_first_token_ends_the_prefill_and_decoding_is_the_rest(
    case: str, frameworks: tuple[Any, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    clock.tie(model)
    settings = {"max_new_tokens": 12, **CALLS[case]}

    def run() -> Any:
        torch.manual_seed(3)
        out = model.generate(**one(torch), **settings)
        return getattr(out, "sequences", out)

    before = run()
    with adapter.install(model, recorder), forwards(model) as seen:
        assert torch.equal(run(), before)
    (row,) = written(recorder, "attempt")
    check(row)
    first = PREFILLS.get(case, 1) * PASS_US
    assert (row["prefill_us"], row["first_token_us"]) == (first, first)
    assert (row["decode_us"], row["total_us"]) == (len(seen) * PASS_US - first, len(seen) * PASS_US)
    assert row["queue_us"] is None


def test_every_prompt_of_a_batch_has_the_times_of_its_call(
    frameworks: tuple[Any, Any], batch: dict[str, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    model = tiny(frameworks)
    clock.tie(model)
    with adapter.install(model, recorder):
        model.generate(
            **batch, max_new_tokens=5, do_sample=False, logits_processor=[Force(8, [[9] * 5, [END], [9, END]])]
        )
    rows = written(recorder, "attempt")
    times = [tuple(row[name] for name in ("prefill_us", "first_token_us", "decode_us", "total_us")) for row in rows]
    assert times == [(1000, 1000, 4000, 5000)] * 3


def test_an_assistants_tokens_are_not_the_first_token(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    torch, _ = frameworks
    model, assistant = tiny(frameworks), tiny(frameworks, num_hidden_layers=1)
    assistant.generation_config.num_assistant_tokens = 3
    drafting: list[int] = []

    def before_verifying(*_: Any) -> None:
        drafting.append(clock.ns)

    for module in (model, assistant):
        clock.tie(module)
    model.register_forward_hook(before_verifying)
    began = clock.ns
    with adapter.install(model, recorder), adapter.install(assistant, recorder):
        model.generate(**one(torch), max_new_tokens=12, do_sample=False, assistant_model=assistant)
    (row,) = written(recorder, "attempt")
    check(row)
    # The assistant drafts before the first pass: its passes are part of the time to the first token.
    assert row["first_token_us"] == (drafting[0] - began) // 1000 > PASS_US
    assert row["total_us"] == (clock.ns - began) // 1000 > row["first_token_us"]


def test_the_encoder_is_part_of_the_prefill(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    torch, _ = frameworks
    model = tiny_t5(frameworks)
    for module in (model, model.encoder):
        clock.tie(module)
    with adapter.install(model, recorder):
        out = model.generate(torch.tensor([PROMPT]), max_new_tokens=6, min_new_tokens=6, do_sample=False)
    (row,) = written(recorder, "attempt")
    assert (row["prefill_us"], row["total_us"]) == (2 * PASS_US, (1 + out.shape[1] - 1) * PASS_US)


@pytest.mark.parametrize("after", [0, 3])
def test_of_a_call_that_fails_the_times_it_had_are_known(
    after: int, frameworks: tuple[Any, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    clock.tie(model)

    def fail(ids: Any, scores: Any) -> Any:
        if ids.shape[1] == len(PROMPT) + after:
            raise ValueError
        return scores

    with adapter.install(model, recorder), pytest.raises(ValueError):
        model.generate(**one(torch), max_new_tokens=9, min_new_tokens=9, do_sample=False, logits_processor=[fail])
    (row,) = written(recorder, "attempt")
    expected = (1000, 1000, 3000, 4000) if after else (None, None, None, 1000)
    assert tuple(row[name] for name in ("prefill_us", "first_token_us", "decode_us", "total_us")) == expected


def test_a_loop_of_the_hosts_own_has_no_certain_first_token(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read, clock: Clock
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    clock.tie(model)

    def loop(model: Any, input_ids: Any, stopping_criteria: Any, **_: Any) -> Any:
        stopping_criteria(input_ids, None)  # asked before there is any token
        for _step in range(3):
            token = model(input_ids=input_ids).logits[:, -1:].argmax(-1)
            input_ids = torch.cat([input_ids, token], dim=1)
        return input_ids

    with adapter.install(model, recorder):
        model.generate(**one(torch), max_new_tokens=9, custom_generate=loop)
    (row,) = written(recorder, "attempt")
    assert (row["input_computed"], row["output_computed"], row["total_us"]) == (8, 3, 3000)
    names = ("prefill_us", "first_token_us", "decode_us", "drafted", "undrafted", "accepted_steps_0", "forward")
    assert {row[name] for name in names} == {None}


@contextmanager
def own_calls() -> Iterator[SimpleNamespace]:
    """Counts Python calls of adapters, the only code of ours that a framework can call, in every thread."""
    seen = SimpleNamespace(count=0)

    def note(frame: FrameType, event: str, _: Any) -> None:
        seen.count += event == "call" and "weighbridge/capture/adapters/" in frame.f_code.co_filename

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("case", ["greedy", "three", "beams", "no_cache", "streamed", "batched"])
def test_no_code_of_ours_runs_per_generated_token(case: str, frameworks: tuple[Any, Any], recorder: Recorder) -> None:
    torch, transformers = frameworks
    model = tiny(frameworks, eos_token_id=None, pad_token_id=PAD)
    streamer = SimpleNamespace(put=lambda _: None, end=lambda: None)

    def run(tokens: int) -> int:
        with own_calls() as seen:
            if case == "batched":
                model.generate_batch([PROMPT, PROMPT[:5]], **paged(transformers, max_new_tokens=tokens))
            elif case == "streamed":
                model.generate(**one(torch), max_new_tokens=tokens, do_sample=False, streamer=streamer)
            else:
                model.generate(**one(torch), max_new_tokens=tokens, **CALLS[case])
        return int(seen.count)

    with adapter.install(model, recorder):
        for tokens in (4, 40):
            run(tokens)
        few, many = run(4), run(40)
    assert few == many > 0
