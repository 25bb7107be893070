"""Recorded KV-cache events: sizes and keyed hashes come out, ids and salts do not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.capture.adapters.vllm_replay import KEY, lines

from weighbridge.capture.kv_events import Blocks, Cache, blocks_of

STORED = {
    "type": "BlockStored", "block_hashes": [11, b"\x01\x02"], "parent_block_hash": None, "token_ids": [770077] * 256,
    "block_size": 128, "lora_id": None, "medium": "GPU", "lora_name": "CANARY", "extra_keys": [["CANARY-salt"], None],
    "session_id": "CANARY-session",
}  # fmt: skip


def test_what_is_kept_of_an_event_is_its_size() -> None:
    (event,) = blocks_of([12.5, [STORED], 3], KEY)
    told = json.dumps(dataclasses.asdict(event))
    assert "CANARY" not in told
    assert "770077" not in told
    assert (event.at, event.rank, event.tokens, event.block_size, event.medium) == (12.5, 3, 256, 128, "GPU")
    assert [len(each) for each in event.hashes] == [32, 32]
    (other,) = blocks_of([12.5, [STORED], 3], bytes(32))
    assert not set(event.hashes) & set(other.hashes), "under another key they are other ones"


@pytest.mark.parametrize(
    "batch", [[], [1.0], ["x", []], [1.0, [{"type": "Unknown"}, 3, None]], [1.0, [{"type": "BlockStored"}]]]
)
def test_messages_of_another_form_are_no_error(batch: list[object]) -> None:
    assert all(event.hashes == () and event.tokens is None for event in blocks_of(batch, KEY))


def test_what_a_cache_holds_is_what_was_stored_and_not_let_go() -> None:
    cache = Cache()
    cache.add(0, blocks_of([1.0, [STORED], 0], KEY))
    cache.add(1, blocks_of([2.0, [{"type": "BlockRemoved", "block_hashes": [11], "medium": "GPU"}], 0], KEY))
    assert (cache.held, cache.stored["GPU"], cache.removed["GPU"], cache.stored_tokens, cache.lost) == (1, 2, 1, 256, 0)
    cache.add(5, blocks_of([3.0, [{"type": "AllBlocksCleared"}], 0], KEY))
    assert (cache.held, cache.cleared, cache.lost) == (0, 1, 3)


@pytest.mark.real
@pytest.mark.parametrize("name", ["a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool"])
def test_recorded_events_add_up(name: str, shared_real: Path) -> None:
    """Each block holds its tokens, and a pool of 33 blocks never holds more; withheld messages are no loss."""
    cache = Cache()
    told: list[Blocks] = []
    ids: set[int] = set()
    for record in lines(shared_real / "engines" / "vllm" / name / "kv_events.jsonl"):
        if record.get("withheld"):
            cache.add(record["seq"], iter(()))
            continue
        events = list(blocks_of(record["batch"], KEY))
        cache.add(record["seq"], iter(events))
        told += events
        ids |= {each for event in record["batch"][1] for each in event.get("token_ids", ())}
    stored = [event for event in told if event.kind == "stored"]
    assert stored
    assert all(event.tokens == 128 * len(event.hashes) and event.block_size == 128 for event in stored)
    assert cache.stored_tokens == 128 * cache.stored["GPU"] == sum(event.tokens or 0 for event in stored)
    assert cache.lost == 0
    assert (cache.removed["GPU"] > 50) == (name == "c_reasoning_tools_small_pool")
    numbers = {int(each, 16) for event in told for each in event.hashes}
    assert not numbers & ids
