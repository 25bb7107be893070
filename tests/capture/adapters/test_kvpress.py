"""Presses of kvpress, run on a tiny random model: what is told equals what lies in the cache, bit for bit.

`./setup.sh kvpress` installs kvpress, whose versions exclude ours of transformers, beside this environment.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.capture import layout
from weighbridge.capture.adapters import kvpress as adapter
from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import Axis, Encoding, Operation
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.trace import StateEvent, Trace, fold, merges, over_budget, replay, rows

pytestmark = pytest.mark.system
LAYERS, HEADS, PROMPT, NEW = 4, 2, 256, 40


@pytest.fixture(scope="module")
def kvpress() -> Any:
    """The package, or a skip that says how to get it."""
    if importlib.util.find_spec("kvpress") is None:
        if os.environ.get("WEIGHBRIDGE_KVPRESS") == "1":
            pytest.fail("kvpress should be here, and is not")
        pytest.skip("kvpress is not installed; `./setup.sh kvpress` runs these tests in an environment of its own")
    package = importlib.import_module("kvpress")
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    return package


@pytest.fixture(scope="module")
def model(kvpress: Any) -> Callable[[str], Any]:
    """The model of the recordings, with fewer words: random, 4 layers of 2 heads of 32 channels."""
    import torch  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    made: dict[str, Any] = {}

    def of(attention: str) -> Any:
        if attention not in made:
            torch.manual_seed(7)
            config = LlamaConfig(
                vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=LAYERS,
                num_attention_heads=4, num_key_value_heads=HEADS, head_dim=32, eos_token_id=None, pad_token_id=0,
                attn_implementation=attention,
            )  # fmt: skip
            made[attention] = LlamaForCausalLM(config).eval()
        return made[attention]

    return of


def presses(kvpress: Any) -> dict[str, Any]:
    expected = {"n_future_positions": 64, "n_sink": 4}
    return {
        "snapkv": kvpress.SnapKVPress(0.5, window_size=16),
        "streaming": kvpress.StreamingLLMPress(0.5, n_sink=4),
        "expected": kvpress.ExpectedAttentionPress(0.5, **expected),
        "tova": kvpress.TOVAPress(0.5),
        "knorm": kvpress.KnormPress(0.25),
        "keydiff": kvpress.KeyDiffPress(0.5),
        "random": kvpress.RandomPress(0.7),
        "lagkv": kvpress.LagKVPress(0.5, n_sink=4, lag_size=32),
        "pyramid": kvpress.PyramidKVPress(0.5, window_size=16, beta=20),
        "observed": kvpress.ObservedAttentionPress(0.5),
        "think": kvpress.ThinKPress(key_channel_compression_ratio=0.5, window_size=16),
        "adakv": kvpress.AdaKVPress(kvpress.ExpectedAttentionPress(0.5, **expected)),
        "adakv-knorm": kvpress.AdaKVPress(kvpress.KnormPress(0.75)),
        "criticaladakv": kvpress.CriticalAdaKVPress(kvpress.ExpectedAttentionPress(0.5, **expected)),
        "criticalkv": kvpress.CriticalKVPress(kvpress.KnormPress(0.5)),
        "chunkkv": kvpress.ChunkKVPress(kvpress.SnapKVPress(0.5, window_size=16), chunk_length=16),
        "chunk": kvpress.ChunkPress(kvpress.KnormPress(0.5), chunk_length=64),
        "block": kvpress.BlockPress(kvpress.KnormPress(0.5), block_size=64),
        "composed": kvpress.ComposedPress([kvpress.SnapKVPress(0.25, window_size=16), kvpress.KnormPress(0.25)]),
        "rerotated": kvpress.KeyRerotationPress(kvpress.KnormPress(0.5)),
        "simlayer": kvpress.SimLayerKVPress(lazy_threshold=0.05, n_last=1, n_recent=64, n_initial=4),
        "per-layer": kvpress.PerLayerCompressionPress(kvpress.KnormPress(0.0), [0.25, 0.5, 0.5, 0.75]),
        "decoding": kvpress.DecodingPress(kvpress.KnormPress(), compression_interval=8, target_size=192),
        "decoding-snapkv": kvpress.DecodingPress(
            kvpress.SnapKVPress(window_size=8), compression_interval=16, target_size=128
        ),
        "prefill-decoding": kvpress.PrefillDecodingPress(
            kvpress.SnapKVPress(0.5, window_size=16),
            kvpress.DecodingPress(kvpress.KnormPress(), compression_interval=8, target_size=96),
        ),
        "merging": kvpress.MergingPress(kvpress.KnormPress(0.5)),
        "merging-some": kvpress.MergingPress(
            kvpress.SnapKVPress(0.3, window_size=16), similarity_threshold=0.1, merge_fraction=0.5
        ),
        "composed-merging": kvpress.ComposedPress(
            [kvpress.KnormPress(0.25), kvpress.MergingPress(kvpress.KeyDiffPress(0.25))]
        ),
        "cam": kvpress.CAMPress(kvpress.KnormPress(), compression_interval=8, target_size=192),
        "dms": kvpress.DMSPress(kvpress.KnormPress(), threshold=-1.3, sliding_window_size=32),
        "dms-decoding": kvpress.DMSPress(kvpress.KnormPress(), threshold=-1.3, sliding_window_size=32, decoding=True),
    }


NAMES = (
    "snapkv streaming expected tova knorm keydiff random lagkv pyramid observed think adakv adakv-knorm criticaladakv "
    "criticalkv chunkkv chunk block composed rerotated simlayer per-layer decoding decoding-snapkv prefill-decoding "
    "merging merging-some composed-merging cam dms dms-decoding"
).split()
EAGER = ("observed", "cam")
MASKING = ("adakv", "adakv-knorm", "criticaladakv", "dms", "dms-decoding")
MERGING = ("merging", "merging-some", "composed-merging")
# Rows that lie in the cache otherwise than they were written: rotated, zeroed or masked keys, merged values.
BY_VALUES, BY_KEYS = ("rerotated", "think", *MASKING), (*MERGING, "cam")


class Written:
    """Every row that was ever written to a cache, and which of them lie in it now: told by comparing bits."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[Any, Any]]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        from transformers.cache_utils import DynamicLayer  # noqa: PLC0415

        update = DynamicLayer.update

        def watched(layer: Any, keys: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
            self.rows.setdefault(id(layer), []).append((keys.clone(), values.clone()))
            return update(layer, keys, values, *args, **kwargs)

        DynamicLayer.update = watched
        try:
            yield
        finally:
            DynamicLayer.update = update

    def check(self, layer: Any, name: str, told: list[tuple[int, ...]]) -> None:
        """The rows that lie in the cache are, bit for bit, those that were written at the positions that are told."""
        import torch  # noqa: PLC0415

        parts = [part for part in (0, 1) if name not in (BY_VALUES, BY_KEYS)[part]]
        every = torch.cat([torch.cat([each[part] for each in self.rows[id(layer)]], 2)[0] for part in parts], -1)
        now = torch.cat([(layer.keys, layer.values)[part][0] for part in parts], -1)
        for head in range(HEADS):
            assert len(set(told[head])) == len(told[head]) == now.shape[1]
            assert sorted(map(_bits, now[head])) == sorted(map(_bits, every[head, list(told[head])]))
            if len(parts) == 2:
                assert len(set(map(_bits, every[head]))) == every.shape[1], (
                    "no two rows are alike, so it could be no other"
                )


def _bits(row: Any) -> bytes:
    return bytes(row.numpy().tobytes())


def run(model: Any, press: Any, **more: Any) -> Any:
    import torch  # noqa: PLC0415

    torch.manual_seed(3)
    ids = torch.randperm(511)[None, :PROMPT] + 1
    with press(model):
        return model.generate(
            ids, max_new_tokens=NEW, do_sample=False, return_dict_in_generate=True, pad_token_id=0, **more
        )


def events_of(trace: Any) -> list[StateEvent]:
    made = Trace()
    trace.add_to(made)
    return made.events


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_is_what_lies_in_the_cache(name: str, kvpress: Any, model: Callable[[str], Any]) -> None:
    import torch  # noqa: PLC0415

    press = presses(kvpress)[name]
    ours = model("eager" if name in EAGER else "sdpa")
    torch.manual_seed(5)
    plain = run(ours, presses(kvpress)[name])
    written = Written()
    with adapter.install(press) as watched, written.watching():
        result = run(ours, press)
    assert name == "random" or torch.equal(result.sequences, plain.sequences), "the host gets what it would have got"
    (trace,) = watched.traces
    events = events_of(trace)
    live = fold(events)
    cache = result.past_key_values
    if name != "think":
        for index, layer in enumerate(cache.layers):
            written.check(layer, name, [live[index, head] for head in range(HEADS)])
    state = replay(events)
    assert (state.contradictions, state.unknown) == (0, set())
    counts = trace.counts()
    assert counts["kv_kept"] == state.entries == sum(layer.keys.shape[2] * HEADS for layer in cache.layers)
    merged = 0 if name == "cam" else counts["kv_merged"]
    assert counts["kv_appended"] - counts["kv_evicted"] - merged == counts["kv_kept"]
    assert merged == sum(event.n_members for event in events if event.op is Operation.MERGE)
    assert (merged > 0) == (name in MERGING)
    assert (counts["kv_merged"] == UNKNOWN) == (name == "cam"), "it divides a value among several"
    assert counts["kv_appended"] == LAYERS * HEADS * (PROMPT + NEW - 1)
    masks = {key: row for event in events if event.op is Operation.MASK for key, row in (rows(event, {}) or {}).items()}
    assert bool(masks) == (name in MASKING)
    if name in MASKING:
        for layer in ours.model.layers:
            batch, head, position = (part.tolist() for part in layer.self_attn.masked_key_indices)
            told = {
                (0, h, p)
                for h in range(HEADS)
                for p in range(PROMPT + NEW)
                if masks[layer.self_attn.layer_idx, h] >> p & 1
            }
            assert told == set(zip(batch, head, position, strict=True))
    assert (counts["attended"] == counts["attended_dense"]) == (name == "think")


@pytest.mark.parametrize("name", ["merging", "merging-some"])
def test_values_are_told_to_have_gone_where_they_are_found(
    name: str, kvpress: Any, model: Callable[[str], Any]
) -> None:
    """The value of each survivor is, in the cache, that of its own and of what is told to have gone into it."""
    import torch  # noqa: PLC0415

    press, written = presses(kvpress)[name], Written()
    with adapter.install(press) as watched, written.watching():
        result = run(model("sdpa"), press)
    told = {
        key: went for event in events_of(watched.traces[0]) if event.op is Operation.MERGE
        for key, went in (merges(event, {}) or {}).items()
    }  # fmt: skip
    for index, layer in enumerate(result.past_key_values.layers):
        keys, values = (torch.cat([each[part] for each in written.rows[id(layer)]], 2)[0] for part in (0, 1))
        for head in range(HEADS):
            of_position = {_bits(row): place for place, row in enumerate(keys[head])}
            kept = [of_position[_bits(row)] for row in layer.keys[0, head]]
            went = told[index, head]
            assert not set(went) & set(kept)
            assert set(went.values()) <= set(kept)
            alike = torch.nn.functional.normalize(keys[head], dim=-1)
            norms = values[head].norm(dim=-1)
            for row, place in enumerate(kept):
                sources = [source for source, target in went.items() if target == place]
                if not sources:
                    assert torch.equal(layer.values[0, head, row], values[head, place])
                    continue
                weights = (alike[sources] @ alike[place]) * norms[sources] / (norms[sources] + norms[place])
                sum_of = values[head, place] + (weights[:, None] * values[head, sources]).sum(0)
                torch.testing.assert_close(layer.values[0, head, row], sum_of / (1 + weights.sum()))
                assert not torch.equal(layer.values[0, head, row], values[head, place])


def test_sizes_and_budgets(kvpress: Any, model: Callable[[str], Any]) -> None:
    for name, budget in (("streaming", 128), ("decoding", 192), ("prefill-decoding", 128)):
        press = presses(kvpress)[name]
        with adapter.install(press) as watched:
            run(model("sdpa"), press)
        events = events_of(watched.traces[0])
        assert over_budget(events, budget) == []
        if name == "streaming":
            assert [event.enc for event in events] == [Encoding.ALL, Encoding.RULE, Encoding.RANGES]
            assert sum(len(event.payload or b"") for event in events) <= 16


def test_keys_attended_are_those_of_a_mask_worked_out_by_hand(kvpress: Any, model: Callable[[str], Any]) -> None:
    press = kvpress.StreamingLLMPress(0.5, n_sink=4)
    with adapter.install(press) as watched:
        run(model("sdpa"), press)
    counts = watched.traces[0].counts()
    assert counts["attended_dense"] == sum(range(1, PROMPT + NEW))
    assert counts["attended"] == sum(range(1, PROMPT + 1)) + sum(range(PROMPT // 2 + 1, PROMPT // 2 + NEW))


def test_each_generation_has_a_trace_of_its_own_and_removal_leaves_the_press_as_it_was(
    kvpress: Any, model: Callable[[str], Any]
) -> None:
    press = presses(kvpress)["knorm"]
    before = dict(vars(press))
    with adapter.install(press) as watched:
        with pytest.raises(ConfigError, match="watched already"):
            adapter.install(press)
        for _ in range(2):
            run(model("sdpa"), press)
        assert len(watched.traces) == 2
        assert events_of(watched.traces[0]) == events_of(watched.traces[1])
    assert vars(press) == before
    run(model("sdpa"), press)
    assert len(watched.traces) == 2


def test_every_row_of_a_batch_has_its_own_positions(kvpress: Any, model: Callable[[str], Any]) -> None:
    import torch  # noqa: PLC0415

    press, written = presses(kvpress)["knorm"], Written()
    torch.manual_seed(4)
    ids = torch.randint(1, 512, (3, 64))
    with adapter.install(press) as watched, written.watching(), press(model("sdpa")):
        result = model("sdpa").generate(ids, max_new_tokens=4, do_sample=False, return_dict_in_generate=True)
    for row in range(3):
        made = Trace()
        watched.traces[0].add_to(made, row)
        live = fold(made.events)
        layer = result.past_key_values.layers[2]
        every = torch.cat([each[0] for each in written.rows[id(layer)]], 2)[row, 1]
        assert torch.equal(layer.keys[row, 1].sort(0).values, every[list(live[2, 1])].sort(0).values)


def test_a_generation_that_is_watched_is_one_attempt_with_its_trace(
    kvpress: Any, model: Callable[[str], Any], tmp_path: Path, key: bytes
) -> None:
    from weighbridge.capture.content import read_content  # noqa: PLC0415
    from weighbridge.capture.reader import read_journal  # noqa: PLC0415
    from weighbridge.capture.seal import rows_of  # noqa: PLC0415
    from weighbridge.schemas.trace_block import open_events  # noqa: PLC0415

    press, keys = presses(kvpress)["snapkv"], KeyFolder(tmp_path / "keys")
    described = adapter.strategy(press, model("sdpa").config)
    recorder = Recorder.start(
        tmp_path / "spool", installation="test-1", key=key, keys=keys, limits=Limits(keeper_s=3600.0)
    )
    context = Context(strategy_id=described.strategy_id)
    with generation.ADAPTER.install(model("sdpa"), recorder, context), adapter.install(press, recorder) as watched:
        for binding in recorder._bindings:
            binding.decision = _always()
        result = run(model("sdpa"), press)
    recorder.close()
    (content,) = (tmp_path / "spool").glob("*.content")
    ((about, block),) = [each for each in read_content(content).blocks if "trace" in each[0]]
    opened = open_events(about["key"], keys.get(about["key"]), bytes.fromhex(about["block"]) + block)
    expected = Trace(described.strategy_id)
    watched.traces[0].add_to(expected)
    assert opened == expected.events
    assert [each["strategy_id"] for each in about["strategies"]] == [described.strategy_id]
    (journal,) = (tmp_path / "spool").glob("*.journal")
    (attempt,) = rows_of(read_journal(journal))["attempt"]
    assert {name: attempt[name] for name in watched.traces[0].counts()} == watched.traces[0].counts()
    assert (attempt["level"], attempt["strategy_id"]) == (3, described.strategy_id)
    assert result.sequences.shape[1] == PROMPT + NEW


def _always() -> Any:
    from weighbridge.capture.policy import ALL, Decision  # noqa: PLC0415

    return Decision(3, ALL, 1 << 62)


def test_a_strategy_is_named_by_class_parameters_and_geometry(kvpress: Any, model: Callable[[str], Any]) -> None:
    config = model("sdpa").config
    first = adapter.strategy(presses(kvpress)["composed"], config)
    assert first.strategy_id == adapter.strategy(presses(kvpress)["composed"], config).strategy_id
    assert first.strategy_id != adapter.strategy(presses(kvpress)["snapkv"], config).strategy_id
    assert first.parameters["presses.0.class"] == "SnapKVPress"
    assert first.parameters["presses.1.compression_ratio"] == 0.25
    assert (first.layers, first.query_heads, first.kv_heads) == (LAYERS, 4, HEADS)
    assert not adapter.strategy(presses(kvpress)["think"], config).token_events


def test_other_axes_are_not_touched(kvpress: Any, model: Callable[[str], Any]) -> None:
    press = presses(kvpress)["decoding"]
    with adapter.install(press) as watched:
        run(model("sdpa"), press)
    assert {event.axis for event in events_of(watched.traces[0])} == {Axis.STORE}
    assert layout.COUNTS.index("attended") > 0
