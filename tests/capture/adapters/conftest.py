"""Tiny random models, built once; and what an adapter wrote, read back from a sealed segment."""

from __future__ import annotations

import importlib.util
import json
import os
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from weighbridge.capture import demo_model, reader, seal
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.layout import ACCEPTED_STEPS
from weighbridge.capture.recorder import Limits, Recorder

WORDS = 64
END, PAD = 2, 0
PROMPT = [5, 6, 7, 5, 6, 7, 5, 6]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever takes the frameworks goes to one worker: loading them costs more than most of these tests."""
    if "frameworks" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("models"))


def needs_models() -> tuple[Any, Any]:
    """torch and transformers, or a skip that says what is missing."""
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            if os.environ.get("WEIGHBRIDGE_MODELS") == "1":
                pytest.fail(f"the extra `models` should be here, and {package} is not")
            pytest.skip(f"{package} is not installed (extra `models`); these tests run a tiny random model")
    import torch  # noqa: PLC0415 - takes seconds, once per session
    import transformers  # noqa: PLC0415

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    return torch, transformers


def served_model(folder: Path) -> Path:
    """The tiny model as servers load it, or a skip that says what is missing."""
    needs_models()
    for package in ("accelerate", "fastapi", "openai", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            if os.environ.get("WEIGHBRIDGE_MODELS") == "1":
                pytest.fail(f"the extra `serving` should be here, and {package} is not")
            pytest.skip(f"{package} is not installed (extra `serving`)")
    made = folder / demo_model.MODEL
    demo_model.save(made)
    return made


@pytest.fixture
def frameworks() -> tuple[Any, Any]:
    """(torch, transformers)."""
    return needs_models()


def tiny(frameworks: tuple[Any, Any], kind: str = "Llama", words: int = WORDS, **more: Any) -> Any:
    """A random model with two small layers."""
    torch, transformers = frameworks
    torch.manual_seed(1)
    settings = {
        "vocab_size": words, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512, "bos_token_id": 1,
        "eos_token_id": END, "pad_token_id": PAD,
    }  # fmt: skip
    config = getattr(transformers, f"{kind}Config")(**settings | more)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def tiny_t5(frameworks: tuple[Any, Any], **more: Any) -> Any:
    """A random encoder and decoder; its end token is END."""
    torch, transformers = frameworks
    torch.manual_seed(1)
    settings = {
        "vocab_size": WORDS, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2,
        "decoder_start_token_id": PAD, "eos_token_id": END, "pad_token_id": PAD,
    }  # fmt: skip
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**settings | more)).eval()


def paged(transformers: Any, *, cache: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """Arguments of continuous batching: greedy, with a small cache of pages of eight tokens."""
    wanted = {"do_sample": False, "eos_token_id": END, **settings}
    room = {"num_blocks": 32, "max_batch_tokens": 64, "page_size": 8, **(cache or {})}
    return {
        "generation_config": transformers.GenerationConfig(**wanted),
        "continuous_batching_config": transformers.ContinuousBatchingConfig(**room),
    }


def one(torch: Any) -> dict[str, Any]:
    """One prompt of eight tokens."""
    return {"input_ids": torch.tensor([PROMPT]), "attention_mask": torch.ones(1, 8, dtype=torch.long)}


class Force:
    """Makes `tokens[row][step]` all but certain."""

    def __init__(self, start: int, tokens: list[list[int]]) -> None:
        self.start = start
        self.tokens = tokens

    def __call__(self, ids: Any, scores: Any) -> Any:
        at = ids.shape[1] - self.start
        for row, wanted in enumerate(self.tokens[: scores.shape[0]]):
            if at < len(wanted):
                scores[row, wanted[at]] = 1e9
        return scores


@contextmanager
def forwards(model: Any) -> Iterator[list[int]]:
    """The positions of every forward pass, counted by a hook of the test's own."""
    seen: list[int] = []

    def count(_: Any, args: Any, kwargs: Any) -> None:
        names = ("input_ids", "decoder_input_ids")
        ids = next((kwargs[name] for name in names if kwargs.get(name) is not None), None)
        ids = args[0] if ids is None else ids
        seen.append(ids.shape[0] * ids.shape[1])

    handle = model.register_forward_pre_hook(count, with_kwargs=True)
    yield seen
    handle.remove()


