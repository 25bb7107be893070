"""Traces of generate(): what caches hold and layers attend, and each verify step, against the run itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters import test_transformers_recorded as recorded_calls
from tests.capture.adapters.conftest import tiny

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.adapters._cache_rules import CacheTrace, Geometry
from weighbridge.capture.binding import Attempt
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import Axis, Operation
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import StateEvent, Trace, fold, positions, replay

Offered = list[tuple[Attempt, list[StateEvent], list[Strategy], int]]
Read = Callable[[Recorder, str], list[dict[str, Any]]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offered:
    out: Offered = []

    def note(_: Recorder, attempt: Attempt, events: Any, strategies: Any, child: int, __: int) -> bool:
        out.append((attempt, list(events()), list(strategies), child))
        return True

    monkeypatch.setattr(Recorder, "offer_trace", note)
    return out


def by_hand(prompt: int, new: int, window: int | None) -> int:
    """Keys that all queries of a sequence read, mask by mask."""
    return sum(
        1 for query in range(prompt + new - 1) for key in range(query + 1) if window is None or query - key < window
    )


def hybrid(frameworks: tuple[Any, Any]) -> Any:
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    more: dict[str, Any] = {
        "num_hidden_layers": 3,
        "layer_types": kinds,
        "sliding_window": 5,
        "use_sliding_window": True,
    }
    return tiny(frameworks, "Qwen2", **more)


MODELS: dict[str, tuple[Callable[[tuple[Any, Any]], Any], list[int | None], dict[str, Any]]] = {
    "dense": (tiny, [None, None], {}),
    "static": (tiny, [None, None], {"cache_implementation": "static"}),
    "sliding": (lambda f: tiny(f, "Mistral", sliding_window=4), [4, 4], {}),
    "sliding-static": (lambda f: tiny(f, "Mistral", sliding_window=4), [4, 4], {"cache_implementation": "static"}),
    "hybrid": (hybrid, [5, None, 5], {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_a_cache_holds_and_its_layers_attend(
    name: str, frameworks: tuple[Any, Any], whole: Recorder, offered: Offered, written: Read
) -> None:
    torch, _ = frameworks
    make, windows, more = MODELS[name]
    model, new = make(frameworks), 6
    ids = torch.arange(5, 15)[None]
    settings = {
        "max_new_tokens": new,
        "min_new_tokens": new,
        "do_sample": False,
        "return_dict_in_generate": True,
        **more,
    }
    with adapter.install(model, whole, fingerprint=False):
        result = model.generate(ids, **settings)
    ((_, events, strategies, _),) = offered
    live, layers = fold(events), result.cache.layers
    held = []
    for index, layer in enumerate(layers):
        stored = layer.keys.shape[2]
        seen = int(layer.get_seq_length())
        held.append(min(stored, seen))
        assert seen == 10 + new - 1
        assert live[index, 0] == tuple(range(seen - held[-1], seen)), "the last ones, as many as the cache has"
    known = {event.seq: event for event in events}
    selected = {(e.layer_lo, e.layer_hi): positions(e, known) for e in events if e.op is Operation.SELECT}
    for (low, high), attended in selected.items():
        assert low is not None
        assert high is not None
        (window,) = {windows[index] for index in range(low, high + 1)}
        assert attended == tuple(range(seen - (window or 0), seen))
    (row,) = written(whole, "attempt")
    assert row["attended"] == sum(by_hand(10, new, window) for window in windows) // len(windows)
    assert row["attended_dense"] == by_hand(10, new, None)
    heads = layers[0].keys.shape[1]
    assert (row["kv_kept"], row["kv_appended"]) == (heads * sum(held), heads * len(windows) * (10 + new - 1))
    assert row["kv_appended"] == row["kv_evicted"] + row["kv_kept"]
    assert replay(events).entries == row["kv_kept"]
    assert sum(len(event.payload or b"") for event in events) <= 12
    assert [each.family for each in strategies] == ([] if name == "dense" else ["window" if any(windows) else "dense"])


def test_drafts_that_were_taken_back_are_no_eviction() -> None:
    layers = Geometry((None, 4), (None, 3), 2, 4, static=False)
    # A prompt of 10 with 3 drafts, of which 1 stood; then 4 positions, of which all stood.
    trace = CacheTrace(layers, 15, ((0, 13, 0), (11, 4, 0)), cached=True)
    counts, events = trace.counts(), Trace()
    trace.add_to(events)
    assert (counts["kv_appended"], counts["kv_evicted"], counts["kv_kept"]) == (2 * 2 * 15, 2 * 12, 2 * (15 + 3))
    assert replay(events.events).entries == counts["kv_kept"]
    assert counts["attended_dense"] == sum(range(1, 14)) + sum(range(12, 16))


@pytest.mark.parametrize("window", [None, 1, 4, 9, 30])
def test_keys_of_widening_passes_are_those_of_each_pass(window: int | None) -> None:
    """As where nothing is cached, worked out without going through them."""
    layers = Geometry((window,), (None,), 1, 1, static=False)
    for prompt, further in ((1, 0), (3, 5), (8, 20)):
        counts = CacheTrace(layers, prompt + further, ((0, prompt, further),), cached=False).counts()
        queries = [at for last in range(prompt, prompt + further + 1) for at in range(last)]
        assert counts["attended"] == sum(min(at + 1, window or at + 1) for at in queries)
        assert counts["attended_dense"] == sum(at + 1 for at in queries)


def test_a_batch_is_told_row_by_row(
    llama: Any, whole: Recorder, offered: Offered, batch: dict[str, Any], written: Read
) -> None:
    with adapter.install(llama, whole, fingerprint=False):
        llama.generate(**batch, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    rows = written(whole, "attempt")
    assert [row["attended"] for row in rows] == [by_hand(prompt, 4, None) for prompt in (8, 3, 5)]
    assert [len(fold(events)[1, 0]) for _, events, _, _ in offered] == [8 + 3, 3 + 3, 5 + 3]


def test_without_a_cache_every_step_reads_everything_again(
    llama: Any, frameworks: tuple[Any, Any], whole: Recorder, offered: Offered, written: Read
) -> None:
    torch, _ = frameworks
    with adapter.install(llama, whole, fingerprint=False):
        llama.generate(torch.arange(5, 9)[None], max_new_tokens=3, min_new_tokens=3, do_sample=False, use_cache=False)
    (row,) = written(whole, "attempt")
    assert row["attended"] == row["attended_dense"] == sum(by_hand(prompt, 1, None) for prompt in (4, 5, 6))
    assert (row["kv_kept"], [events for _, events, _, _ in offered]) == (None, [[]])


def test_what_is_not_worked_out_is_unknown(frameworks: tuple[Any, Any], whole: Recorder, written: Read) -> None:
    torch, transformers = frameworks
    model, ids = tiny(frameworks), torch.arange(5, 9)[None]
    used = transformers.DynamicCache(config=model.config)
    with adapter.install(model, whole, fingerprint=False):
        model.generate(ids, max_new_tokens=3, num_beams=2, do_sample=False)
        model.generate(ids, max_new_tokens=3, min_new_tokens=3, do_sample=False, cache=used)
        model.generate(torch.arange(5, 16)[None], max_new_tokens=3, do_sample=False, cache=used)
        model.config.layer_types = ["linear_attention", "full_attention"]
        model.generate(ids, max_new_tokens=3, do_sample=False, cache=transformers.DynamicCache())
    rows = written(whole, "attempt")
    assert [row["attended"] is None for row in rows] == [True, False, True, True]


CASES = [
    case
    for case in recorded_calls.FORCED
    if case.startswith(("T16", "T18", "T19", "T21", "T27", "T28", "T29", "T30", "T32"))
]


@pytest.mark.real
@pytest.mark.parametrize("name", CASES)
def test_a_recorded_call_made_again_gives_the_recorded_steps_and_cache_lengths(
    name: str, shared_real: Path, frameworks: tuple[Any, Any], whole: Recorder, offered: Offered
) -> None:
    torch, transformers = frameworks
    lines = (shared_real / "engines" / "transformers" / "generate.jsonl").open(encoding="utf-8")
    with lines:
        case = next(found for found in map(json.loads, lines) if found["case"] == name)
    sequences = torch.tensor(case["output"]["sequences"])

    def force(ids: Any, scores: Any) -> Any:
        if ids.shape[1] < sequences.shape[1]:
            scores[torch.arange(len(sequences)), sequences[:, ids.shape[1]]] = 1e9
        return scores

    model = recorded_calls.model_of(case, frameworks)
    torch.manual_seed(0)
    processors = recorded_calls.processors(case, force, transformers)
    with adapter.install(model, whole, fingerprint=False):
        model.generate(
            **recorded_calls.inputs(torch, case), **recorded_calls.settings(case), logits_processor=processors
        )
    ((_, events, _, _),) = offered
    live = fold(events)
    assert len(live[0, 0]) == case["cache"]["layers"][0]["kv_entries"]
    check_steps(events, case.get("verify_steps"))


def check_steps(events: list[StateEvent], steps: dict[str, Any] | None) -> None:
    emitted = [event for event in events if event.axis is Axis.EMIT]
    assert bool(emitted) == (steps is not None)
    if steps is None:
        return
    known = {event.seq: event for event in events}
    at = {step: {event.op: event for event in group} for step, group in itertools.groupby(emitted, lambda e: e.step)}
    for step, (start, drafted, accepted) in enumerate(
        zip(steps["position"], steps["drafted"], steps["accepted"], strict=True)
    ):
        told = at[step]
        counts = [
            told[op].n_members if op in told else 0 for op in (Operation.DRAFT, Operation.ACCEPT, Operation.REJECT)
        ]
        assert counts == [drafted, accepted, drafted - accepted]
        assert positions(told[Operation.BONUS], known) == (start + accepted,)
        if accepted:
            assert positions(told[Operation.ACCEPT], known) == tuple(range(accepted))


@pytest.mark.real
def test_every_recorded_verify_step_comes_back_as_it_was(shared_real: Path) -> None:
    from weighbridge.capture.adapters._speculation import Drafts, add_drafts  # noqa: PLC0415
    from weighbridge.schemas.trace import Trace  # noqa: PLC0415
    from weighbridge.schemas.trace_block import pack_events, unpack_events  # noqa: PLC0415

    seen = 0
    with (shared_real / "engines" / "transformers" / "generate.jsonl").open(encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            steps = case.get("verify_steps")
            if steps is None:
                continue
            trace = Trace()
            add_drafts(trace, Drafts(True, steps["position"], steps["drafted"], steps["accepted"]))
            check_steps(unpack_events(pack_events(trace.events)), steps)
            seen += 1
    assert seen >= 8
