"""The presses that were recorded: their kept and masked positions come back through our events, exactly.

The recordings were made by comparing the cache with all that was ever written to it, not from what presses say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weighbridge.schemas.enumerations import Axis, HeadKind, Operation, Phase
from weighbridge.schemas.trace import StateEvent, Trace, fold, over_budget, positions_of, replay, row_of, rows
from weighbridge.schemas.trace_block import pack_events, unpack_events

pytestmark = pytest.mark.real


@pytest.fixture
def cases(shared_real: Path) -> list[dict[str, Any]]:
    path = shared_real / "engines" / "kvpress" / "kept_positions.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def told(case: dict[str, Any]) -> list[StateEvent]:
    """The case as state events, layer by layer as it was seen."""
    trace, heads = Trace(), (0, case["kv_heads"] - 1)
    layers, written = range(case["layers"]), dict.fromkeys(range(case["layers"]), 0)

    def append(layer: int, upto: int, step: int) -> None:
        if upto > written[layer]:
            trace.add(
                Axis.STORE, Operation.APPEND, [row_of(range(written[layer], upto))], width=upto, step=step,
                layers=(layer, layer), heads=heads, head_kind=HeadKind.KEY_VALUE,
            )  # fmt: skip
            written[layer] = upto

    for each in case["events"]:
        seen, layer = case["prompt_tokens"] + each["step"], each["layer"]
        append(layer, seen, each["step"])
        scope = {"layers": (layer, layer), "heads": heads, "head_kind": HeadKind.KEY_VALUE, "step": each["step"]}
        phase = Phase.DECODE if each["step"] else Phase.PREFILL
        if each["kept"] is None:
            members, universe = each["kv_entries_after"] * len(heads), seen * len(heads)
            trace.count(Axis.STORE, Operation.KEEP_ONLY, members, universe, phase=phase, **scope)
        else:
            trace.add(
                Axis.STORE, Operation.KEEP_ONLY, list(map(row_of, each["kept"])), width=seen, phase=phase, **scope
            )
    for layer in layers:
        append(layer, case["positions_written"], case["new_tokens"] - 1)
    for layer, per_head in enumerate(case["masked_positions"] or ()):
        trace.add(
            Axis.ATTEND, Operation.MASK, list(map(row_of, per_head)), width=case["positions_written"],
            layers=(layer, layer), heads=heads, head_kind=HeadKind.KEY_VALUE,
        )  # fmt: skip
    return unpack_events(pack_events(trace.events))


def test_kept_positions_cache_lengths_and_masks_come_back(cases: list[dict[str, Any]]) -> None:
    assert len(cases) >= 20
    for case in cases:
        events = told(case)
        live, state = fold(events), replay(events)
        assert state.contradictions == 0, case["case"]
        known = {event.seq: event for event in events}
        for each in case["at_end"]:
            layer = each["layer"]
            if (layer, 0) in state.unknown:
                assert each["kept"] is None
                continue
            prompt = [entry["kept"] for entry in case["events"] if entry["layer"] == layer and not entry["step"]]
            for head in range(case["kv_heads"]):
                assert len(live[layer, head]) == each["kv_entries"], case["case"]
                if isinstance(each["kept"], list):
                    assert list(live[layer, head]) == each["kept"][head]
                elif each["kept"] and prompt:
                    later = range(case["prompt_tokens"], case["positions_written"])
                    assert list(live[layer, head]) == [*prompt[0][head], *later]
        if not state.unknown:
            assert state.entries == case["kv_entries_kept_in_cache"]
        masks = {
            k: row for event in events if event.op is Operation.MASK for k, row in (rows(event, known) or {}).items()
        }
        assert sum(row.bit_count() for row in masks.values()) == case["kv_entries_masked"]
        for (layer, head), row in masks.items():
            assert list(positions_of(row)) == case["masked_positions"][layer][head]


def test_each_compression_ends_within_what_was_asked_for(cases: list[dict[str, Any]]) -> None:
    seen = 0
    for case in cases:
        target = case["press"].get("target_size")
        if target is not None:
            assert over_budget(told(case), target) == []
            assert over_budget(told(case), target - 1) != []
            seen += 1
    assert seen >= 2


def test_sizes_of_what_was_recorded(cases: list[dict[str, Any]]) -> None:
    sizes = {case["case"]: len(pack_events(told(case))) for case in cases}
    assert sizes["streaming-50"] < 250
    # 8 (layer, head) of 256 positions are 256 bytes of bitmap.
    assert max(sizes[name] for name in ("snapkv-50", "expected-50", "tova-50", "knorm-50")) < 256 + 250
