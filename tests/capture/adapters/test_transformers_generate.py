"""The transformers adapter on a tiny random model: the host gets what it would have got, and every token is counted."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from tests.capture.adapters.conftest import END, PAD, PROMPT, Force, check, end_of, forwards, one, tiny

from weighbridge.capture import scope
from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import Answering, answering
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

Read = Callable[[Recorder, str], list[dict[str, Any]]]
CASES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 0},
    "three": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "do_sample": False, "num_return_sequences": 2},
    "lookup": {"do_sample": False, "prompt_lookup_num_tokens": 4},
    "lookup_sampled": {"do_sample": True, "prompt_lookup_num_tokens": 3, "temperature": 0.3},
    "no_cache": {"do_sample": False, "use_cache": False},
    "static": {"do_sample": False, "cache_implementation": "static"},
    "dictionary": {"do_sample": False, "return_dict_in_generate": True, "output_scores": True},
}


@pytest.mark.parametrize("case", CASES)
def test_the_output_is_the_same_and_each_token_is_counted(
    case: str, frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    settings = {"max_new_tokens": 20, **CASES[case]}

    def run() -> Any:
        torch.manual_seed(3)
        out = llama.generate(**one(torch), **settings)
        return getattr(out, "sequences", out)

    before = run()
    with adapter.install(llama, recorder), forwards(llama) as seen:
        watched = run()
    assert torch.equal(before, watched)
    (row,) = written(recorder, "attempt")
    check(row)
    ends = [end_of(list(map(int, sequence[8:]))) for sequence in before]
    assert row["input_computed"] == 8
    assert row["output_computed"] == sum(length for length, _ in ends)
    assert row["withheld_end_token"] == sum(ended for _, ended in ends)
    assert row["max_tokens"] == 20
    if case != "beams":
        assert row["forward"] == sum(seen)
        assert None not in (row["recomputed"], row["verify_width"], row["padding"], row["undrafted"])
    elif row["forward"] is not None:
        assert row["forward"] == sum(seen)
    assert row["framework"] == "transformers"
    assert row["total_us"] > 0
    assert (row["drafted"] > 0) == case.startswith("lookup")


def test_a_padded_batch_is_an_attempt_for_each_prompt(
    frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    wanted: list[list[int]] = [[9] * 6, [9, 9, END], [9] * 4 + [END]]
    with adapter.install(llama, recorder), forwards(llama) as seen:
        llama.generate(
            **batch, max_new_tokens=6, do_sample=False, pad_token_id=END, logits_processor=[Force(8, wanted)]
        )
    rows = written(recorder, "attempt")
    names = ("input_computed", "output_computed", "output_delivered", "withheld_end_token", "finish_reason", "padding")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (8, 6, 6, 0, "length", 0),
        (3, 3, 2, 1, "stop", 5 + 2),
        (5, 5, 4, 1, "stop", 3),
    ]
    assert sum(row["forward"] for row in rows) == sum(seen) == 3 * 8 + 3 * 5
    for row in rows:
        check(row)
    assert len({row["arrived_at"] for row in rows}) == 1
    assert len({(row["attempt_hi"], row["attempt_lo"]) for row in rows}) == 3


def test_without_a_cache_padding_is_processed_again_in_each_step(
    llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    wanted = [[9] * 5, [9, END], [9] * 5]
    with adapter.install(llama, recorder), forwards(llama) as seen:
        llama.generate(**batch, max_new_tokens=5, do_sample=False, use_cache=False, logits_processor=[Force(8, wanted)])
    rows = written(recorder, "attempt")
    # Five passes of 8 to 12 positions; the second row has 5 of padding before it and 1, then 2 behind it.
    assert [row["forward"] for row in rows] == [8 + 9 + 10 + 11 + 12] * 3
    assert sum(seen) == 3 * 50
    assert [row["padding"] for row in rows] == [0, 5 * 5 + 1 + 2, 5 * 3]
    for row in rows:
        check(row)


def test_a_batch_without_a_mask_follows_the_rule_of_generate(
    llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    with adapter.install(llama, recorder):
        llama.generate(batch["input_ids"], max_new_tokens=2, do_sample=False)
    assert [row["input_computed"] for row in written(recorder, "attempt")] == [8, 3, 5]


def test_choices_and_beams_are_children(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    wanted: list[list[int]] = [[9, END], [9] * 4, [9, 9, 9, END]]
    with adapter.install(llama, recorder):
        llama.generate(
            **one(torch), max_new_tokens=4, do_sample=True, num_return_sequences=3, logits_processor=[Force(8, wanted)]
        )
        llama.generate(**one(torch), max_new_tokens=4, num_beams=3, num_return_sequences=2, do_sample=False)
    children = written(recorder, "child")
    names = ("child", "kind", "input_computed", "output_computed", "output_delivered", "finish_reason")
    assert [tuple(row[name] for name in names) for row in children[:3]] == [
        (1, "choice", 8, 2, 1, "stop"),
        (2, "choice", 8, 4, 4, "length"),
        (3, "choice", 8, 4, 3, "stop"),
    ]
    assert [(row["child"], row["kind"]) for row in children[3:]] == [(1, "beam"), (2, "beam")]
    first, _ = written(recorder, "attempt")
    # The prompt is computed three times; twice of that again.
    assert (first["input_computed"], first["prefill_computed"], first["output_computed"]) == (8, 8, 10)
    assert (first["n"], first["recomputed"], first["finish_reason"]) == (3, 16, "other")


@pytest.mark.parametrize("pad", [PAD, END])
def test_a_stop_string_keeps_its_tokens_and_padding_behind_it_is_no_end_token(
    pad: int, frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], letters: Any, recorder: Recorder,
    written: Read,
) -> None:  # fmt: skip
    stop = [letters.convert_tokens_to_ids(letter) for letter in "xy"]
    wanted: list[list[int]] = [[9, *stop, 9, 9, 9], [9] * 6, [9, 9, END]]
    with adapter.install(llama, recorder):
        llama.generate(
            **batch, max_new_tokens=6, do_sample=False, pad_token_id=pad, stop_strings=["xy"], tokenizer=letters,
            logits_processor=[Force(8, wanted)],
        )  # fmt: skip
    names = ("output_computed", "withheld_end_token", "finish_reason", "stop_strings")
    assert [tuple(row[name] for name in names) for row in written(recorder, "attempt")] == [
        (3, 0, "stop", 1),
        (6, 0, "length", 1),
        (3, 1, "stop", 1),
    ]


def test_where_the_hosts_own_criterion_ends_a_row_its_length_is_not_guessed(
    frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks

    def second(ids: Any, scores: Any, **_: Any) -> Any:
        return torch.tensor([False, ids.shape[1] >= 10, False])

    with adapter.install(llama, recorder):
        llama.generate(
            **batch, max_new_tokens=5, do_sample=False, pad_token_id=END, stopping_criteria=[second],
            logits_processor=[Force(8, [[9] * 5, [9] * 5, [9] * 5])],
        )  # fmt: skip
    rows = written(recorder, "attempt")
    assert [row["output_computed"] for row in rows] == [5, None, 5]
    assert [row["output_delivered"] for row in rows] == [5, None, 5]
    assert rows[1]["finish_reason"] == "other"


def test_an_assistants_drafts_are_counted_and_it_makes_no_attempt_of_its_own(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    assistant = tiny(frameworks, num_hidden_layers=1)
    assistant.generation_config.num_assistant_tokens = 3
    settings = {"max_new_tokens": 12, "do_sample": False, "assistant_model": assistant}
    before = llama.generate(**one(torch), **settings)
    with adapter.install(llama, recorder), adapter.install(assistant, recorder), forwards(llama) as seen:
        after = llama.generate(**one(torch), **settings)
    assert torch.equal(before, after)
    (row,) = written(recorder, "attempt")
    check(row)
    assert row["drafted"] > 0
    assert row["forward"] == sum(seen)
    assert None not in (row["bonus"], row["undrafted"])


@pytest.mark.parametrize(
    ("raised", "status", "finish"), [(ValueError, "failed", "error"), (KeyboardInterrupt, "aborted", "abort")]
)
def test_what_the_call_raises_reaches_the_host_as_it_is(
    raised: type[BaseException], status: str, finish: str, frameworks: tuple[Any, Any], llama: Any, recorder: Recorder,
    written: Read,
) -> None:  # fmt: skip
    torch, _ = frameworks
    error = raised("CANARY")
    steps = 0

    def fail(ids: Any, scores: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 40:
            raise error
        return scores

    with adapter.install(llama, recorder), pytest.raises(raised) as seen:
        llama.generate(
            **one(torch), max_new_tokens=50, do_sample=False, prompt_lookup_num_tokens=4, logits_processor=[fail]
        )
    assert seen.value is error
    (row,) = written(recorder, "attempt")
    assert (row["status"], row["finish_reason"], row["input_computed"]) == (status, finish, None)
    assert row["drafted"] is not None
    assert all(b"CANARY" not in path.read_bytes() for path in recorder.spool.iterdir())


def test_ids_of_level_2_are_those_the_host_got_and_drafts_show_every_verify_step(
    frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], deep_recorder: Recorder, written: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    torch, _ = frameworks
    offered: list[Run] = []
    offer = deep_recorder.offer_ids

    def note(attempt: Attempt, runs: list[Run]) -> int:
        offered.extend(runs)
        return offer(attempt, runs)

    monkeypatch.setattr(deep_recorder, "offer_ids", note)
    with adapter.install(llama, deep_recorder):
        padded = llama.generate(
            **batch, max_new_tokens=4, do_sample=False, logits_processor=[Force(8, [[9] * 4, [9, END], [9] * 4])]
        )
        expected = [PROMPT, [9] * 4, [9, 8, 7], [9, END], [4, 5, 6, 7, 8], [9] * 4]
        padded.zero_()
        assert [run.ids.tolist() for run in offered] == expected
        offered.clear()
        out = llama.generate(**one(torch), max_new_tokens=20, do_sample=False, prompt_lookup_num_tokens=4)[0].tolist()
    prompt, output, *drafts = offered
    assert (prompt.ids.tolist(), output.ids.tolist()) == (out[:8], out[8:])
    assert [run.number for run in offered] == list(range(len(offered)))
    ends = [*(run.start for run in drafts[1:]), len(out)]
    accepted = [end - run.start - 1 for run, end in zip(drafts, ends, strict=True)]
    for run, taken in zip(drafts, accepted, strict=True):
        assert run.ids.tolist()[:taken] == out[run.start : run.start + taken]
    row = written(deep_recorder, "attempt")[-1]
    assert (row["level"], row["accepted"]) == (2, sum(accepted))
    assert row["drafted"] == sum(len(run.ids) for run in drafts)
    assert row["bonus"] == sum(len(run.ids) > 0 for run in drafts) < len(drafts)


def test_another_version_keeps_what_is_certain_and_says_so(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, _ = frameworks
    monkeypatch.setattr("importlib.metadata.version", lambda name: "6.1.0")
    installed = adapter.install(llama, recorder)
    assert not installed.supported
    assert not [name for name in vars(llama) if name.startswith(("_prepare_gen", "_get_cand"))]
    with installed:
        llama.generate(**one(torch), max_new_tokens=5, do_sample=False, prompt_lookup_num_tokens=4)
    (row,) = written(recorder, "attempt")
    assert (row["input_computed"], row["output_computed"], row["framework_version"]) == (8, 5, "6.1.0")
    assert [row[name] for name in ("drafted", "accepted", "bonus", "undrafted")] == [None] * 4
    (gap,) = written(recorder, "gap")
    assert (gap["reason"], gap["attempts"]) == ("unsupported_version", 0)


def test_removal_leaves_the_model_as_it_was_and_copies_are_their_own(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    there = set(vars(model))
    signature = inspect.signature(model.generate)
    with adapter.install(model, recorder):
        assert inspect.signature(model.generate) == signature
        with pytest.raises(ConfigError, match="watched already"):
            adapter.install(model, recorder)
        twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for twin in twins:
            assert twin.generate.__self__ is twin
            assert twin._get_candidate_generator.__self__ is twin
            twin.generate(**one(torch), max_new_tokens=2, prompt_lookup_num_tokens=2, do_sample=False)
    assert set(vars(model)) == there
    model.generate(**one(torch), max_new_tokens=2, do_sample=False)
    assert written(recorder, "attempt") == []
    with pytest.raises(ConfigError, match=r"no generate"):
        adapter.install(SimpleNamespace(), recorder)


def test_attempts_stand_in_their_request_under_the_keys_their_caller_knows(
    frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    keys = [AttemptKey(7, 8), AttemptKey(9, 10)]
    with (
        adapter.install(llama, recorder, Context(tenant="acme", task="chat")),
        scope.request(recorder, Context()) as request,
        adapter.attempt_keys(*keys),
    ):
        llama.generate(**batch, max_new_tokens=2, do_sample=False)
    rows = written(recorder, "attempt")
    assert [AttemptKey(row["attempt_hi"], row["attempt_lo"]) for row in rows[:2]] == keys
    assert {(row["request_hi"], row["request_lo"]) for row in rows} == {(request.key.hi, request.key.lo)}
    assert {row["task"] for row in rows} == {"chat"}


def test_embeddings_and_a_cache_that_went_on_are_not_guessed_at(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, transformers = frameworks
    with adapter.install(llama, recorder):
        llama.generate(inputs_embeds=llama.get_input_embeddings()(torch.tensor([PROMPT])), max_new_tokens=3)
        first = llama.generate(**one(torch), max_new_tokens=3, return_dict_in_generate=True, do_sample=False)
        longer = torch.cat([first.sequences, torch.tensor([[9, 9]])], dim=1)
        llama.generate(longer, cache=first.cache, max_new_tokens=3, do_sample=False)
        llama.generate(**one(torch), cache=transformers.DynamicCache(), max_new_tokens=3, do_sample=False)
    embedded, _, resumed, empty = written(recorder, "attempt")
    assert (empty["cached_local"], empty["prefill_computed"], empty["forward"]) == (0, 8, 10)
    assert (embedded["input_computed"], embedded["output_computed"]) == (8, 3)
    assert (resumed["input_computed"], resumed["output_computed"]) == (13, 3)
    assert [resumed[name] for name in ("cached_local", "prefill_computed", "forward")] == [None] * 3


def test_sliding_windows_change_no_count(frameworks: tuple[Any, Any], recorder: Recorder, written: Read) -> None:
    torch, _ = frameworks
    model = tiny(frameworks, "Mistral", sliding_window=4)
    with adapter.install(model, recorder), forwards(model) as seen:
        model.generate(**one(torch), max_new_tokens=6, do_sample=False, logits_processor=[Force(8, [[9] * 6])])
    (row,) = written(recorder, "attempt")
    check(row)
    assert (row["input_computed"], row["output_computed"], row["forward"]) == (8, 6, sum(seen))


def test_fingerprints_are_those_of_weights_and_tokenizer(
    frameworks: tuple[Any, Any], letters: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    letters.chat_template = "{{ messages[0]['content'] }}"
    same, other = tiny(frameworks), tiny(frameworks)
    with torch.no_grad():
        other.lm_head.weight[0, 0] += 1
    for model in (tiny(frameworks), same, other):
        with adapter.install(model, recorder, tokenizer=letters):
            model.generate(**one(torch), max_new_tokens=1, do_sample=False)
    a, b, c = written(recorder, "attempt")
    assert a["model_revision"] == b["model_revision"] != c["model_revision"]
    assert len(a["tokenizer"]) == len(a["template"]) == 64
    assert a["tokenizer"] == c["tokenizer"]


def test_calls_in_two_threads_are_kept_apart_and_a_streamer_gets_every_token(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks

    class Collect:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def put(self, ids: Any) -> None:
            self.seen += ids.reshape(-1).tolist()

        def end(self) -> None:
            self.seen.append(-1)

    streamers = [Collect(), Collect()]
    both = threading.Barrier(2)

    def run(number: int) -> list[int]:
        waited: list[int] = []

        def wait(ids: Any, scores: Any) -> Any:
            if not waited:
                waited.append(both.wait(timeout=60))
            return scores

        force = Force(8, [[9] * (4 + 3 * number) + [END]])
        out = llama.generate(
            **one(torch), max_new_tokens=20, do_sample=False, streamer=streamers[number],
            logits_processor=[wait, force], prompt_lookup_num_tokens=4 if number else None,
        )  # fmt: skip
        return [int(token) for token in out[0]]

    with adapter.install(llama, recorder), ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(run, (0, 1)))
    assert [streamer.seen for streamer in streamers] == [[*tokens, -1] for tokens in outputs]
    rows = {row["output_computed"]: row for row in written(recorder, "attempt")}
    assert set(rows) == {5, 8}
    assert rows[5]["drafted"] == 0 < rows[8]["drafted"]
    for row in rows.values():
        check(row)


def test_a_single_prompt_takes_the_key_of_the_answer_around_it_once(
    frameworks: tuple[Any, Any], llama: Any, batch: dict[str, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    key = AttemptKey(11, 12)
    token = answering.set(Answering(key=key))
    try:
        with adapter.install(llama, recorder):
            for given in (batch, one(torch), one(torch)):
                llama.generate(**given, max_new_tokens=1, do_sample=False)
    finally:
        answering.reset(token)
    keys = [AttemptKey(row["attempt_hi"], row["attempt_lo"]) for row in written(recorder, "attempt")]
    assert [each == key for each in keys] == [False, False, False, True, False]
    assert len(set(keys)) == 5
