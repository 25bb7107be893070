"""Recounts with vocabularies in tiktoken's format."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recount.conftest import vocabulary

from weighbridge.recount.tiktoken import CHAT_COMPLETIONS, Encoding, TiktokenRecounter
from weighbridge.schemas.errors import ConfigError

BYTES = Encoding("bytes", r"\S+|\s+", "", {"<|end|>": 300})


def small(path: Path, extra: tuple[bytes, ...] = (b"to", b"ken", b"token")) -> Path:
    """A vocabulary of all bytes and a few merges."""
    tokens = [bytes([value]) for value in range(256)] + [b"ke", *extra]
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)))
    return path


@pytest.fixture
def recounter(tmp_path: Path) -> TiktokenRecounter:
    pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    return TiktokenRecounter(small(tmp_path / "small.tiktoken"), BYTES, overhead=CHAT_COMPLETIONS)


def test_texts_and_conversations_are_counted_by_hand(recounter: TiktokenRecounter) -> None:
    assert recounter.count("token token").tokens == 3
    assert recounter.count("<|end|>").tokens == 7  # a special token in a text is text
    # "token" 1; role "user" 4 bytes; 3 around the message, 3 before the answer.
    found = recounter.count_chat([{"role": "user", "content": "token"}])
    assert (found.tokens, found.template, found.special, found.has_template) == (11, 10, 0, True)
    named = recounter.count_chat([{"role": "user", "name": "ken", "content": [{"type": "text", "text": "token"}]}])
    assert (named.tokens, named.template) == (13, 12)


def test_what_is_not_published_is_unknown(recounter: TiktokenRecounter) -> None:
    tools = [{"type": "function", "function": {"name": "weigh"}}]
    picture: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "token"}, {"type": "image_url", "image_url": {}}]}
    ]
    for found in (
        recounter.count_chat([{"role": "user", "content": "token"}], tools),
        recounter.count_chat(picture),
        recounter.count_chat([{"role": "assistant", "content": "token", "tool_calls": [{}]}]),
    ):
        assert (found.tokens, found.template, found.has_template) == (1, None, False)
        assert found.slots() == (1, -1, 0, 0)


def test_a_fingerprint_follows_the_vocabulary_not_the_file(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    path = small(tmp_path / "a.tiktoken")
    turned = tmp_path / "b.tiktoken"
    turned.write_bytes(b"\n".join(reversed(path.read_bytes().splitlines())))
    other = small(tmp_path / "c.tiktoken", (b"to", b"ken"))
    prints = [TiktokenRecounter(each, BYTES).tokenizer for each in (path, turned, other)]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("content", [b"dG8= x\n", b"\xff 1\n", b"dG8=\n"])
def test_what_is_no_vocabulary_is_refused(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="no vocabulary"):
        TiktokenRecounter(path, BYTES)
    with pytest.raises(ConfigError, match="SHA-256"):
        TiktokenRecounter(path, "o200k_base")
    with pytest.raises(ConfigError, match="known are cl100k_base, o200k_base"):
        TiktokenRecounter(path, "o900k")


@pytest.mark.real
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_vectors_have_the_published_lengths(shared_real: Path, name: str) -> None:
    recounter = TiktokenRecounter(vocabulary(name), name)
    with (shared_real / "token_ids" / f"jtokkit_{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 100
    wrong = [
        number
        for number, row in enumerate(rows)
        if recounter.count(row["input"]).tokens != len(json.loads(row["output"]))
    ]
    assert wrong == []