def check(row: dict[str, Any]) -> None:
    """The identities an attempt must fulfil wherever all its parts are known."""
    for whole, parts in (
        ("output_computed", ("accepted", "bonus", "undrafted")),
        ("drafted", ("accepted", "rejected")),
        ("output_computed", ("output_delivered", "withheld_end_token")),
        ("input_computed", ("cached_local", "cached_external", "prefill_computed")),
        ("forward", ("prefill_computed", "recomputed", "verify_width", "padding")),
        ("bonus", ACCEPTED_STEPS),
        ("total_us", ("prefill_us", "decode_us")),
    ):
        values = [row[part] for part in parts]
        if row[whole] is not None and None not in values:
            assert row[whole] == sum(values), whole


def end_of(tokens: list[int]) -> tuple[int, int]:
    """Tokens up to and including the first end token, and whether there is one: the slow way."""
    for index, token in enumerate(tokens):
        if token == END:
            return index + 1, 1
    return len(tokens), 0


@pytest.fixture(scope="session")
def llama() -> Any:
    return tiny(needs_models())


@pytest.fixture
def batch(frameworks: tuple[Any, Any]) -> dict[str, Any]:
    """Three prompts of 8, 3 and 5 tokens, padded on the left."""
    torch, _ = frameworks
    rows = [PROMPT, [0] * 5 + [9, 8, 7], [0] * 3 + [4, 5, 6, 7, 8]]
    ids = torch.tensor(rows)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


@pytest.fixture
def letters(frameworks: tuple[Any, Any]) -> Any:
    """A tokenizer of one letter or digit per token."""
    _, transformers = frameworks
    import tokenizers  # noqa: PLC0415 - comes with transformers

    words = ["<pad>", "<s>", "</s>", *string.ascii_letters, *string.digits[:9]]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({word: number for number, word in enumerate(words)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")


@pytest.fixture
def whole(tmp_path: Path, key: bytes, keys: KeyFolder) -> Iterator[Recorder]:
    """A recorder that takes every attempt at level 3."""
    rule = {"level": 3, "share": 1.0, "purpose": "billing_audit", "expires": "9999-12-31"}
    policy = tmp_path / "policy3.json"
    policy.write_text(json.dumps({"version": 1, "cells": [rule]}))
    made = Recorder.start(
        tmp_path / "whole", installation="test-3", key=key, keys=keys, policy_file=policy, limits=Limits(keeper_s=3600)
    )
    yield made
    made.close()


@pytest.fixture
def deep_recorder(tmp_path: Path, key: bytes, keys: KeyFolder) -> Iterator[Recorder]:
    """A recorder that takes every attempt at level 2."""
    rule = {"level": 2, "share": 1.0, "purpose": "billing_audit", "expires": "9999-12-31"}
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"version": 1, "cells": [rule]}))
    made = Recorder.start(
        tmp_path / "deep", installation="test-2", key=key, keys=keys, policy_file=policy, limits=Limits(keeper_s=0.05)
    )
    yield made
    made.close()


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Recorder, str], list[dict[str, Any]]]:
    """Rows of a table that a recorder wrote, in the order they were written; closes the recorder."""

    def read(recorder: Recorder, table: str) -> list[dict[str, Any]]:
        recorder.close()
        rows: list[dict[str, Any]] = []
        for journal in reader.journals(recorder.spool):
            rows += seal.rows_of(reader.read_journal(journal)).get(table, [])
        return rows

    return read
