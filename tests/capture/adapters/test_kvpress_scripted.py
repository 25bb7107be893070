"""Recorded presses made again live: their scores are a script, and what becomes of them is kvpress's own doing.

A random model of the recorded shape is run under a press whose scores are such that the recorded positions win. What
the press then leaves in the cache, what the adapter tells of it, and what comes out of the encrypted store again have
to be the recorded positions: each of them is compared, the cache by its bits.

`./setup.sh kvpress` runs these tests, where kvpress is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters import test_kvpress as live

from weighbridge.capture.adapters import kvpress as adapter
from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.content import read_content
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.reader import read_journal
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.seal import rows_of
from weighbridge.schemas.enumerations import Axis, Operation
from weighbridge.schemas.trace import StateEvent, fold, positions_of, replay, rows
from weighbridge.schemas.trace_block import open_events

pytestmark = [pytest.mark.system, pytest.mark.real]
kvpress, model = live.kvpress, live.model

Kept = list[list[int]]  # by head
NAMES = (
    "snapkv-50 streaming-50 expected-50 expected-25 tova-50 knorm-50 keydiff-50 pyramid-50 observed-50 chunkkv-50 "
    "chunk-knorm-50 composed-25-25 rerotate-knorm-50 perlayer decoding-knorm decoding-snapkv prefill-decoding "
    "adakv-expected-50 adakv-knorm-75 criticaladakv-50"
).split()


@pytest.fixture
def cases(shared_real: Path) -> dict[str, dict[str, Any]]:
    path = shared_real / "engines" / "kvpress" / "kept_positions.jsonl"
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {case["case"]: case for case in found}


@dataclass
class Script:
    """What was recorded, and which positions the rows of each layer hold as the script goes on.

    Attributes:
        kept: by (step, layer), the positions that are to win, by head.
        rows: by layer, the positions its rows hold, by head, in the order of the rows.
        written: by layer, positions written until its last event.
    """

    prompt: int
    kept: dict[tuple[int, int], Kept] = field(default_factory=dict)
    rows: dict[int, Kept] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    left: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Mapping[str, Any]) -> Script:
        """The script of a recording. What is ambiguous in it (null) is what another layer kept in that step."""
        made = cls(case["prompt_tokens"])
        for event in case["events"]:
            other = next(each["kept"] for each in case["events"] if each["step"] == event["step"] and each["kept"])
            made.kept[event["step"], event["layer"]] = event["kept"] or other
            made.left.setdefault(event["layer"], []).append(event["step"])
        for layer, masked in enumerate(case["masked_positions"] or ()):
            whole = range(case["prompt_tokens"])
            made.kept[0, layer] = [[at for at in whole if at not in set(of_head)] for of_head in masked]
            made.left[layer] = [0]
        return made

    def scores(self, layer: int, keys: Any) -> tuple[Any, float]:
        """Scores of the rows of a layer, the first of the kept ones highest; and the share to leave out."""
        import torch  # noqa: PLC0415 - as in the module these tests build on

        step = self.left[layer].pop(0)
        seen, heads = self.prompt + step, keys.shape[1]
        new = range(self.written.get(layer, 0), seen)
        before = [[*old, *new] for old in self.rows.get(layer, [[] for _ in range(heads)])]
        assert {len(of_head) for of_head in before} == {keys.shape[2]}, "the cache has the rows the recording had"
        wanted = self.kept[step, layer]
        scores = torch.zeros(1, heads, keys.shape[2])
        for head, (held, winning) in enumerate(zip(before, wanted, strict=True)):
            places = {position: row for row, position in enumerate(held)}
            for rank, position in enumerate(winning):
                scores[0, head, places[position]] = 2.0 - rank / 1024
        self.rows[layer], self.written[layer] = wanted, seen
        share = sum(map(len, wanted)) / heads / keys.shape[2]
        return scores, 1 - share - 1e-6


def scripted(kvpress: Any, case: Mapping[str, Any]) -> Any:
    """The recorded press with a scripted one where its scores come from; one that only scores is that one itself."""

    @dataclass
    class ScriptedPress(kvpress.ScorerPress):  # type: ignore[misc]
        script: Any = None

        def score(self, module: Any, _: Any, keys: Any, *__: Any) -> Any:
            scores, self.compression_ratio = self.script.scores(module.layer_idx, keys)
            return scores

    script, told = Script.of(case), case["press"]

    def decoding(about: Mapping[str, Any]) -> Any:
        return kvpress.DecodingPress(
            ScriptedPress(script=script),
            compression_interval=about["compression_interval"],
            target_size=about["target_size"],
        )

    if told["class"] == "DecodingPress":
        return decoding(told)
    scorer = ScriptedPress(0.5, script=script)
    if told["class"] == "PrefillDecodingPress":
        return kvpress.PrefillDecodingPress(scorer, decoding(told["decoding_press"]))
    if case["masked_positions"] is not None:
        return kvpress.AdaKVPress(ScriptedPress(_share(case), script=script), told["alpha_safeguard"])
    return scorer


def _share(case: Mapping[str, Any]) -> float:
    """What of the entries is masked: a press over all heads of a layer is told before it asks for scores."""
    return float(case["kv_entries_masked"] / (case["layers"] * case["kv_heads"] * case["prompt_tokens"]))


def stored(recorder: Recorder, keys: KeyFolder) -> tuple[list[StateEvent], dict[str, Any]]:
    """The events and the attempt, read back from the spool."""
    recorder.close()
    (content,) = recorder.spool.glob("*.content")
    ((about, block),) = [each for each in read_content(content).blocks if "trace" in each[0]]
    (journal,) = recorder.spool.glob("*.journal")
    (attempt,) = rows_of(read_journal(journal))["attempt"]
    return open_events(about["key"], keys.get(about["key"]), bytes.fromhex(about["block"]) + block), attempt


@pytest.mark.parametrize("name", NAMES)
def test_recorded_positions_come_back_from_a_live_press(
    name: str, cases: dict[str, Any], kvpress: Any, model: Callable[[str], Any], tmp_path: Path, key: bytes
) -> None:
    case = cases[name]
    assert (case["layers"], case["kv_heads"], case["prompt_tokens"]) == (live.LAYERS, live.HEADS, live.PROMPT)
    press, keys, written = scripted(kvpress, case), KeyFolder(tmp_path / "keys"), live.Written()
    recorder = Recorder.start(
        tmp_path / "spool", installation="test-1", key=key, keys=keys, limits=Limits(keeper_s=3600.0)
    )
    with (
        generation.ADAPTER.install(model("sdpa"), recorder, Context()),
        adapter.install(press, recorder),
        written.watching(),
    ):
        for binding in recorder._bindings:
            binding.decision = live._always()
        result = live.run(model("sdpa"), press)
    events, attempt = stored(recorder, keys)
    masking = case["masked_positions"] is not None
    _steps(case, events)
    now = fold(events)
    for index, layer in enumerate(result.past_key_values.layers):
        told = [now[index, head] for head in range(live.HEADS)]
        written.check(layer, "adakv" if masking else name, told)
        end = case["at_end"][index]
        assert layer.keys.shape[2] == end["kv_entries"]
        if isinstance(end["kept"], list):
            assert [list(of_head) for of_head in told] == end["kept"]
    state = replay(events)
    assert (state.contradictions, state.unknown) == (0, set())
    assert state.entries == attempt["kv_kept"] == case["kv_entries_kept_in_cache"]
    assert attempt["kv_appended"] == case["kv_entries_written"]
    masked = {at: row for event in events if event.op is Operation.MASK for at, row in (rows(event, {}) or {}).items()}
    assert sum(row.bit_count() for row in masked.values()) == case["kv_entries_masked"]
    for (layer, head), row in masked.items():
        assert list(positions_of(row)) == case["masked_positions"][layer][head]


def _steps(case: Mapping[str, Any], events: list[StateEvent]) -> None:
    """After each compression that was recorded, the layer holds what it held then."""
    steps = sorted({event["step"] for event in case["events"]})
    by_step = {step: fold([event for event in events if event.step <= step]) for step in steps}
    for event in case["events"]:
        held = [list(by_step[event["step"]][event["layer"], head]) for head in range(case["kv_heads"])]
        assert {len(of_head) for of_head in held} == {event["kv_entries_after"]}
        if event["kept"] is not None:
            assert held == event["kept"]
    assert {event.axis for event in events} <= {Axis.STORE, Axis.ATTEND}


def test_another_script_leaves_other_positions(
    cases: dict[str, Any], kvpress: Any, model: Callable[[str], Any]
) -> None:
    """The positions are not carried through: with one changed in the script it is another one that is told."""
    case = json.loads(json.dumps(cases["knorm-50"]))
    first, before = case["events"][2]["kept"][1], list(case["events"][2]["kept"][1])
    spare = next(at for at in range(live.PROMPT) if at not in first)
    first[0] = spare
    press = scripted(kvpress, case)
    with adapter.install(press) as watched:
        live.run(model("sdpa"), press)
    told = fold(live.events_of(watched.traces[0]))[2, 1]
    new = range(live.PROMPT, live.PROMPT + live.NEW - 1)
    assert set(told) == {spare, *before[1:], *new}


def test_every_recorded_compression_is_among_them(cases: dict[str, Any]) -> None:
    missing = set(cases) - set(NAMES)
    assert all(not cases[name]["events"] and cases[name]["masked_positions"] is None for name in missing)
