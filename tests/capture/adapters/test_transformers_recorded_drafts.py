"""Recorded verify steps, made again live: a script stands for the weights, and all that is drafted, accepted and told
is the host's and the adapter's own doing.

Of the recorded models only the shapes are known, no weights. So logits are written over, position by position, such
that the recorded tokens follow; what is drafted then comes of the recorded settings (prompt lookup, an assistant that
is never sure), what is accepted of comparing both, and where it ends of the recorded stop string or limit.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters import test_transformers_recorded as recorded_calls
from tests.capture.adapters.test_transformers_trace import check_steps

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.content import read_content
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import Axis, Operation
from weighbridge.schemas.trace import fold
from weighbridge.schemas.trace_block import open_events

# Vocabularies of their recorded size: with the tests of whole systems.
pytestmark = [pytest.mark.real, pytest.mark.system]

Read = Callable[[Recorder, str], list[dict[str, Any]]]
SURE, UNSURE = 1e9, 1.0  # of 128,256 words one is then all but certain, or barely likelier than the others
STOPPED, ASSISTED = "T26-stop-string-prompt-lookup", "T35-assistant-random"


@pytest.fixture
def cases(shared_real: Path) -> dict[str, dict[str, Any]]:
    with (shared_real / "engines" / "transformers" / "generate.jsonl").open(encoding="utf-8") as lines:
        return {case["case"]: case for case in map(json.loads, lines)}


@contextmanager
def scripted(model: Any, tokens: Mapping[int, int], logit: float) -> Iterator[None]:
    """What the model says at each place of the sequence is written over: `tokens` by the place they stand at."""

    def say(_: Any, __: Any, kwargs: Any, output: Any) -> Any:
        logits = output.logits.fill_(0.0)
        places = kwargs["position_ids"][0, -logits.shape[1] :].tolist()
        for row, place in enumerate(places):
            if place + 1 in tokens:
                logits[0, row, tokens[place + 1]] = logit
        return output

    handle = model.register_forward_hook(say, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def spelling(transformers: Any, word: str, number: int) -> Any:
    """A tokenizer of letters and one word, with the recorded word's own number and the recorded vocabulary's end."""
    import tokenizers  # noqa: PLC0415 - comes with transformers

    letters = {letter: place for place, letter in enumerate(string.ascii_letters)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE({**letters, word: number, "<end>": 128_255}, []))
    made.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


def told(recorder: Recorder, keys: KeyFolder) -> list[Any]:
    """State events as they were stored: encrypted in the spool, opened with their key."""
    recorder.close()
    blocks = [block for path in recorder.spool.glob("*.content") for block in read_content(path).blocks]
    ((about, block),) = [each for each in blocks if "trace" in each[0]]
    return open_events(about["key"], keys.get(about["key"]), bytes.fromhex(about["block"]) + block)


def check(case: dict[str, Any], again: Any, events: list[Any], row: dict[str, Any]) -> None:
    """The tokens, the verify steps, the counts and the cache are the recorded ones."""
    steps = case["verify_steps"]
    assert again.tolist() == case["output"]["sequences"]
    check_steps(events, steps)
    by_step: dict[Operation, dict[int, int]] = {}
    for event in events:
        if event.axis is Axis.EMIT:
            by_step.setdefault(event.op, {})[event.step] = event.n_members
    for op, name in ((Operation.DRAFT, "drafted"), (Operation.ACCEPT, "accepted")):
        assert [by_step.get(op, {}).get(step, 0) for step in range(steps["n_steps"])] == steps[name]
    assert (row["drafted"], row["accepted"]) == (steps["sum_drafted"], steps["sum_accepted"])
    assert row["output_computed"] == case["rows"][0]["new_tokens_to_first_eos"]
    assert row["forward"] == case["forward_tokens"]
    assert len(fold(events)[0, 0]) == case["cache"]["layers"][0]["kv_entries"]


def test_a_stop_string_ends_the_recorded_step(
    cases: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], whole: Recorder, keys: KeyFolder, written: Read
) -> None:
    """Three words were asked for, and the step that brought the third one brought a fourth."""
    torch, transformers = frameworks
    case = cases[STOPPED]
    (word,) = set(case["output"]["sequences"][0][3:])
    tokenizer = spelling(transformers, case["rows"][0]["text_all"][: len("Allocation")], word)
    model = recorded_calls.model_of(case, frameworks)
    # It would go on to its limit: what ends it is the stop string.
    with scripted(model, dict.fromkeys(range(64), word), SURE), adapter.install(model, whole, fingerprint=False):
        again = model.generate(
            **recorded_calls.inputs(torch, case), **recorded_calls.settings(case), tokenizer=tokenizer
        )
    events = told(whole, keys)
    (row,) = written(whole, "attempt")
    check(case, again, events, row)
    assert (row["finish_reason"], row["max_tokens"]) == ("stop", 32)


def test_an_assistant_that_is_never_sure_drafts_as_recorded(
    cases: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], whole: Recorder, keys: KeyFolder, written: Read
) -> None:
    """It stops after one token, as the random one did; its first one is wrong, and near the limit it drafts none."""
    torch, _ = frameworks
    case = cases[ASSISTED]
    sequence, steps = case["output"]["sequences"][0], case["verify_steps"]
    model, assistant = (recorded_calls.model_of(case, frameworks) for _ in range(2))
    right = dict(enumerate(sequence))
    drafts = {
        start + at: token
        for start, ids in zip(steps["position"], steps["draft_ids"], strict=True)
        for at, token in enumerate(ids)
    }
    with (
        scripted(model, right, SURE),
        scripted(assistant, right | drafts, UNSURE),
        adapter.install(model, whole, fingerprint=False),
    ):
        again = model.generate(
            **recorded_calls.inputs(torch, case), **recorded_calls.settings(case), assistant_model=assistant
        )
    events = told(whole, keys)
    (row,) = written(whole, "attempt")
    check(case, again, events, row)


def test_another_script_gives_other_steps(
    cases: dict[str, dict[str, Any]], frameworks: tuple[Any, Any], whole: Recorder, keys: KeyFolder
) -> None:
    """The arrays are not carried through: with an assistant that is always wrong nothing is accepted."""
    torch, _ = frameworks
    case = cases[ASSISTED]
    model, assistant = (recorded_calls.model_of(case, frameworks) for _ in range(2))
    sequence = dict(enumerate(case["output"]["sequences"][0]))
    with (
        scripted(model, sequence, SURE),
        scripted(assistant, dict.fromkeys(sequence, 5), UNSURE),
        adapter.install(model, whole, fingerprint=False),
    ):
        model.generate(**recorded_calls.inputs(torch, case), **recorded_calls.settings(case), assistant_model=assistant)
    events = told(whole, keys)
    assert not [event for event in events if event.op is Operation.ACCEPT]
    assert len([event for event in events if event.op is Operation.REJECT]) == 23, "the last token is not drafted"
