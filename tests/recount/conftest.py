"""Tokenizers trained here, and vocabularies that installed packages bring along."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from weighbridge.recount.tiktoken import ENCODINGS

TEXT = (
    "Weights and measures are as old as trade. The scale that both sides trust ends the quarrel before it begins. "
    "A token is a piece of text, and pieces are counted, not guessed: 1, 2, 3, 10, 100. Ünïcödé too, 数える, весы. "
)
LLAMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|start|>{{ message['role'] }}<|middle|>{{ message['content'] }}<|end|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|middle|>{% endif %}"
)  # fmt: skip


def folder_of(package: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


@pytest.fixture(scope="session")
def trained() -> Any:
    """A byte-level BPE of about two thousand words with a begin token, as `tokenizers` object."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `models` (tokenizers) is not installed")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<|begin|>", "<|start|>", "<|middle|>", "<|end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT] * 50, trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", made.token_to_id("<|begin|>"))]
    )
    return made


@pytest.fixture(scope="session")
def fast(trained: Any) -> Any:
    """The same as a tokenizer of `transformers`, with a chat template that starts with the begin token."""
    transformers = pytest.importorskip("transformers", reason="the extra `models` (transformers) is not installed")
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|end|>"
    )
    made.chat_template = LLAMA_TEMPLATE
    return made


def vocabulary(name: str) -> Path:
    """A public vocabulary file that an installed package ships, found by its SHA-256."""
    pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    folder = folder_of("litellm")
    wanted = ENCODINGS[name].sha256
    for path in sorted((folder / "litellm_core_utils" / "tokenizers").glob("*")) if folder else ():
        if path.is_file() and path.stat().st_size > 500_000 and hashlib.sha256(path.read_bytes()).hexdigest() == wanted:
            return path
    pytest.skip(f"no installed package ships the vocabulary {name} (litellm does)")
    raise AssertionError


def tekken() -> Path:
    """The newest tekken file mistral-common ships."""
    folder = folder_of("mistral_common")
    if folder is None:
        pytest.skip("mistral-common is not installed")
    return folder / "data" / "tekken_240911.json"
