"""Presses of kvpress as strategies of a run; `./setup.sh kvpress` has the environment that these tests ask for."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from weighbridge.capture import comparison_runner
from weighbridge.capture.comparison.press import PRESSES
from weighbridge.capture.comparison.run import Run, plan_of
from weighbridge.capture.comparison.setting import setting
from weighbridge.capture.keys import KeyFolder
from weighbridge.pipeline.compare.run_folder import read_run
from weighbridge.pipeline.content.comparison import OpenedRun, open_run
from weighbridge.schemas.errors import ConfigError

KEY, LENGTH, NEW = bytes(range(32)), 40, 6
NUMBERS: dict[str, dict[str, Any]] = {
    "SnapKVPress": {"window_size": 8},
    "PyramidKVPress": {"window_size": 8},
    "LagKVPress": {"n_sink": 4, "lag_size": 8},
}


def test_a_press_is_checked_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for given, message in (
        ({"press": "ThinKPress"}, "strategy s: press must be one of ExpectedAttentionPress, KeyDiffPress"),
        ({"press": "KnormPress", "compression_ratio": 1.0}, "compression_ratio is 1.0; give a share between 0 and 1"),
        ({"press": "KnormPress", "compression_ratio": True}, "compression_ratio is True; give a share"),
        ({"press": "KnormPress", "mode": "fast"}, "strategy s: 'mode' is no number"),
        ({"press": "KnormPress"}, "the environment of the runner has no kvpress; `./setup.sh install-kvpress`"),
    ):
        with pytest.raises(ConfigError, match=message):
            setting("s", given)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, OpenedRun]:
    """A run of every press beside the runner's own eviction by key norms; or a skip that says how to get one."""
    if importlib.util.find_spec("kvpress") is None:
        if os.environ.get("WEIGHBRIDGE_KVPRESS") == "1":
            pytest.fail("kvpress should be here, and is not")
        pytest.skip("kvpress is not installed; `./setup.sh kvpress` runs these tests in an environment of its own")
    folder = tmp_path_factory.mktemp("presses")
    source = Random(3)
    presses = {name: {"press": name, "compression_ratio": 0.5, **NUMBERS.get(name, {})} for name in PRESSES}
    given: dict[str, Any] = {
        "model": "demo", "model_name": "tiny", "max_new_tokens": NEW, "seed": 1,
        "strategies": {"own": {"compression_ratio": 0.5}, **presses},
        "prompts": [
            {"pair": f"p{at}", "parts": [["user", [source.randrange(5, 300) for _ in range(LENGTH)]]]}
            for at in range(3)
        ],
    }  # fmt: skip
    model, _ = comparison_runner.load(given)
    model.generation_config.eos_token_id = None
    keys = KeyFolder(folder / "keys")
    (folder / "run").mkdir()
    Run(plan_of(given, model, None), folder / "run", KEY, keys)()
    return folder / "run", open_run(read_run(folder / "run"), keys)


@pytest.mark.system
def test_the_press_of_key_norms_is_the_runner_s_own_eviction_by_key_norms(run: tuple[Path, OpenedRun]) -> None:
    """Two implementations: the same ids, the same entries, the same likelihoods of the baseline's answer."""
    rows = read_run(run[0]).rows
    sides = {side.name: side for side in run[1].sides}
    for pair, answer in sides["own"].answers.items():
        assert sides["KnormPress"].answers[pair].ids == answer.ids
    counts = ["kv_written", "kv_kept", "kv_evicted", "attended", "forced_agreed"]
    own, press = (rows.filter(strategy=name).sort("pair") for name in ("own", "KnormPress"))
    assert own.select(counts).equals(press.select(counts))
    assert own["nll"].to_list() == pytest.approx(press["nll"].to_list(), rel=1e-5)
    kept = [{each.pair: each.kept for each in run[1].visible[name]} for name in ("own", "KnormPress")]
    assert kept[0] == kept[1]


@pytest.mark.system
@pytest.mark.parametrize("name", PRESSES)
def test_every_press_evicts_what_its_state_events_say(run: tuple[Path, OpenedRun], name: str) -> None:
    rows = read_run(run[0]).rows.filter(strategy=name)
    written = 2 * 2 * (LENGTH + NEW - 1)
    assert rows["kv_written"].to_list() == [written] * 3
    for row in rows.to_dicts():
        assert row["kv_evicted"] == written - row["kv_kept"] > 0
        (seen,) = [each for each in run[1].visible[name] if each.pair == row["pair"]]
        assert 2 * 2 * sum(1 - share for share in seen.kept) == pytest.approx(row["kv_evicted"])
    (side,) = [side for side in run[1].sides if side.name == name]
    assert (side.implementation, side.parameters["press"]) == (f"kvpress.{name}", name)
    assert side.strategy_id is not None
