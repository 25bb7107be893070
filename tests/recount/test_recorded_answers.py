"""Recounts of recorded requests and answers equal what was counted with the same tokenizers when they were gathered."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.recount.conftest import folder_of, tekken, vocabulary

from weighbridge.recount.mistral import MistralRecounter
from weighbridge.recount.recounter import Recounter
from weighbridge.recount.tiktoken import CHAT_COMPLETIONS, TiktokenRecounter
from weighbridge.recount.transformers import TransformersRecounter

# The gatherers replaced home folders in these prompts, so their texts are no longer what was sent.
SCRUBBED = "/home/user/"


@cache
def recounter_of(name: str) -> Recounter:
    """The tokenizer the record was counted with, where an installed package ships it."""
    if name.startswith("tekken"):
        return MistralRecounter(tekken())
    if name.startswith("deepseek"):
        pytest.importorskip("tokenizers", reason="the extra `models` (tokenizers) is not installed")
        folder = folder_of("litellm")
        if folder is None:
            pytest.skip("no installed package ships the tokenizer of deepseek (litellm does)")
        return TransformersRecounter(folder / "litellm_core_utils" / "tokenizers" / "deepseek_tokenizer.json")
    return TiktokenRecounter(vocabulary(name), name, overhead=CHAT_COMPLETIONS)


def records(shared_real: Path, tokenizer: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(expected, record) of one tokenizer."""
    with (shared_real / "retokenise_expected.jsonl").open(encoding="utf-8") as file:
        wanted = {row["id"]: row for row in map(json.loads, file) if row["tokenizer"].startswith(tokenizer)}
    with gzip.open(shared_real / "api_responses_all.jsonl.gz", "rt", encoding="utf-8") as file:
        return [(wanted[row["id"]], row) for row in map(json.loads, file) if row["id"] in wanted]


def plain_answer(record: dict[str, Any]) -> list[str] | None:
    """The texts of an answer's choices, None where there is more in it than text."""
    body = record["response"]
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        return None
    messages = [choice.get("message") or {} for choice in body["choices"]]
    if any(message.get("tool_calls") or message.get("reasoning_content") for message in messages):
        return None
    contents = [message.get("content") for message in messages]
    texts = [content for content in contents if isinstance(content, str)]
    return texts if len(texts) == len(contents) else None


@pytest.mark.real
@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base"])
def test_prompts_are_counted_with_their_template(shared_real: Path, tokenizer: str) -> None:
    recounter = recounter_of(tokenizer)
    seen: Counter[bool] = Counter()
    for expected, record in records(shared_real, tokenizer):
        if expected.get("recount_prompt") is None:
            continue
        found = recounter.count_chat(record["request"]["messages"], record["request"].get("tools"))
        assert found.has_template, expected["id"]
        assert found.template is not None
        equal = (found.tokens, found.tokens - found.template) == (
            expected["recount_prompt"],
            expected["recount_prompt_content_only"],
        )
        assert equal or SCRUBBED in json.dumps(record["request"]), expected["id"]
        seen[equal] += 1
    assert seen[True] >= {"o200k_base": 118, "cl100k_base": 57}[tokenizer]


@pytest.mark.real
@pytest.mark.parametrize(
    ("tokenizer", "least"), [("o200k_base", 100), ("cl100k_base", 50), ("tekken", 5), ("deepseek", 4)]
)
def test_answers_are_counted_again(shared_real: Path, tokenizer: str, least: int) -> None:
    recounter = recounter_of(tokenizer)
    compared = 0
    for expected, record in records(shared_real, tokenizer):
        texts = plain_answer(record)
        if texts is None or expected.get("recount_completion_text") is None:
            continue
        assert sum(recounter.count(text).tokens for text in texts) == expected["recount_completion_text"], record["id"]
        compared += 1
    assert compared >= least
