"""`weighbridge compare run`: from a file to a recommendation, with the runner as a process of its own."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.system
PLAN = """
model = "demo"
name = "tiny"
max_new_tokens = 4
hour = "3.60"
[gate]
pairs = 2
margins = { agreement = 0.9 }
[strategies.window]
window = 6
sinks = 0
[strategies.topk]
attention_topk = 8
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "compare.toml"
    prompts = [
        f'[[prompt]]\ncluster = "scales"\nsystem = "the scale weighs what was"\ntext = "a lorry drives on, {word}"'
        for word in "abcd"
    ]
    path.write_text("\n".join([PLAN, *prompts]))
    return path


def test_a_run_is_compared_kept_and_opened_again(weighbridge: Terminal, tmp_path: Path, plan: Path) -> None:
    pytest.importorskip("torch")
    home = tmp_path / "home"
    assert weighbridge("init", home).code == 0
    at = ("--config", home)
    refused = weighbridge("compare", "run", plan, *at)
    assert (refused.code, "no keys of token ids are named" in refused.err) == (2, True)
    (tmp_path / "keys").mkdir(mode=0o700)
    keys = ("--content-keys", tmp_path / "keys")
    told = weighbridge("compare", "run", plan, "--out", tmp_path / "run", "--json", *keys, *at).json
    assert {each["strategy"] for each in told["strategies"]} == {"window", "topk"}
    assert told["evicted"]["window"]["by_origin"]["system"] == 1.0
    shared = told["evicted"]["window"]["shared_beginnings"]["scales"]
    assert shared["answers"] == 4
    assert shared["left_most"] < 0.2, "the window has passed nearly all of it"
    codes = {(finding["code"], finding["subject"]["strategy"]) for finding in told["findings"]}
    assert ("system_prompt_forgotten", "window") in codes
    saved = {each["strategy"]: each["savings"] for each in told["strategies"]}
    assert set(saved["topk"]) == {"attended", "kv_bytes", "kv_entries", "forward", "seconds", "money"}
    again = weighbridge(
        "compare", "analyse", f"{tmp_path / 'run'}#dense", f"{tmp_path / 'run'}#topk", "--json", *keys, *at
    )
    (each,) = again.json["strategies"]
    first = next(each for each in told["strategies"] if each["strategy"] == "topk")
    assert each["measures"]["similarity"] == first["measures"]["similarity"] | {
        "q": each["measures"]["similarity"]["q"]
    }
    assert "topk" in weighbridge("compare", "show", *at).out
    text = weighbridge("compare", "analyse", tmp_path / "run", *keys, *at).out
    assert "beginnings that prompts of a cluster share" in text
    assert "perplexity of the baseline's answers: dense" in text
    made = weighbridge(
        "compare", "sheet", tmp_path / "run", "--strategy", "window", "--out", tmp_path / "s", *keys, *at
    )
    assert made.code == 0
    log = weighbridge("changes", "--kind", "access", "--json", *at).json
    assert [(row["file"], row["key"].split()[-1]) for row in log] == [("compare sheet", "window")]
    sheet = (tmp_path / "s" / "sheet.csv").read_text(encoding="utf-8-sig")
    assert "a lorry drives on" in sheet
    items = [row["item"] for row in csv.DictReader(sheet.splitlines())]
    (tmp_path / "ann.csv").write_text("item,verdict\n" + "".join(f"{item},same\n" for item in items))
    judged = weighbridge(
        "compare", "verdicts", tmp_path / "run", tmp_path / "ann.csv", "--strategy", "window", "--json", *at
    ).json
    assert (judged["same"], judged["unknown"], judged["judgement"]) == (len(items), 0, "undecided")


def test_what_the_runner_refuses_is_said(weighbridge: Terminal, tmp_path: Path, plan: Path) -> None:
    pytest.importorskip("torch")
    home = tmp_path / "home"
    weighbridge("init", home)
    (tmp_path / "keys").mkdir(mode=0o700)
    plan.write_text(plan.read_text().replace("attention_topk = 8", "top_k = 8"))
    ran = weighbridge("compare", "run", plan, "--content-keys", tmp_path / "keys", "--config", home)
    assert ran.code == 2
    assert "strategy topk: there is no parameter 'top_k'; allowed are window, sinks, kv_cache_limit" in ran.err
