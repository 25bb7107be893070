"""Continuous batching on a tiny random model: each request is an attempt, counted as its result shows."""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.capture.adapters.conftest import END, PROMPT, check, end_of, forwards, paged, tiny

from weighbridge.capture import scope
from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import Answering, answering
from weighbridge.schemas.identity import AttemptKey

# Many models or many erasures: with the tests of whole systems.
pytestmark = pytest.mark.system

Read = Callable[[Recorder, str], list[dict[str, Any]]]
Row = dict[str, Any]
PROMPTS = [[5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15, 16], [3]]
LONG = list(range(5, 45))


def key_of(row: Row) -> AttemptKey:
    return AttemptKey(row["attempt_hi"], row["attempt_lo"])


def told(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """These columns of the rows, sorted: the framework queues prompts in an order of its own."""
    return sorted(tuple(row[name] for name in names) for row in rows)


@pytest.fixture
def model(frameworks: tuple[Any, Any]) -> Any:
    return tiny(frameworks)


@pytest.fixture
def ending(frameworks: tuple[Any, Any]) -> Any:
    """A model that, asked for its likeliest tokens, ends some of the sequences."""
    torch, _ = frameworks
    made = tiny(frameworks, tie_word_embeddings=False)
    with torch.no_grad():
        made.lm_head.weight[END] *= 2
    return made


@pytest.mark.parametrize("wanted", [1, 3])
def test_the_results_are_the_same_and_each_token_is_counted(
    wanted: int, frameworks: tuple[Any, Any], ending: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    # Of one candidate the draw is certain, in whatever order the framework batches.
    settings = paged(transformers, max_new_tokens=12, do_sample=True, top_k=1, num_return_sequences=wanted)

    def run() -> dict[str, Any]:
        return dict(ending.generate_batch(PROMPTS, **settings))

    before = {name: output.generated_tokens for name, output in run().items()}
    there = set(vars(ending))
    with adapter.install(ending, recorder):
        after = run()
    assert {name: output.generated_tokens for name, output in after.items()} == before
    assert set(vars(ending)) == there
    rows, children = written(recorder, "attempt"), written(recorder, "child")
    ends = {name: end_of(output.generated_tokens) for name, output in after.items()}
    assert {ended for _, ended in ends.values()} == {0, 1}
    expected = []
    for number, prompt in enumerate(PROMPTS):
        mine = [found for name, found in ends.items() if name.split("__child#")[0] == f"req_{number}"]
        assert len(mine) == wanted
        output, ended = sum(n for n, _ in mine), sum(e for _, e in mine)
        expected.append((len(prompt), output, output - ended, ended, output, wanted, 12))
    names = ("input_computed", "output_computed", "output_delivered", "withheld_end_token", "undrafted", "n")
    assert told(rows, *names, "max_tokens") == sorted(expected)
    for row in rows:
        check(row)
        assert (row["status"], row["cached_local"], row["prefill_computed"]) == ("succeeded", 0, row["input_computed"])
        assert 0 <= row["queue_us"] <= row["total_us"]
        assert [row[name] for name in ("forward", "padding", "recomputed", "verify_width")] == [None] * 4
    if wanted == 1:
        assert not children
        return
    own = {key_of(row): row["input_computed"] for row in rows}
    assert told(children, "child", "kind") == sorted([(c, "choice") for c in (1, 2, 3)] * len(PROMPTS))
    for child in children:
        assert child["input_computed"] == own[key_of(child)]
    assert told(children, "input_computed", "output_computed", "finish_reason") == sorted(
        (len(PROMPTS[int(name[4])]), tokens, "stop" if ended else "length") for name, (tokens, ended) in ends.items()
    )


def test_what_the_prefix_cache_gave_was_not_computed(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    prompts = [LONG, [*LONG, 3, 4], LONG, LONG[:20]]
    settings = paged(transformers, max_new_tokens=5, cache={"max_requests_per_batch": 1})
    with adapter.install(model, recorder), forwards(model) as seen:
        results = model.generate_batch(prompts, **settings, warmup=False)
    rows = written(recorder, "attempt")
    for row in rows:
        check(row)
        assert row["cached_local"] % 8 == 0
    assert sorted(row["cached_local"] for row in rows) == [0, 16, 32, 32]
    # Every token but the last of each sequence goes through the model once, but for what was in the cache.
    outputs = sum(len(output.generated_tokens) - 1 for output in results.values())
    assert sum(row["prefill_computed"] for row in rows) == sum(seen) - outputs


def test_a_request_that_lost_its_place_keeps_its_tokens_and_leaves_the_rest_unknown(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    prompts = [[5 + number] * 10 for number in range(4)]
    settings = paged(transformers, max_new_tokens=30, eos_token_id=-1, cache={"num_blocks": 8, "max_batch_tokens": 32})
    with adapter.install(model, recorder), forwards(model) as seen:
        results = model.generate_batch(prompts, **settings, record_timestamps=True, warmup=False)
    # More went through the model than the tokens need: some were computed again.
    assert sum(seen) > sum(len(output.prompt_ids) + len(output.generated_tokens) - 1 for output in results.values())
    rows = written(recorder, "attempt")
    assert told(rows, "input_computed", "output_computed", "status") == [(10, 30, "succeeded")] * 4
    restarted = [row for row in rows if row["prefill_computed"] is None]
    assert restarted
    for row in restarted:
        names = ("cached_local", "cached_external", "queue_us", "prefill_us", "first_token_us", "decode_us")
        assert [row[name] for name in names] == [None] * 6
        assert row["total_us"] > 0


def test_the_first_token_is_timed_where_times_were_recorded(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    with adapter.install(model, recorder):
        timed = model.generate_batch(PROMPTS, **paged(transformers, max_new_tokens=6), record_timestamps=True)
        model.generate_batch(PROMPTS[:1], **paged(transformers, max_new_tokens=6))
    *rows, untimed = written(recorder, "attempt")
    for row in rows:
        (output,) = [each for each in timed.values() if len(each.prompt_ids) == row["input_computed"]]
        first = output.timestamps[0]
        assert row["first_token_us"] == int((first - output.created_time) * 1e6)
        assert row["queue_us"] == int((output.lifespan[0] - output.created_time) * 1e6)
        assert row["queue_us"] + row["prefill_us"] == row["first_token_us"]
        assert row["first_token_us"] + row["decode_us"] == row["total_us"]
    assert untimed["queue_us"] is not None
    assert [untimed[name] for name in ("first_token_us", "prefill_us", "decode_us")] == [None] * 3


def test_a_cancelled_request_tells_what_was_computed_for_nothing(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    settings = paged(transformers, max_new_tokens=300, eos_token_id=-1, cache={"num_blocks": 128})
    streamed = 0
    with adapter.install(model, recorder), model.continuous_batching_context_manager(**settings) as manager:
        manager.add_request(PROMPT, request_id="gone", streaming=True)
        for result in manager:
            if result.request_id == "gone":
                streamed = len(result.generated_tokens)
                if streamed == 5:
                    manager.cancel_request("gone")
                    manager.add_request(PROMPT[:3], request_id="stays", max_new_tokens=4)
            elif result.is_finished():
                break
        manager.cancel_request("stays")  # over already
        manager.cancel_request("never there")
    rows = {row["status"]: row for row in written(recorder, "attempt")}
    gone, stays = rows["aborted"], rows["succeeded"]
    assert (gone["finish_reason"], gone["input_computed"], gone["output_delivered"]) == ("abort", 8, None)
    assert 5 <= gone["output_computed"] == streamed < 300
    assert (stays["input_computed"], stays["output_computed"], stays["max_tokens"]) == (3, 4, 4)
    assert len(rows) == 2


def test_a_request_that_is_cancelled_while_it_waits_computed_nothing(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    room = {"num_blocks": 128, "max_requests_per_batch": 1}
    settings = paged(transformers, max_new_tokens=60, eos_token_id=-1, cache=room)
    with adapter.install(model, recorder), model.continuous_batching_context_manager(**settings) as manager:
        manager.add_request(PROMPT, request_id="first", streaming=True)
        manager.add_request(PROMPT[:3], request_id="waits")
        for result in manager:
            if result.request_id == "first" and len(result.generated_tokens) == 5:
                manager.cancel_request("waits")
            if result.is_finished():
                break
    first, waits = sorted(written(recorder, "attempt"), key=lambda row: str(row["status"]), reverse=True)
    assert (first["status"], first["output_computed"]) == ("succeeded", 60)
    assert (waits["status"], waits["input_computed"], waits["output_computed"]) == ("aborted", None, 0)
    assert waits["prefill_computed"] is None


def test_requests_of_one_manager_stand_in_the_scopes_of_their_callers(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    keys = {f"r{number}": AttemptKey(number, 70 + number) for number in range(4)}
    requests: dict[str, AttemptKey] = {}

    def ask(manager: Any, name: str, length: int) -> None:
        with scope.request(recorder, Context()) as around, adapter.attempt_keys(keys[name]):
            requests[name] = around.key
            manager.add_request(LONG[:length], request_id=name, max_new_tokens=length, temperature=0.5)

    settings = paged(transformers, do_sample=True, cache={"per_request_processors": True}, temperature=0.9)
    with adapter.install(model, recorder), model.continuous_batching_context_manager(**settings) as manager:
        threads = [threading.Thread(target=ask, args=(manager, name, 3 + at)) for at, name in enumerate(keys)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for done, _ in enumerate(result for result in manager if result.is_finished()):
            if done == 3:
                break
    rows = {key_of(row): row for row in written(recorder, "attempt")}
    assert set(rows) == set(keys.values())
    for at, (name, key) in enumerate(keys.items()):
        row = rows[key]
        assert (row["request_hi"], row["request_lo"]) == requests[name]
        assert (row["input_computed"], row["max_tokens"], row["temperature"]) == (3 + at, 3 + at, 0.5)


def test_prompts_of_a_batch_take_their_keys_in_their_own_order(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    prompts = [[5, 6], [9, 9, 9], [5, 6], [7]]
    keys = [AttemptKey(1, number) for number in range(4)]
    token = answering.set(Answering(key=AttemptKey(2, 2)))
    try:
        with adapter.install(model, recorder):
            with adapter.attempt_keys(*keys):
                model.generate_batch(prompts, **paged(transformers, max_new_tokens=2))
            model.generate_batch(prompts[:1], **paged(transformers, max_new_tokens=2))
            model.generate_batch(prompts[1:3], **paged(transformers, max_new_tokens=2))
    finally:
        answering.reset(token)
    rows = {key_of(row): row["input_computed"] for row in written(recorder, "attempt")}
    assert [rows[key] for key in keys] == [2, 3, 2, 1]
    assert rows[AttemptKey(2, 2)] == 2
    assert len(rows) == 4 + 1 + 2


def test_prompts_that_are_alike_take_their_keys_in_order_too(
    frameworks: tuple[Any, Any], ending: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    keys = [AttemptKey(1, number) for number in range(6)]
    settings = paged(transformers, max_new_tokens=100, do_sample=True, cache={"num_blocks": 128})
    with adapter.install(ending, recorder), adapter.attempt_keys(*keys):
        results = ending.generate_batch([PROMPT] * 6, **settings)
    lengths = [len(results[f"req_{number}"].generated_tokens) for number in range(6)]
    assert lengths != lengths[::-1]
    rows = {key_of(row): row["output_computed"] for row in written(recorder, "attempt")}
    assert [rows[key] for key in keys] == lengths


def test_a_paged_generate_hands_its_prompts_over(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    torch, transformers = frameworks
    config = paged(transformers)["continuous_batching_config"]
    settings = {"cache_implementation": "paged", "max_new_tokens": 4, "do_sample": False, "eos_token_id": -1}
    token = answering.set(Answering(key=AttemptKey(3, 4)))
    try:
        with adapter.install(model, recorder):
            out = model.generate(torch.tensor([[5, 6, 7]]), **settings, continuous_batching_config=config)
            model.generate(torch.tensor([[5, 6, 7], [8, 9, 3]]), **settings, continuous_batching_config=config)
    finally:
        answering.reset(token)
    assert out.shape == (1, 1, 7)
    rows = written(recorder, "attempt")
    assert told(rows, "input_computed", "output_computed", "status") == [(3, 4, "succeeded")] * 3
    assert key_of(rows[0]) == AttemptKey(3, 4)


def test_what_fails_in_the_engine_is_a_failed_attempt(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read, capfd: pytest.CaptureFixture[str]
) -> None:
    _, transformers = frameworks
    passes = 0

    def fail(*_: Any) -> None:
        nonlocal passes
        passes += 1
        if passes == 4:
            raise ValueError("CANARY")

    with adapter.install(model, recorder):
        handle = model.register_forward_hook(fail)
        results = model.generate_batch(
            [*PROMPTS, LONG], **paged(transformers, max_new_tokens=9, eos_token_id=-1, cache={"max_batch_tokens": 16}),
            warmup=False,
        )  # fmt: skip
        handle.remove()
        with pytest.raises(ValueError, match="page_size"):
            model.generate_batch(PROMPTS, **paged(transformers, cache={"page_size": 1}))
    rows = written(recorder, "attempt")
    assert {row["status"] for row in rows} == {"failed"}
    assert {row["finish_reason"] for row in rows} == {"error"}
    engine, refused = rows[: len(results)], rows[len(results) :]
    assert len(engine) == 5
    assert len(refused) == 4
    # Three passes came through. What each sequence had by then is in its result; one that had none may lie in between.
    expected = [
        (len(output.prompt_ids), len(output.generated_tokens)) if output.generated_tokens else (-1, -1)
        for output in results.values()
    ]
    found = [
        tuple(-1 if row[name] is None else row[name] for name in ("input_computed", "output_computed"))
        for row in engine
    ]
    assert sorted(found) == sorted(expected)
    assert any(tokens > 0 for _, tokens in expected)
    for row in rows:
        assert row["output_delivered"] is None
    for row in refused:
        assert {row[name] for name in adapter.COUNTS} == {None}
    assert all(b"CANARY" not in path.read_bytes() for path in recorder.spool.iterdir())
    capfd.readouterr()


def test_what_fails_before_it_was_forked_has_no_further_sequences(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read, capfd: pytest.CaptureFixture[str]
) -> None:
    _, transformers = frameworks

    def fail(*_: Any) -> None:
        raise ValueError

    settings = paged(transformers, max_new_tokens=4, do_sample=True, num_return_sequences=3)
    with adapter.install(model, recorder):
        model.register_forward_hook(fail)
        results = model.generate_batch(PROMPTS, **settings, warmup=False)
    assert {result.error is None for result in results.values()} == {False}
    rows = written(recorder, "attempt")
    assert told(rows, "status", "n", "output_computed") == [("failed", 3, None)] * len(PROMPTS)
    assert written(recorder, "child") == []
    capfd.readouterr()


def test_a_caller_who_is_interrupted_got_nothing_of_what_was_computed(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, transformers = frameworks
    manager = transformers.generation.continuous_batching.continuous_api.ContinuousBatchingManager
    get = manager.get_result

    def interrupt(self: Any, *args: Any, **kwargs: Any) -> Any:
        get(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(manager, "get_result", interrupt)
    with adapter.install(model, recorder), pytest.raises(KeyboardInterrupt):
        model.generate_batch(PROMPTS, **paged(transformers, max_new_tokens=6, eos_token_id=-1))
    rows = written(recorder, "attempt")
    assert told(rows, "status", "output_computed", "output_delivered") == [("aborted", 6, None)] * 4


def test_a_prompt_the_queue_refuses_is_a_failed_attempt(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, transformers = frameworks
    put = queue.Queue.put

    def refuse(self: Any, item: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(item, "initial_tokens", None) == PROMPTS[1]:
            raise queue.Full
        put(self, item, *args, **kwargs)

    monkeypatch.setattr(queue.Queue, "put", refuse)
    with adapter.install(model, recorder):
        results = model.generate_batch(PROMPTS, **paged(transformers, max_new_tokens=3, eos_token_id=-1))
    assert results == {}
    rows = written(recorder, "attempt")
    assert {row["status"] for row in rows} == {"failed"}
    assert len(rows) == len(PROMPTS)
    # The prompt queued before it was computed by then or not; nothing of it reached the caller.
    assert {row["output_computed"] for row in rows} <= {None, 3}
    assert {row["output_delivered"] for row in rows} == {None}


@pytest.mark.parametrize("wanted", [1, 2])
def test_level_2_has_the_ids_of_the_results(
    wanted: int, frameworks: tuple[Any, Any], model: Any, deep_recorder: Recorder, written: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    _, transformers = frameworks
    found: dict[AttemptKey, list[tuple[str, int, list[int]]]] = {}
    offer = deep_recorder.offer_ids

    def note(attempt: Attempt, runs: list[Run]) -> int:
        found[attempt.key] = [(str(run.stream), run.child, list(run.ids)) for run in runs]
        return offer(attempt, runs)

    monkeypatch.setattr(deep_recorder, "offer_ids", note)
    with adapter.install(model, deep_recorder):
        results = model.generate_batch(
            PROMPTS, **paged(transformers, max_new_tokens=4, do_sample=True, num_return_sequences=wanted)
        )
    names = [[f"req_{at}", f"req_{at}__child#0"][:wanted] for at in range(len(PROMPTS))]
    expected = [
        [("prompt", 0, prompt)]
        + [("output", child * (wanted > 1), results[name].generated_tokens) for child, name in enumerate(mine, 1)]
        for prompt, mine in zip(PROMPTS, names, strict=True)
    ]
    assert sorted(found.values()) == sorted(expected)
    rows = written(deep_recorder, "attempt")
    assert {row["level"] for row in rows} == {2}
    assert {key_of(row): row["ids_expected"] for row in rows} == {
        key: sum(len(ids) for *_, ids in runs) for key, runs in found.items()
    }


def test_another_version_keeps_what_it_returned(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, transformers = frameworks
    monkeypatch.setattr("importlib.metadata.version", lambda name: "6.1.0")
    with adapter.install(model, recorder):
        assert "init_continuous_batching" not in vars(model)
        model.generate_batch(
            PROMPTS, **paged(transformers, max_new_tokens=4, do_sample=True, num_return_sequences=2, eos_token_id=-1)
        )
    rows = written(recorder, "attempt")
    assert told(rows, "input_computed", "output_computed") == [(1, 8), (3, 8), (4, 8), (5, 8)]
    names = ("cached_local", "prefill_computed", "output_delivered", "drafted", "undrafted", "total_us", "queue_us")
    assert {row[name] for row in rows for name in names} == {None}
    (gap,) = written(recorder, "gap")
    assert gap["reason"] == "unsupported_version"


def test_removal_leaves_a_manager_that_stays_as_it_was_and_none_is_kept_alive(
    frameworks: tuple[Any, Any], model: Any, recorder: Recorder, written: Read
) -> None:
    _, transformers = frameworks
    settings = paged(transformers, max_new_tokens=3, eos_token_id=-1)
    with adapter.install(model, recorder):
        model.generate_batch(PROMPTS, **settings, persistent_manager=True)
        manager = model._cached_continuous_batching_manager
        processor = manager.batch_processor
        parts = [manager, manager.input_queue, manager.output_router, processor.scheduler, processor.cache]
        watched = [set(vars(part)) for part in parts]
        model.generate_batch(PROMPTS, **settings, persistent_manager=True)
        assert [set(vars(part)) for part in parts] == watched
    names = ("_create_batch_processor", "put", "fail_and_deliver", "finish_request", "search_prefix_match")
    for part, before, name in zip(parts, watched, names, strict=True):
        assert name in before
        assert name not in vars(part)
    model.generate_batch(PROMPTS, **settings, persistent_manager=True)
    with adapter.install(model, recorder):
        model.generate_batch(PROMPTS[:1], **settings, persistent_manager=True)
        gone = weakref.ref(manager)
        model.destroy_cached_continuous_batching_manager()
        del manager, processor, parts, part
        gc.collect()
        assert gone() is None
    assert len(written(recorder, "attempt")) == 4 + 4 + 1
