"""Tiny random models, built once; and what an adapter wrote, read back from a sealed segment."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.capture import reader, seal
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder

WORDS = 64
END, PAD = 2, 0


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


@pytest.fixture(scope="session")
def llama() -> Any:
    return tiny(needs_models())


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
