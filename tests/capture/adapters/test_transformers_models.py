"""Padded batches on several kinds of models: the counts are those a slow count of the raw ids gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.capture.adapters.conftest import END, PAD, Force, check, end_of, forwards, one, tiny, tiny_t5

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.recorder import Recorder

Read = Callable[[Recorder, str], list[dict[str, Any]]]
PROMPTS = [[5, 6, 7, 5, 6, 7, 5, 6], [9, 8, 7], [4, 5, 6, 7, 8], [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]]
MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "temperature": 2.0},
    "three": {"do_sample": True, "num_return_sequences": 3, "temperature": 2.0},
    "beams": {"num_beams": 3, "num_return_sequences": 2, "do_sample": False},
    "sampled_beams": {"num_beams": 3, "do_sample": True, "temperature": 2.0},
    "dictionary": {"do_sample": True, "return_dict_in_generate": True, "output_scores": True, "output_logits": True},
}


def model_of(kind: str, frameworks: tuple[Any, Any]) -> Any:
    if kind == "T5":
        return tiny_t5(frameworks)
    return tiny(frameworks, kind, **({"sliding_window": 4} if kind == "Mistral" else {}))


def padded(torch: Any, *, right: bool) -> dict[str, Any]:
    """The prompts with a mask: padded on the left, as decoders need it, or on the right, as encoders have it."""
    width = max(map(len, PROMPTS))
    fill = [[PAD] * (width - len(prompt)) for prompt in PROMPTS]
    rows = [prompt + gap if right else gap + prompt for prompt, gap in zip(PROMPTS, fill, strict=True)]
    ids = torch.tensor(rows)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pad", [PAD, END])
@pytest.mark.parametrize("kind", ["Llama", "Mistral", "T5"])
def test_every_row_is_counted_to_its_first_end_token(
    kind: str, pad: int, mode: str, frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = model_of(kind, frameworks)
    given = padded(torch, right=kind == "T5")
    start = 1 if kind == "T5" else given["input_ids"].shape[1]

    def often_ended(ids: Any, scores: Any) -> Any:
        scores[:, END] += 4.0
        return scores

    def run() -> Any:
        torch.manual_seed(11)
        out = model.generate(**given, max_new_tokens=9, pad_token_id=pad, logits_processor=[often_ended], **MODES[mode])
        return getattr(out, "sequences", out)

    raw = run()
    with adapter.install(model, recorder), forwards(model) as seen:
        assert torch.equal(run(), raw)
    rows = written(recorder, "attempt")
    each = raw.shape[0] // len(PROMPTS)
    ends = [end_of([int(token) for token in row[start:]]) for row in raw]
    own = [ends[at * each : (at + 1) * each] for at in range(len(PROMPTS))]
    assert {ended for _, ended in ends} == {0, 1} or mode not in ("sampled", "three")
    names = ("input_computed", "output_computed", "withheld_end_token", "output_delivered")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (len(prompt), sum(n for n, _ in mine), sum(e for _, e in mine), sum(n - e for n, e in mine))
        for prompt, mine in zip(PROMPTS, own, strict=True)
    ]
    for row, mine in zip(rows, own, strict=True):
        check(row)
        wanted = {"stop" if ended else "length" for _, ended in mine}
        assert row["finish_reason"] == (wanted.pop() if len(wanted) == 1 else "other")
    forward = [row["forward"] for row in rows]
    if kind == "T5":
        assert set(forward) == {None}
    elif "beams" not in mode:
        assert sum(forward) == sum(seen)
    children = [(row["input_computed"], row["output_computed"]) for row in written(recorder, "child")]
    assert children == [(len(p), n) for p, mine in zip(PROMPTS, own, strict=True) for n, _ in mine if each > 1]


@pytest.mark.parametrize("kind", ["Llama", "Mistral"])
@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("pad", [PAD, END, 3])
def test_what_stands_behind_a_stop_string_is_not_counted(
    pad: int, beams: int, kind: str, frameworks: tuple[Any, Any], letters: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = model_of(kind, frameworks)
    x, y = (letters.convert_tokens_to_ids(letter) for letter in "xy")
    forced = [[9, x, y], [9] * 7, [9, 9, END], [x, y]]
    with adapter.install(model, recorder):
        model.generate(
            **padded(torch, right=False), max_new_tokens=7, do_sample=False, num_beams=beams, pad_token_id=pad,
            stop_strings=["xy"], tokenizer=letters, early_stopping=beams > 1,
            logits_processor=[Force(10, [row for row in forced for _ in range(beams)])],
        )  # fmt: skip
    names = ("output_computed", "withheld_end_token", "finish_reason")
    assert [tuple(row[name] for name in names) for row in written(recorder, "attempt")] == [
        (3, 0, "stop"), (7, 0, "length"), (3, 1, "stop"), (2, 0, "stop"),
    ]  # fmt: skip


def test_a_prompt_longer_than_the_window_is_computed_whole(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = model_of("Mistral", frameworks)
    ids = torch.randint(3, 60, (1, 50))
    with adapter.install(model, recorder), forwards(model) as seen:
        out = model.generate(ids, max_new_tokens=12, do_sample=False, return_dict_in_generate=True)
    # The cache holds the window; the counts do not look at it.
    assert out.cache.layers[0].keys.shape[-2] < 50
    (row,) = written(recorder, "attempt")
    check(row)
    length, ended = end_of(out.sequences[0, 50:].tolist())
    assert (row["input_computed"], row["prefill_computed"], row["output_computed"]) == (50, 50, length)
    assert (row["withheld_end_token"], row["forward"], row["padding"]) == (ended, sum(seen), 0)


def test_a_decoder_that_was_given_its_beginning_leaves_the_prompt_unknown(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = model_of("T5", frameworks)
    ids = torch.tensor([PROMPTS[0]])
    with adapter.install(model, recorder):
        model.generate(ids, max_new_tokens=3, min_new_tokens=3, decoder_input_ids=torch.tensor([[PAD, 4, 5]]))
        encoded = model.get_encoder()(input_ids=ids)
        model.generate(encoder_outputs=encoded, attention_mask=torch.ones_like(ids), max_new_tokens=3, min_new_tokens=3)
    begun, encoded_before = written(recorder, "attempt")
    assert (begun["input_computed"], begun["output_computed"]) == (None, 3)
    assert (encoded_before["input_computed"], encoded_before["output_computed"]) == (8, 3)
    assert [encoded_before[name] for name in ("cached_local", "prefill_computed")] == [None, None]


@pytest.mark.parametrize("kind", ["Llama", "T5"])
def test_a_model_with_a_generate_of_its_own_is_read_only_where_its_result_begins_with_the_prompt(
    kind: str, frameworks: tuple[Any, Any], recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    model = model_of(kind, frameworks)
    plain = type(model)
    answers = iter(("same", "stripped", "twice"))

    class Own(plain):  # type: ignore[misc, valid-type]
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            answer, out = next(answers), super().generate(*args, **kwargs)
            if answer == "stripped":
                return out[:, args[0].shape[1] :]
            if answer == "twice":
                return torch.cat([out, super().generate(out, **kwargs)[:, out.shape[1] :]], dim=1)
            return out

    model.__class__ = Own
    ids = torch.tensor([PROMPTS[0]])
    with adapter.install(model, recorder):
        for _ in range(3):
            model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    rows = written(recorder, "attempt")
    assert [row["input_computed"] for row in rows] == [8, 8, 8]
    assert [row["output_computed"] for row in rows] == [4 if kind == "Llama" else None, None, None]
    assert [row["prefill_us"] is None for row in rows] == [False, False, True]
    assert {row["status"] for row in rows} == {"succeeded"}


def test_without_any_prompt_the_start_token_is_the_prompt(
    frameworks: tuple[Any, Any], llama: Any, recorder: Recorder, written: Read
) -> None:
    torch, _ = frameworks
    with adapter.install(llama, recorder):
        out = llama.generate(max_new_tokens=3, min_new_tokens=3, do_sample=False)
        more = llama.generate(
            max_new_tokens=3, min_new_tokens=3, do_sample=True, num_return_sequences=2, generation_config=None
        )
        llama.generate(**one(torch), max_new_tokens=3, min_new_tokens=3, do_sample=False)
    assert (out.shape, more.shape) == ((1, 4), (2, 4))
    bare, two, _ = written(recorder, "attempt")
    assert (bare["input_computed"], bare["output_computed"]) == (1, 3)
    assert (two["input_computed"], two["output_computed"], two["n"]) == (1, 6, 2)
