"""Recounts with the tokenizer files that mistral-common ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recount.conftest import tekken

from weighbridge.recount.mistral import MistralRecounter, fingerprint_of
from weighbridge.recount.recounter import RecountError


@pytest.fixture(scope="module")
def recounter() -> MistralRecounter:
    return MistralRecounter(tekken())


def test_a_conversation_is_content_template_and_one_begin_token(recounter: MistralRecounter) -> None:
    found = recounter.count_chat([{"role": "user", "content": "hi"}])
    # Begin, [INST], hi, [/INST]
    assert (found.tokens, found.template, found.special) == (4, 2, 1)
    assert (found.has_template, found.has_special) == (True, True)
    assert recounter.count("hi").tokens == 1


def test_the_fingerprint_is_that_of_the_vocabulary(recounter: MistralRecounter, tmp_path: Path) -> None:
    content = json.loads(tekken().read_bytes())
    copy = tmp_path / "tekken.json"
    copy.write_text(json.dumps(content, indent=1))
    assert fingerprint_of(copy) == recounter.tokenizer
    content["vocab"].pop()
    copy.write_text(json.dumps(content))
    assert fingerprint_of(copy) != recounter.tokenizer


def test_a_refusal_repeats_no_text(recounter: MistralRecounter) -> None:
    bad: list[dict[str, Any]] = [{"role": "CANARY", "content": "CANARY"}]
    with pytest.raises(RecountError) as refused:
        recounter.count_chat(bad)
    assert "CANARY" not in str(refused.value)
