"""Pruning by self-information and token merging, run: what is told is what the model got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters.conftest import tiny

from weighbridge.capture.adapters import token_merging
from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.adapters.selective_context import prune
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.pruning import told
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import Axis, Operation
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.trace import StateEvent, fold

TEXT = "abc abc def abc 1234 abc abcabcabc zyx zyx"


def test_the_tokens_that_are_expected_most_are_left_out(frameworks: tuple[Any, Any], letters: Any) -> None:
    torch, _ = frameworks
    model, text = tiny(frameworks), TEXT.replace(" ", "")
    ids = letters(text)["input_ids"]
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    surprise = [-float(expected[at, ids[at + 1]]) for at in range(len(ids) - 1)]
    shorter, pruned = prune(text, model, letters, ratio=0.4)
    gone = sorted(range(1, len(ids)), key=lambda at: surprise[at - 1])[: int(len(ids) * 0.4)]
    assert pruned.kept is not None
    kept = [place for low, high in pruned.kept for place in range(low, high + 1)]
    assert kept == [place for place in range(len(text)) if place not in gone]
    assert shorter == "".join(text[place] for place in kept)
    assert (pruned.tokens_before, pruned.tokens_after) == (len(ids), len(ids) - len(gone))


@pytest.mark.parametrize("ratio", [-0.1, 1.0])
def test_a_share_out_of_range_is_refused(ratio: float, frameworks: tuple[Any, Any], letters: Any) -> None:
    with pytest.raises(ConfigError, match="from 0 and below 1"):
        prune(TEXT, tiny(frameworks), letters, ratio=ratio)


def test_nothing_is_left_out_of_nothing(frameworks: tuple[Any, Any], letters: Any) -> None:
    for text in ("", "a"):
        shorter, pruned = prune(text, tiny(frameworks), letters, ratio=0.9)
        assert (shorter, pruned.tokens_before, pruned.tokens_after) == (text, len(text), len(text))


def test_it_becomes_part_of_the_attempt_that_follows(
    frameworks: tuple[Any, Any],
    letters: Any,
    tmp_path: Path,
    key: bytes,
    keys: KeyFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch, _ = frameworks
    rule = {"level": 3, "share": 1.0, "purpose": "billing_audit", "expires": "9999-12-31"}
    policy = tmp_path / "policy3.json"
    policy.write_text(json.dumps({"version": 1, "cells": [rule]}))
    recorder = Recorder.start(
        tmp_path / "spool", installation="test-1", key=key, keys=keys, policy_file=policy, limits=Limits(keeper_s=3600)
    )
    offered: list[tuple[list[StateEvent], list[str]]] = []

    def note(_: Recorder, __: Any, events: Any, strategies: Any, *___: Any) -> bool:
        offered.append((list(events()), [each.name for each in strategies]))
        return True

    monkeypatch.setattr(Recorder, "offer_trace", note)
    model = tiny(frameworks)
    shorter, pruned = prune(TEXT.replace(" ", ""), model, letters, ratio=0.5)
    with generation.ADAPTER.install(model, recorder, fingerprint=False):
        ids = torch.tensor([letters(shorter)["input_ids"]])
        with told(pruned):
            model.generate(ids, max_new_tokens=2, do_sample=False)
        model.generate(ids, max_new_tokens=2, do_sample=False)
    recorder.close()
    (first, names), (second, _) = offered
    assert [event.op for event in first if event.axis is Axis.INPUT] == [Operation.KEEP, Operation.DROP]
    assert names == ["SelectiveContext"]
    assert [event for event in second if event.axis is Axis.INPUT] == []


def vit(frameworks: tuple[Any, Any]) -> Any:
    torch, transformers = frameworks
    torch.manual_seed(2)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4
    )
    return transformers.ViTModel(config, add_pooling_layer=False).eval()


def layers_of(torch: Any, model: Any) -> Any:
    return next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))


def test_positions_are_merged_and_told(frameworks: tuple[Any, Any]) -> None:
    torch, _ = frameworks
    model, pixels = vit(frameworks), torch.randn(2, 3, 16, 16)
    layers, seen = layers_of(torch, model), []
    plain = model(pixels).last_hidden_state
    with token_merging.install(layers, per_layer=3, keep=1) as merging:
        handles = [layer.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[1])) for layer in layers]
        out = model(pixels).last_hidden_state
        for handle in handles:
            handle.remove()
    assert (out.shape[1], seen) == (17 - 9, [14, 11, 8])
    for row in range(2):
        told_of = merging.told(row)
        assert (told_of.universe, told_of.left) == (17, 8)
        live = fold(told_of.events())
        assert [len(live[layer, -1]) for layer in range(3)] == seen
        assert all(0 in kept for kept in live.values()), "the class token is never merged"
    assert merging.told(0) != merging.told(1)
    assert torch.equal(model(pixels).last_hidden_state, plain), "and removal leaves the model as it was"


def test_the_most_similar_pairs_become_their_weighted_mean(frameworks: tuple[Any, Any]) -> None:
    torch, _ = frameworks

    class Same(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, hidden: Any) -> Any:
            return hidden

    layers = torch.nn.ModuleList([Same(), Same()])
    east, north = [1.0, 0.0], [0.0, 1.0]
    hidden = torch.tensor([[east, north, north, [3.0, 0.0], east, [0.1, 2.0]]])
    with token_merging.install(layers, per_layer=1) as merging:
        once = layers[0](hidden)
        twice = layers[1](once)
    # Positions 0, 2, 4 look for a partner among 1, 3, 5: of those that point the same way the first is taken.
    (_, first), (_, second) = merging.told().merged
    assert first in ({0: 3}, {2: 1}, {4: 3})
    ((source, target),) = first.items()
    place = target - (source < target)
    assert torch.allclose(once[0, place], (hidden[0, source] + hidden[0, target]) / 2)
    assert once.shape[1] == 5
    assert twice.shape[1] == 4
    weighted = hidden[0].sum(0)
    weights = [1 + list({**first, **second}.values()).count(at) for at in range(6) if at not in {**first, **second}]
    if not set(first.values()) & set(second):
        assert torch.allclose(
            (twice[0] * torch.tensor(weights, dtype=torch.float32)[:, None]).sum(0), weighted, atol=1e-5
        )


def test_nothing_to_merge_is_refused(frameworks: tuple[Any, Any]) -> None:
    with pytest.raises(ConfigError, match="merge at least 1"):
        token_merging.install([], per_layer=1)
