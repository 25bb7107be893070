"""Calls of generate() that were recorded: read again as they are, and made again with every token forced.

A forced run computes with other weights, so only what follows from the tokens is compared: counts, positions of every
verify step, drafted and accepted tokens of prompt lookup, positions processed by forward passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.capture.adapters.conftest import tiny

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import RunStream

Read = Callable[[Recorder, str], list[dict[str, Any]]]
CASES = (
    "T01-plain-greedy", "T03-plain-sampled-2", "T04-chat-llama", "T05-batch-left-pad", "T06-batch-eos-early",
    "T08-batch-all-eos", "T09-eos-at-once", "T11-min-new-tokens", "T12-beam-3", "T14-beam-early-eos",
    "T16-prompt-lookup", "T18-prompt-lookup-sampled", "T19-prompt-lookup-walk", "T21-prompt-lookup-walk",
    "T22-greedy-16", "T23-stop-string", "T24-sampled-16", "T26-stop-string-prompt-lookup", "T27-eos-prompt-lookup",
    "T28-prompt-lookup-cut-5", "T28-prompt-lookup-cut-14", "T29-sliding-window", "T30-sliding-window-short",
    "T32-static-cache", "T33-no-cache", "T35-assistant-random", "T37-encoder-decoder", "T40-max-time",
    "T41-prompt-lookup-batch", "T42-length-limit-below-prompt",
)  # fmt: skip
# Beams cannot be forced; the tokenizer, the assistant and the clock of these calls are not at hand.
NOT_FORCED = ("T12", "T14", "T23", "T26", "T35", "T40", "T41", "T42")
FORCED = [case for case in CASES if not case.startswith(NOT_FORCED)]
END_TOKENS = (128001, 128008, 128009)


@pytest.fixture
def recorded(shared_real: Path) -> dict[str, dict[str, Any]]:
    with (shared_real / "engines" / "transformers" / "generate.jsonl").open(encoding="utf-8") as file:
        found = {row["case"]: row for row in map(json.loads, file)}
    assert set(found) == set(CASES)
    return found


def ends(case: dict[str, Any]) -> list[int]:
    """The end tokens the recorded model had."""
    if case["model"] == "tiny-t5":
        return [1]
    return list(case["generate_kwargs"].get("eos_token_id", END_TOKENS))


def settings(case: dict[str, Any], *more: str) -> dict[str, Any]:
    """What was asked for, without what the record can only name."""
    left_out = {"logits_processor", "forced_tokens", "allowed_tokens", "assistant_model", "tokenizer", *more}
    return {name: value for name, value in case["generate_kwargs"].items() if name not in left_out}


def inputs(torch: Any, case: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.tensor(value) for name, value in case["input"].items()}


def expected(case: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(row["prompt_tokens"], row["new_tokens_to_first_eos"], int(row["ended_by_eos"])) for row in case["rows"]]


@pytest.mark.real
@pytest.mark.parametrize("name", [case for case in CASES if not case.startswith(("T37", "T41", "T42"))])
def test_a_recorded_result_is_read_as_it_was_counted(
    name: str, recorded: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, transformers = frameworks
    case = recorded[name]
    result = torch.tensor(case["output"]["sequences"])
    model = SimpleNamespace(
        config=SimpleNamespace(is_encoder_decoder=False),
        generation_config=transformers.GenerationConfig(eos_token_id=ends(case)),
        generate=lambda **_: result,
    )
    with adapter.install(model, recorder, fingerprint=False):
        model.generate(**inputs(torch, case), **settings(case))
    rows = written(recorder, "attempt")
    names = ("input_computed", "output_computed", "withheld_end_token")
    assert [tuple(row[each] for each in names) for row in rows] == expected(case)
    forward = [row["forward"] for row in rows]
    if case.get("verify_steps") is None and None not in forward:
        assert sum(forward) == case["forward_tokens"]


@pytest.mark.real
@pytest.mark.parametrize("name", FORCED)
def test_a_recorded_call_made_again_gives_the_recorded_counts(
    name: str, recorded: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], deep_recorder: Recorder,
    written: Read, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    torch, transformers = frameworks
    case = recorded[name]
    given = inputs(torch, case)
    sequences = torch.tensor(case["output"]["sequences"])
    model = model_of(case, frameworks)
    runs: list[Run] = []

    def note(attempt: Attempt, offered: list[Run]) -> int:
        runs.extend(offered)
        return -1

    def force(ids: Any, scores: Any) -> Any:
        if ids.shape[1] < sequences.shape[1]:
            scores[torch.arange(len(sequences)), sequences[:, ids.shape[1]]] = 1e9
        return scores

    monkeypatch.setattr(deep_recorder, "offer_ids", note)
    torch.manual_seed(0)
    with adapter.install(model, deep_recorder, fingerprint=False):
        again = model.generate(**given, **settings(case), logits_processor=processors(case, force, transformers))
    assert again.tolist() == case["output"]["sequences"]
    rows = written(deep_recorder, "attempt")
    names = ("input_computed", "output_computed", "withheld_end_token")
    assert [tuple(row[each] for each in names) for row in rows] == expected(case)
    if case["model"] != "tiny-t5":
        assert sum(row["forward"] for row in rows) == case["forward_tokens"]
    steps = case.get("verify_steps")
    if steps is not None:
        (row,) = rows
        drafts = [run for run in runs if run.stream is RunStream.DRAFT]
        assert [run.start for run in drafts] == steps["position"]
        assert [run.ids.tolist() for run in drafts] == steps["draft_ids"]
        assert (row["drafted"], row["accepted"]) == (steps["sum_drafted"], steps["sum_accepted"])
        assert row["bonus"] + row["undrafted"] == steps["n_steps"]
        assert row["undrafted"] == steps["drafted"].count(0)


def processors(case: dict[str, Any], force: Any, transformers: Any) -> list[Any]:
    """The forcing, behind the recorded restriction to a few tokens, which decides what may be drafted."""
    allowed = case["generate_kwargs"].get("allowed_tokens") or []

    def only(ids: Any, scores: Any) -> Any:
        kept = scores[:, allowed[0]].clone()
        scores = scores.fill_(float("-inf"))
        scores[:, allowed[0]] = kept
        return scores

    return [only, force] if allowed else [force]


def model_of(case: dict[str, Any], frameworks: tuple[Any, Any]) -> Any:
    """A model of the recorded kind, large in vocabulary only."""
    torch, transformers = frameworks
    words = 128_256
    if case["model"] == "tiny-t5":
        config = transformers.T5Config(
            vocab_size=words, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=128004
        )
        torch.manual_seed(1)
        return transformers.T5ForConditionalGeneration(config).eval()
    kind, more = ("Mistral", {"sliding_window": 16}) if "mistral" in case["model"] else ("Llama", {})
    return tiny(
        frameworks, kind, words, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        eos_token_id=list(END_TOKENS), pad_token_id=None, bos_token_id=128000, **more,
    )  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", ["T41-prompt-lookup-batch", "T42-length-limit-below-prompt"])
def test_a_recorded_refusal_is_a_failed_attempt(
    name: str, recorded: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    case = recorded[name]
    model = model_of(case, frameworks)
    with adapter.install(model, recorder, fingerprint=False), pytest.raises(ValueError) as raised:
        model.generate(**inputs(torch, case), **settings(case))
    assert case["error"].startswith(f"ValueError: {raised.value}"[:60])
    rows = written(recorder, "attempt")
    assert len(rows) == len(case["input"]["input_ids"])
    assert {(row["status"], row["input_computed"], row["output_computed"]) for row in rows} == {("failed", None, None)}
