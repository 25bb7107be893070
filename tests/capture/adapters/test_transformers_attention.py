"""Registered attention functions: what is told is what a mask worked out by hand has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.capture.adapters.conftest import tiny

from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.adapters import transformers_attention as adapter
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import Axis
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.trace import Trace, rows

PROMPT, NEW, LAYERS, HEADS = 9, 5, 2, 2
SETTINGS = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False}


def topk(torch: Any, k: int, *, say: bool) -> Callable[..., Any]:
    """Attention over the best k keys of each query; says which, or returns its weights."""

    def attention(
        module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float = 1.0, **_: Any
    ) -> tuple[Any, Any]:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        scores = query @ key.transpose(2, 3) * scaling
        if mask is None:
            mask = torch.ones(scores.shape[2:], dtype=torch.bool).tril(scores.shape[3] - scores.shape[2])[None, None]
        scores = scores.masked_fill(~mask, float("-inf"))
        best = torch.zeros_like(scores, dtype=torch.bool)
        best.scatter_(3, scores.topk(min(k, scores.shape[3]), 3).indices, True)
        chosen = best & mask
        weights = scores.masked_fill(~chosen, float("-inf")).softmax(-1)
        if say:
            adapter.attended(chosen)
        return (weights @ value).transpose(1, 2).contiguous(), None if say else weights

    return attention


def banded(transformers: Any, allowed: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A mask function: causal, and `allowed(query, key)`."""

    def mask(*args: Any, mask_function: Any = None, **kwargs: Any) -> Any:
        def both(batch: Any, head: Any, query: Any, key: Any) -> Any:
            return mask_function(batch, head, query, key) & allowed(query, key)

        kwargs["allow_is_causal_skip"] = False
        return transformers.masking_utils.sdpa_mask(*args, mask_function=both, **kwargs)

    return mask


def by_hand(allowed: Callable[[int, int], bool]) -> int:
    return sum(allowed(query, key) for query in range(PROMPT + NEW - 1) for key in range(query + 1))


@pytest.mark.parametrize("say", [True, False])
def test_top_k(say: bool, frameworks: tuple[Any, Any], whole: Recorder, written: Callable[..., Any]) -> None:
    torch, _ = frameworks
    model, k = tiny(frameworks), 3
    with adapter.install("topk", topk(torch, k, say=say), parameters={"k": k}, sets=True) as watched:
        model.set_attn_implementation("topk")
        with generation.ADAPTER.install(model, whole, fingerprint=False):
            told: list[Any] = []
            trace_of = watched.trace

            def noted() -> Any:
                told.append(trace_of())
                return told[-1]

            watched.trace = noted  # type: ignore[method-assign]
            model.generate(torch.arange(5, 5 + PROMPT)[None], **SETTINGS)
    (row,) = written(whole, "attempt")
    expected = sum(min(query + 1, k) for query in range(PROMPT + NEW - 1))
    assert (row["attended"], row["attended_dense"]) == (expected, by_hand(lambda _, __: True))
    trace = Trace()
    told[-1].add_to(trace)
    known = {event.seq: event for event in trace.events}
    steps = [event for event in trace.events if event.payload is not None]
    assert len(steps) == LAYERS * (NEW - 1)
    for event in steps:
        chosen = rows(event, known)
        assert chosen is not None
        assert [row.bit_count() for row in chosen.values()] == [k] * HEADS
    assert sum(event.n_members for event in trace.events) == expected * LAYERS * HEADS
    assert {event.axis for event in trace.events} == {Axis.ATTEND}


WINDOW, BLOCK = 4, 3


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("window", lambda query, key: query - key < WINDOW),
        ("sinks", lambda query, key: (query - key < WINDOW) | (key < 2)),
        ("block_sparse", lambda query, key: (query // BLOCK - key // BLOCK) % 2 == 0),
    ],
)
def test_masks(
    name: str, allowed: Callable[[Any, Any], Any], frameworks: tuple[Any, Any], whole: Recorder,
    written: Callable[..., Any],
) -> None:  # fmt: skip
    torch, transformers = frameworks
    from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: PLC0415

    model = tiny(frameworks)
    ids = torch.arange(5, 5 + PROMPT)[None]
    with adapter.install(name, sdpa_attention_forward, banded(transformers, allowed)):
        model.set_attn_implementation(name)
        plain = model.generate(ids, **SETTINGS)
        with generation.ADAPTER.install(model, whole, fingerprint=False):
            assert torch.equal(model.generate(ids, **SETTINGS), plain)
    (row,) = written(whole, "attempt")
    assert row["attended"] == by_hand(lambda query, key: bool(allowed(query, key)))
    assert row["attended_dense"] == by_hand(lambda _, __: True)


def test_below_level_3_a_registered_function_is_not_looked_at_and_what_it_reads_is_unknown(
    frameworks: tuple[Any, Any], recorder: Recorder, written: Callable[..., Any]
) -> None:
    torch, _ = frameworks
    model = tiny(frameworks)
    with adapter.install("topk", topk(torch, 3, say=False)) as watched:
        model.set_attn_implementation("topk")
        with generation.ADAPTER.install(model, recorder, fingerprint=False):
            model.generate(torch.arange(5, 5 + PROMPT)[None], **SETTINGS)
        with watched.watching() as trace:
            model(torch.arange(5, 5 + PROMPT)[None])
    (row,) = written(recorder, "attempt")
    assert (row["attended"], row["attended_dense"]) == (None, by_hand(lambda _, __: True))
    assert trace.counts() == {"attended": sum(min(query + 1, 3) for query in range(PROMPT)), "attended_dense": 45}


def test_names_are_given_back(frameworks: tuple[Any, Any]) -> None:
    torch, transformers = frameworks
    with adapter.install("topk", topk(torch, 3, say=False)):
        assert "topk" in transformers.AttentionInterface()
        with pytest.raises(ConfigError, match="under another name"):
            adapter.install("topk", topk(torch, 3, say=False))
    assert "topk" not in transformers.AttentionInterface()
    assert "topk" not in transformers.AttentionMaskInterface()
    with pytest.raises(ConfigError, match="under another name"):
        adapter.install("sdpa", topk(torch, 3, say=False))
