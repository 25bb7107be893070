"""Recounts with tokenizers trained here: contents, template and special tokens, each counted once."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from weighbridge.recount.recounter import RecountError
from weighbridge.recount.transformers import TransformersRecounter
from weighbridge.schemas.errors import ConfigError

MESSAGES = [{"role": "user", "content": "The scale is trusted."}, {"role": "assistant", "content": "It is, 100 times."}]


def test_a_text_is_counted_bare_and_what_encoding_adds_is_said(fast: Any) -> None:
    recounter = TransformersRecounter(fast)
    text = "The scale that both sides trust"
    found = recounter.count(text)
    assert found.tokens == len(fast(text, add_special_tokens=False)["input_ids"])
    assert found.tokens + found.special == len(fast(text)["input_ids"])
    assert (found.special, found.has_special, found.has_template) == (1, False, False)
    assert found.slots() == (found.tokens, 0, 1, 0)


def test_a_rendered_conversation_has_one_begin_token_and_each_part_once(fast: Any) -> None:
    recounter = TransformersRecounter(fast)
    found = recounter.count_chat(MESSAGES)
    served = fast.apply_chat_template(MESSAGES, tokenize=True, add_generation_prompt=True)["input_ids"]
    assert found.tokens == len(served)
    content = sum(recounter.count(message["content"]).tokens for message in MESSAGES)
    roles = sum(recounter.count(role).tokens for role in ("user", "assistant", "assistant"))
    # Start and middle three times, end twice, and the roles; the begin token is special, not template.
    assert found.template == 3 + 3 + 2 + roles
    assert found.tokens == content + found.template + found.special
    assert found.special == 1
    assert (found.has_template, found.has_special) == (True, True)
    rendered = fast.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert len(fast(rendered)["input_ids"]) == found.tokens + 1  # the trap: a second begin token


def test_a_template_without_a_begin_token_has_none(fast: Any) -> None:
    kept = fast.chat_template
    try:
        fast.chat_template = kept.replace("{{ bos_token }}", "")
        bare = TransformersRecounter(fast).count_chat(MESSAGES)
    finally:
        fast.chat_template = kept
    whole = TransformersRecounter(fast).count_chat(MESSAGES)
    assert (bare.has_special, bare.special, bare.tokens) == (False, 1, whole.tokens - 1)
    assert bare.template == whole.template
    assert bare.template_fingerprint != whole.template_fingerprint


def test_the_hosts_truncation_and_padding_do_not_reach_the_count(fast: Any) -> None:
    text = "pieces are counted, not guessed " * 20
    recounter = TransformersRecounter(fast)
    before = recounter.count(text)
    fast([text, "a"], truncation=True, max_length=4, padding=True)
    try:
        assert TransformersRecounter(fast).count(text) == recounter.count(text) == before
        assert before.tokens > 20
    finally:
        fast.backend_tokenizer.no_truncation()
        fast.backend_tokenizer.no_padding()


def test_a_tokenizer_file_counts_the_same_and_knows_no_template(trained: Any, fast: Any, tmp_path: Path) -> None:
    trained.save(str(tmp_path / "tokenizer.json"))
    from_file = TransformersRecounter(tmp_path / "tokenizer.json")
    assert from_file.count("100 tokens") == TransformersRecounter(fast).count("100 tokens")
    found = from_file.count_chat(MESSAGES)
    assert (found.template, found.has_template, found.template_fingerprint) == (None, False, None)
    assert found.tokens == sum(from_file.count(message["content"]).tokens for message in MESSAGES)


def test_fingerprints_are_the_same_in_another_process_and_differ_with_one_merge(trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    trained.save(str(path))
    here = TransformersRecounter(path).tokenizer
    code = f"from weighbridge.recount.transformers import *; print(TransformersRecounter({str(path)!r}).tokenizer)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == here
    content = json.loads(path.read_text())
    content["truncation"] = {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    path.write_text(json.dumps(content))
    assert TransformersRecounter(path).tokenizer == here
    content["model"]["merges"].pop()
    path.write_text(json.dumps(content))
    assert TransformersRecounter(path).tokenizer != here


def test_a_refusal_repeats_no_text(fast: Any) -> None:
    recounter, secret = TransformersRecounter(fast), "CAN" + "ARY"
    kept = fast.chat_template
    fast.chat_template = "{{ raise_exception(messages[0]['content']) }}"
    try:
        with pytest.raises(RecountError) as refused:
            TransformersRecounter(fast).count_chat([{"role": "user", "content": secret}])
    finally:
        fast.chat_template = kept
    assert secret not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(RecountError, match="list of objects"):
        recounter.count_chat([secret])  # type: ignore[list-item]


def test_what_is_no_tokenizer_is_refused() -> None:
    pytest.importorskip("tokenizers", reason="the extra `models` (tokenizers) is not installed")
    with pytest.raises(ConfigError, match="fast tokenizer"):
        TransformersRecounter(object())
