"""What speculation drafted and what was accepted, against what the model's own forward passes show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.capture.adapters.conftest import PROMPT, Force, check, one, tiny

from weighbridge.capture.adapters import _speculation
from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.adapters._speculation import Drafts
from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.capture.layout import ACCEPTED_STEPS
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import RunStream

# Many models or many erasures: with the tests of whole systems.
pytestmark = pytest.mark.system

Read = Callable[[Recorder, str], list[dict[str, Any]]]
Pass = tuple[int, int]  # position of its first token, and how many it has


@contextmanager
def passes(model: Any) -> Iterator[list[Pass]]:
    """Every forward pass of a model."""
    seen: list[Pass] = []

    def note(_: Any, args: Any, kwargs: Any) -> None:
        seen.append((int(kwargs["position_ids"][0, 0]), kwargs["input_ids"].shape[1]))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    yield seen
    handle.remove()


def steps(seen: list[Pass], prompt: int, whole: int) -> list[tuple[int, int]]:
    """(drafted, accepted) of each verify step.

    The first pass holds the prompt and a draft, each later one the last token that stands and a draft. A step's tokens
    are those between where it and the next one begin: what was accepted, and one more.
    """
    lengths = [prompt, *(position + 1 for position, _ in seen[1:]), whole]
    drafted = [seen[0][1] - prompt, *(width - 1 for _, width in seen[1:])]
    return [
        (draft, after - before - 1) for draft, before, after in zip(drafted, lengths[:-1], lengths[1:], strict=True)
    ]


def histogram(found: list[tuple[int, int]]) -> list[int]:
    """Steps with a draft by the tokens they accepted: 0, 1, ... 7, 8 to 15, 16 and more."""
    accepted = Counter(took for draft, took in found if draft)
    middle = sum(count for took, count in accepted.items() if 8 <= took <= 15)
    return [
        *(accepted[took] for took in range(8)),
        middle,
        accepted.total() - middle - sum(accepted[took] for took in range(8)),
    ]


def assistant(frameworks: tuple[Any, Any], drafts: int) -> Any:
    made = tiny(frameworks, num_hidden_layers=1)
    made.generation_config.num_assistant_tokens = drafts
    made.generation_config.num_assistant_tokens_schedule = "constant"
    made.generation_config.assistant_confidence_threshold = 0.0
    return made


# Each kind and each number of drafts is met once; the other two pairs are of the longer run.
REST = (("Llama", 30), ("Mistral", 3))


@pytest.mark.parametrize(
    ("kind", "drafts"), [("Llama", 3), ("Mistral", 30), *(pytest.param(*c, marks=pytest.mark.system) for c in REST)]
)
@pytest.mark.parametrize("how", ["lookup", "lookup_sampled", "assistant", "assistant_sampled", "early_exit"])
def test_totals_and_histogram_are_those_of_the_models_own_passes(
    how: str, drafts: int, kind: str, frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    window = {"sliding_window": 6} if kind == "Mistral" else {}
    model = tiny(frameworks, kind, eos_token_id=None, **window)
    settings: dict[str, Any] = {"max_new_tokens": 60, "do_sample": "sampled" in how, "temperature": 0.4}
    if how.startswith("lookup"):
        settings["prompt_lookup_num_tokens"] = drafts
    elif how == "early_exit":
        settings["assistant_early_exit"] = 1
        model.generation_config.num_assistant_tokens = drafts
    else:
        settings["assistant_model"] = assistant(frameworks, drafts)

    def run() -> list[int]:
        torch.manual_seed(5)
        return [int(token) for token in model.generate(**one(torch), **settings)[0]]

    before = run()
    with adapter.install(model, recorder), passes(model) as seen:
        after = run()
    assert before == after
    (row,) = written(recorder, "attempt")
    check(row)
    assert row["level"] == 1
    if how == "early_exit":
        # The model is its own assistant: which of its passes drafted does not show from outside.
        assert row["accepted"] + row["bonus"] + row["undrafted"] == len(after) - 8
        assert row["drafted"] >= row["accepted"]
        return
    found = steps(seen, 8, len(after))
    assert row["output_computed"] == sum(took + 1 for _, took in found) == len(after) - 8
    assert (row["drafted"], row["accepted"]) == (sum(draft for draft, _ in found), sum(took for _, took in found))
    assert row["rejected"] == row["drafted"] - row["accepted"]
    assert row["bonus"] == sum(draft > 0 for draft, _ in found)
    assert row["undrafted"] == sum(draft == 0 for draft, _ in found)
    assert [row[name] for name in ACCEPTED_STEPS] == histogram(found)
    assert row["forward"] == sum(width for _, width in seen)


@pytest.mark.parametrize(
    ("length", "name"),
    [(0, "0"), (1, "1"), (7, "7"), (8, "8_15"), (15, "8_15"), (16, "16"), (17, "16"), (1000, "16")],
)
def test_each_accepted_length_has_its_bin(length: int, name: str) -> None:
    drafts = Drafts(keep=False, starts=[8, 9], drafted=[1000, 0], accepted=[length, 0])
    counts = _speculation.drafting(drafts, length + 2)
    assert {key: value for key, value in counts.items() if key.startswith("accepted_steps_") and value} == {
        f"accepted_steps_{name}": 1
    }
    assert (counts["bonus"], counts["undrafted"]) == (1, 1)


def test_steps_that_do_not_add_up_to_the_output_leave_it_unknown_how_its_tokens_came_about() -> None:
    drafts = Drafts(keep=False, starts=[8, 11], drafted=[4, 0], accepted=[2, 0])
    counts = _speculation.drafting(drafts, 5)
    assert (counts["drafted"], counts["accepted"], counts["accepted_steps_2"]) == (4, 2, 1)
    assert (counts["bonus"], counts["undrafted"]) == (-1, -1)


def test_a_draft_that_is_kept_does_not_keep_the_sequence_it_was_proposed_for(frameworks: tuple[Any, Any]) -> None:
    torch, _ = frameworks
    generator = SimpleNamespace(
        get_candidates=lambda ids: (torch.cat([ids, torch.tensor([[4, 5]])], dim=1), None),
        update_candidate_strategy=lambda ids, scores, matches: None,
    )
    drafts = Drafts(keep=True)
    _speculation.watch(generator, drafts)
    generator.get_candidates(torch.ones(1, 1000, dtype=torch.long))
    (kept,) = drafts.ids
    assert kept.tolist() == [4, 5]
    assert kept.untyped_storage().nbytes() == 2 * 8


def test_without_speculation_no_step_had_a_draft_and_where_nothing_was_seen_nothing_is_said(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, _ = frameworks
    settings = {"max_new_tokens": 5, "do_sample": False}
    with adapter.install(llama, recorder):
        llama.generate(**one(torch), **settings)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "6.1.0")
    with adapter.install(llama, recorder):
        llama.generate(**one(torch), **settings, prompt_lookup_num_tokens=4)
    plain, unseen = written(recorder, "attempt")
    names = ("drafted", "accepted", "rejected", "bonus", *ACCEPTED_STEPS)
    assert {plain[name] for name in names} == {0}
    assert {unseen[name] for name in (*names, "undrafted")} == {None}
    assert unseen["output_computed"] == plain["output_computed"]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_last_step_that_the_limit_cuts_counts_what_was_kept(
    limit: int, frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    repeat = Force(8, [[7, 5, 6, 7, 5, 6, 7, 5]])
    with adapter.install(model, recorder), passes(model) as seen:
        out = model.generate(
            **one(torch), max_new_tokens=limit, do_sample=False, prompt_lookup_num_tokens=8, logits_processor=[repeat]
        )
    (row,) = written(recorder, "attempt")
    check(row)
    found = steps(seen, 8, out.shape[1])
    assert out.shape[1] == 8 + limit
    assert (row["drafted"], row["accepted"], row["bonus"]) == (
        sum(draft for draft, _ in found), sum(took for _, took in found), sum(draft > 0 for draft, _ in found),
    )  # fmt: skip
    assert [row[name] for name in ACCEPTED_STEPS] == histogram(found)


def test_level_2_shows_every_verify_step(
    frameworks: tuple[Any, Any], deep_recorder: Recorder, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks, eos_token_id=None)
    offered: list[Run] = []

    def note(attempt: Attempt, runs: list[Run]) -> int:
        offered.extend(runs)
        return -1

    monkeypatch.setattr(deep_recorder, "offer_ids", note)
    with adapter.install(model, deep_recorder), passes(model) as seen:
        out = model.generate(**one(torch), max_new_tokens=40, do_sample=False, prompt_lookup_num_tokens=5)[0].tolist()
    found = steps(seen, 8, len(out))
    drafts = [run for run in offered if run.stream is RunStream.DRAFT]
    assert [len(run.ids) for run in drafts] == [draft for draft, _ in found]
    assert [run.start for run in drafts] == [8, *(position + 1 for position, _ in seen[1:])]
    for run, (_, took) in zip(drafts, found, strict=True):
        assert run.ids.tolist()[:took] == out[run.start : run.start + took]
    prompt, output = offered[:2]
    assert (prompt.ids.tolist(), output.ids.tolist()) == (PROMPT, out[8:])
    (row,) = written(deep_recorder, "attempt")
    assert [row[name] for name in ACCEPTED_STEPS] == histogram(found)
