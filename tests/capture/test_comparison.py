"""The runner of comparisons on the tiny model: what strategies do, against masks and caches worked out by hand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from weighbridge.capture import comparison_runner
from weighbridge.capture.comparison import attention
from weighbridge.capture.comparison.answering import Shape, made
from weighbridge.capture.comparison.events import events_of
from weighbridge.capture.comparison.meaning import Meaning, Read, alike
from weighbridge.capture.comparison.prompt import Prompt, prompts
from weighbridge.capture.comparison.run import Run, _claim, plan_of
from weighbridge.capture.comparison.setting import Setting, setting
from weighbridge.capture.keys import KeyFolder
from weighbridge.pipeline.compare.answer import Side
from weighbridge.pipeline.compare.comparison import compare
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.run_folder import read_run
from weighbridge.pipeline.content.comparison import OpenedRun, open_run
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.trace import fold

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("cryptography")

KEY = bytes(range(32))
LENGTH, NEW = 40, 6
LAYERS, HEADS, KV_HEADS = 2, 4, 2
STRATEGIES: dict[str, dict[str, Any]] = {
    "window": {"window": 12, "sinks": 3},
    "limit": {"kv_cache_limit": 20},
    "norm": {"compression_ratio": 0.5},
    "topk": {"attention_topk": 5},
    "pruned": {"token_pruning_ratio": 0.25},
    "drafts": {"draft_length": 3},
    "idle": {"kv_cache_limit": 4000},
}


def given() -> dict[str, Any]:
    source = Random(3)
    # The second half is the first again, so that there is something to draft from.
    ids = [2 * [source.randrange(5, 300) for _ in range(LENGTH // 2)] for _ in range(2)]
    return {
        "model": "demo", "model_name": "tiny", "max_new_tokens": NEW, "seed": 1, "strategies": STRATEGIES,
        "prompts": [
            {"pair": "a", "cluster": "one", "parts": [["system", ids[0][:8]], ["user", ids[0][8:]]]},
            {"pair": "b", "parts": [["user", ids[1]]], "expected_ids": []},
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Any:
    made, _ = comparison_runner.load(given())
    made.generation_config.eos_token_id = None  # so that every answer has all its tokens
    return made


@pytest.fixture(scope="module")
def run(model: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KeyFolder]:
    folder = tmp_path_factory.mktemp("comparison")
    keys = KeyFolder(folder / "keys")
    (folder / "run").mkdir()
    Run(plan_of(given(), model, None), folder / "run", KEY, keys)()
    return folder / "run", keys


@pytest.fixture(scope="module")
def rows(run: tuple[Path, KeyFolder]) -> dict[tuple[str, str], dict[str, Any]]:
    frame = pl.read_parquet(run[0] / "rows.parquet").filter(run=0)
    return {(row["strategy"], row["pair"]): row for row in frame.to_dicts()}


@pytest.fixture(scope="module")
def opened(run: tuple[Path, KeyFolder]) -> OpenedRun:
    return open_run(read_run(run[0]), run[1])


def answers(opened: OpenedRun, name: str) -> Side:
    return next(side for side in opened.sides if side.name == name)


def test_a_dense_run_is_what_the_model_does_by_itself(model: Any, opened: OpenedRun) -> None:
    for prompt in given()["prompts"]:
        ids = [each for _, part in prompt["parts"] for each in part]
        assert opened.prompts[prompt["pair"]] == ids
        out = model.generate(
            input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, LENGTH), max_new_tokens=NEW, do_sample=False,
            temperature=None, top_k=None,
        )  # fmt: skip
        dense = opened.sides[0]
        assert dense.answers[prompt["pair"]].ids == out[0, LENGTH:].tolist()
        assert dense.again[prompt["pair"]].ids == dense.answers[prompt["pair"]].ids
    assert model.config._attn_implementation != "weighbridge_comparison"


def seen(visible: Any) -> int:
    """Keys read when query q (from 0) reads `visible(q)` of them, in every layer and head."""
    return LAYERS * HEADS * sum(int(visible(at)) for at in range(LENGTH + NEW - 1))


def test_keys_that_are_read_are_those_of_masks_made_by_hand(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    dense = seen(lambda at: at + 1)
    wanted = {
        "dense": dense,
        "idle": dense,
        # Itself, the 11 before it, and the first 3 where they are further back.
        "window": seen(lambda at: min(at + 1, 12) + min(3, max(0, at - 11))),
        # A dense prompt; afterwards 20 entries and the token itself.
        "limit": seen(lambda at: at + 1 if at < LENGTH else 21),
        "norm": seen(lambda at: at + 1 if at < LENGTH else LENGTH // 2 + at - LENGTH + 1),
        "topk": seen(lambda at: min(at + 1, 5)),
    }
    for name, count in wanted.items():
        assert {rows[name, pair]["attended"] for pair in "ab"} == {count}, name
        assert rows[name, "a"]["attended_dense"] == dense
    pruned = rows["pruned", "a"]
    assert (pruned["pruned"], pruned["hidden"], pruned["forward"]) == (10, LENGTH, LENGTH + 30 + NEW - 1)


def test_what_is_kept_is_what_the_state_events_say(
    rows: dict[tuple[str, str], dict[str, Any]], opened: OpenedRun
) -> None:
    heads = LAYERS * KV_HEADS
    kept = {"window": 14, "limit": 20, "norm": LENGTH // 2 + NEW - 1, "idle": LENGTH + NEW - 1}
    for name, entries in kept.items():
        row = rows[name, "a"]
        assert (row["kv_kept"], row["kv_written"]) == (entries * heads, (LENGTH + NEW - 1) * heads)
        if name == "idle":
            assert name not in opened.visible, "what touched nothing has no events"
            continue
        of_prompt = next(each for each in opened.visible[name] if each.pair == "a")
        after = NEW - 1  # entries of the answer, which none of these drops
        assert sum(of_prompt.kept) == pytest.approx(entries - after)
    window = next(each for each in opened.visible["window"] if each.pair == "a").kept
    assert [at for at, share in enumerate(window) if share == 1] == [0, 1, 2, *range(LENGTH + NEW - 1 - 11, LENGTH)]
    pruned = next(each for each in opened.visible["pruned"] if each.pair == "a").kept
    assert (sorted(pruned), pruned[0], pruned[-1]) == ([0.0] * 10 + [1.0] * 30, 1.0, 1.0)


def test_a_right_answer_holds_what_is_expected() -> None:
    known = Prompt("p", (1,), (), expected="heavy", expected_ids=(4, 5))
    assert [known.score(ids, None) for ids in ([1, 4, 5], [4, 1, 5], [])] == [1.0, 0.0, 0.0]
    spoken = Prompt("p", (1,), (), expected="heavy")
    assert [spoken.score([1], lambda _, said=said: said) for said in ("quite heavy", "light")] == [1.0, 0.0]  # type: ignore[misc]
    assert spoken.score([1], None) is None, "without a tokenizer nobody can tell"
    assert Prompt("p", (1,), ()).score([1], str) is None


@pytest.mark.parametrize(
    ("part", "tokenizer", "message"),
    [("words", None, "names no tokenizer"), ([], None, "is empty"), ([1, 999], None, "beyond the 400 the model knows")],
)
def test_a_prompt_the_model_cannot_read_is_refused(part: Any, tokenizer: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prompts([{"pair": "p", "parts": [["user", part]]}], tokenizer, 400)


def test_drafts_change_no_id_and_are_counted(rows: dict[tuple[str, str], dict[str, Any]], opened: OpenedRun) -> None:
    for pair in "ab":
        row = rows["drafts", pair]
        assert answers(opened, "drafts").answers[pair].ids == opened.sides[0].answers[pair].ids
        assert row["forward"] == LENGTH + NEW - 1 - row["accepted"] + row["drafted"]
        assert (row["forced_agreed"], row["kl"]) == (NEW, 0.0)


def test_drafts_that_change_an_answer_are_not_taken_for_agreeing(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(model: Any, setting: Setting, *args: Any) -> Any:
        answer = made(model, setting, *args)
        if setting.draft_length is None:
            return answer
        return replace(answer, ids=(*answer.ids[:2], answer.ids[2] + 1, *answer.ids[3:]))

    monkeypatch.setattr("weighbridge.capture.comparison.run.made", spoilt)
    plan = given()
    plan |= {"strategies": {"drafts": STRATEGIES["drafts"]}, "prompts": plan["prompts"][:1]}
    (tmp_path / "run").mkdir()
    Run(plan_of(plan, model, None), tmp_path / "run", KEY, KeyFolder(tmp_path / "keys"))()
    (row,) = pl.read_parquet(tmp_path / "run" / "rows.parquet").filter(strategy="drafts").to_dicts()
    assert (row["forced"], row["forced_agreed"], row["nll"], row["kl"]) == (NEW, 2, None, None)


def test_the_baselines_answer_fed_to_the_model(model: Any, rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    ids = [each for _, part in given()["prompts"][1]["parts"] for each in part]
    out = model.generate(
        input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, LENGTH), max_new_tokens=NEW, do_sample=False,
        temperature=None, top_k=None,
    )  # fmt: skip
    with torch.no_grad():
        likely = model(input_ids=out[:, :-1]).logits[0, LENGTH - 1 :].log_softmax(-1)
    nll = -float(likely.gather(-1, out[0, LENGTH:, None]).sum())
    assert rows["dense", "b"]["nll"] == pytest.approx(nll, rel=1e-4)
    assert rows["dense", "b"]["forced_agreed"] == NEW
    assert all(row["kl"] >= 0 for row in rows.values())
    assert rows["topk", "b"]["kl"] > 0


def test_the_run_is_compared_and_one_that_did_nothing_is_found_out(opened: OpenedRun) -> None:
    found = compare(opened.sides[0], opened.sides[1:], Gate())
    idle = next(each for each in found.strategies if each.side.name == "idle")
    assert (str(idle.judgement), idle.unshown) == ("no_effect", 2)
    assert found.floor_measured
    assert {each.side.name for each in found.strategies} == set(STRATEGIES)
    assert {each.side.name for each in found.strategies if each.unshown} == {"idle"}


def test_no_id_stands_in_clear_and_a_changed_file_is_refused(run: tuple[Path, KeyFolder], tmp_path: Path) -> None:
    folder, keys = run
    about = json.loads((folder / "comparison.json").read_text())
    assert about["answers"] == 2 * (len(STRATEGIES) + 2)
    ids = [each for _, part in given()["prompts"][0]["parts"] for each in part]
    canaries = [b"".join(each.to_bytes(size, "little") for each in ids[:6]) for size in (2, 4, 8)]
    canaries.append(", ".join(map(str, ids[:6])).encode())
    raw = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(canary in each for canary in canaries for each in raw)
    with pytest.raises(ContractError, match="Name its keys"):
        open_run(read_run(folder), KeyFolder(tmp_path / "other"))
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ContractError, match="is not the file that was written"):
        read_run(copy)
    assert keys.names()


def test_traces_whose_key_is_gone_are_counted(run: tuple[Path, KeyFolder], tmp_path: Path) -> None:
    folder, keys = run
    without = tmp_path / "keys"
    shutil.copytree(keys.folder, without)
    whole = open_run(read_run(folder), keys)
    for name in keys.names():
        if ".traces." in name:
            KeyFolder(without).destroy(name)
    left = open_run(read_run(folder), KeyFolder(without))
    assert (whole.shut, bool(whole.visible)) == (0, True)
    assert (left.shut > 0, left.visible) == (True, {})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"windows": 4}, "no parameter 'windows'; allowed are window, sinks, kv_cache_limit"),
        ({"window": 0}, "window is 0; at least 1"),
        ({"window": 4.5}, "window must be a whole number"),
        ({"compression_ratio": 1.0}, "a share between 0 and 1"),
        ({"token_pruning_ratio": True}, "must be a share between 0 and 1"),
        ({"sinks": 4}, "give window or kv_cache_limit as well"),
        ({"kv_cache_limit": 4}, "has no room beside 4 sinks"),
        ({"draft_length": 2, "window": 8}, "give draft_length a strategy of its own"),
        ({"compression_ratio": 0.5, "window": 8}, "use one of them"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        setting("s", parameters)


@pytest.fixture(scope="module", params=["all", "half"])
def sliding(request: pytest.FixtureRequest) -> Any:
    """A model whose layers slide by themselves, all of them or every other."""
    shape = {
        "vocab_size": 200, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 16, "pad_token_id": 0,
        "eos_token_id": None, "bos_token_id": None,
    }  # fmt: skip
    torch.manual_seed(5)
    attention.register()
    if request.param == "all":
        made = transformers.MistralForCausalLM(transformers.MistralConfig(**shape))
    else:
        made = transformers.Gemma3ForCausalLM(
            transformers.Gemma3TextConfig(**shape, layer_types=["sliding_attention", "full_attention"])
        )
    made.eval().set_attn_implementation("eager")
    return made


def test_layers_that_slide_by_themselves_keep_their_own_rule(sliding: Any) -> None:
    prompt = [(37 * at) % 199 + 1 for at in range(LENGTH)]
    plain = sliding.generate(input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, LENGTH), max_new_tokens=NEW)
    sliding.set_attn_implementation(attention.NAME)
    assert attention.supported(sliding)
    dense = made(sliding, Setting("dense"), prompt, NEW, 1)
    assert list(dense.ids) == plain[0, LENGTH:].tolist()
    assert dense.held.dropped == 0, "what the model lets go by itself is no eviction"
    shape, total = Shape.of(sliding), LENGTH + NEW - 1
    full = 2 - len(dense.held.sliding)
    assert dense.held.kept == KV_HEADS * (15 * (2 - full) + total * full)
    drafted = made(sliding, setting("d", {"draft_length": 3}), prompt, NEW, 1)
    assert (drafted.ids, drafted.held.written) == (dense.ids, dense.held.written)
    limited = setting("limit", {"kv_cache_limit": 20})
    answer = made(sliding, limited, prompt, NEW, 1)
    assert answer.held.dropped == KV_HEADS * full * (total - 20)
    live = fold(events_of(answer, limited, shape, "0" * 32, LENGTH))
    assert sum(map(len, live.values())) == (answer.held.kept if full else 0)


class Tiny:
    """An encoder whose every token is the unit vector of its place in a small vocabulary."""

    def read(self, words: list[int]) -> Read:
        if not words:
            return Read(None, None)
        vectors = torch.nn.functional.one_hot(torch.tensor(words), 8).float()
        return Read(torch.nn.functional.normalize(vectors.mean(0), dim=0), vectors)


def test_likeness_of_meaning_by_hand() -> None:
    """Two of three words shared: precision and recall are 2/3; whole vectors share two of three axes."""
    read = Tiny().read
    found = alike(read([1, 2, 3]), read([1, 2, 4]))
    assert found.bert_score == pytest.approx(2 / 3)
    assert found.semantic == pytest.approx(2 / 3)
    assert alike(read([1, 2, 2]), read([2, 1])).bert_score == pytest.approx(1.0)
    assert (alike(read([]), read([])), alike(read([]), read([1]))) == ((1.0, 1.0), (0.0, 0.0))


def test_an_encoder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no encoder can be loaded"):
        Meaning(str(tmp_path / "none"))


@pytest.mark.system
def test_an_encoder_in_a_folder_reads_texts_of_any_length(tmp_path: Path) -> None:
    from weighbridge.capture.demo_model import tiny_tokenizer  # noqa: PLC0415

    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=12,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path)
    meaning = Meaning(str(tmp_path))
    short, long = meaning.read("a lorry drives on"), meaning.read("a lorry drives on and off " * 9)
    assert alike(short, short) == pytest.approx((1.0, 1.0))
    assert alike(long, meaning.read("a lorry drives on and off " * 9 + "again")) == pytest.approx((1.0, 1.0))
    assert alike(short, long).semantic < 1.0
    assert alike(short, meaning.read(" ")) == (0.0, 0.0)


def test_a_folder_is_taken_by_one_run(run: tuple[Path, KeyFolder], tmp_path: Path) -> None:
    _claim(tmp_path, tmp_path / "policy.json")
    with pytest.raises(ConfigError, match="another run writes into"):
        _claim(tmp_path, tmp_path / "policy.json")
    with pytest.raises(ConfigError, match="holds another run"):
        _claim(run[0], run[0] / "policy.json")
    assert not (run[0] / "policy.json").exists()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"windw": 3}, r"strategy s: there is no parameter 'windw'; allowed are window, sinks"),
        ({"window": 2.5}, r"strategy s: window must be a whole number"),
        ({"window": True}, r"strategy s: window must be a whole number"),
        ({"compression_ratio": 1.5}, r"strategy s: compression_ratio is 1.5; give a share between 0 and 1"),
        ({"compression_ratio": float("nan")}, r"compression_ratio is nan; give a share"),
        ({"draft_length": 0}, r"strategy s: draft_length is 0; at least 1 is allowed"),
    ],
)
def test_what_is_written_wrong_is_said_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: dict[str, Any], message: str
) -> None:
    def load(_: object) -> tuple[Any, Any]:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(comparison_runner, "load", load)
    plan = given() | {"strategies": {"s": strategy}, "keys": {"folder": str(tmp_path)}}
    with pytest.raises(ConfigError, match=message):
        comparison_runner.main(tmp_path / "run", KEY, plan)
    assert not (tmp_path / "run").exists()


def test_a_baseline_that_differs_from_itself_has_a_floor_of_what_the_model_says(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(100))
    whole = made

    def drifting(*about: Any) -> Any:
        answer = whole(*about)
        return replace(answer, ids=(*answer.ids[:-1], 7)) if next(calls) == 1 else answer

    monkeypatch.setattr("weighbridge.capture.comparison.run.made", drifting)
    plan = given() | {"strategies": {"idle": {"kv_cache_limit": 4000}}}
    plan["prompts"] = plan["prompts"][:1]
    (tmp_path / "run").mkdir()
    Run(plan_of(plan, model, None), tmp_path / "run", KEY, KeyFolder(tmp_path / "keys"))()
    rows = read_run(tmp_path / "run").rows
    floor = rows.filter(strategy="dense", run=1)
    assert floor.select("forced", "forced_agreed").row(0) == (NEW, NEW)
    assert rows.filter(strategy="dense", run=0)["forced"].to_list() == [NEW]
