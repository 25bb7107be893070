"""The file that says what to run: what it may hold, and what is said where it is wrong."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from weighbridge.pipeline.compare.demo import demo_plan
from weighbridge.pipeline.compare.plan import read_plan
from weighbridge.schemas.errors import ConfigError

GOOD = """
model = "models/small"
max_new_tokens = 8
hour = "2.50"
by = "kv_bytes"
[gate]
pairs = 40
margins = { agreement = 0.03 }
[strategies.window]
window = 16
sinks = 4
[strategies.drafts]
on = false
draft_length = 3
[[prompt]]
system = "be exact"
text = "how heavy is it?"
expected = "heavy"
[[prompt]]
pair = "second"
cluster = "chat"
parts = [["context", [1, 2]], ["user", "秤"]]
"""


def test_a_plan_says_what_is_on(tmp_path: Path) -> None:
    path = tmp_path / "compare.toml"
    path.write_text(GOOD)
    plan = read_plan(path)
    assert (plan.model, plan.name) == (str(tmp_path / "models/small"), "small")
    assert plan.strategies == {"window": {"window": 16, "sinks": 4}}
    assert [prompt["pair"] for prompt in plan.prompts] == ["p1", "second"]
    assert plan.prompts[0]["parts"] == [["system", "be exact"], ["user", "how heavy is it?"]]
    assert (plan.hour, plan.by, plan.gate.pairs, dict(plan.gate.margins)) == (
        Decimal("2.50"), "kv_bytes", 40, {"agreement": 0.03},
    )  # fmt: skip
    told = plan.told({"folder": "keys"})
    assert (told["keys"], told["max_new_tokens"]) == ({"folder": "keys"}, 8)
    assert "heavy" not in repr(plan)


def test_a_press_and_where_it_is_installed_are_named(tmp_path: Path) -> None:
    path = tmp_path / "compare.toml"
    (tmp_path / "kvpress").mkdir()
    (tmp_path / "python").touch()
    text = GOOD.replace("window = 16\nsinks = 4", 'press = "KnormPress"\ncompression_ratio = 0.5')
    path.write_text(f'packages = "kvpress"\npython = "python"\n{text}')
    plan = read_plan(path)
    assert plan.strategies == {"window": {"press": "KnormPress", "compression_ratio": 0.5}}
    assert (plan.packages, plan.python) == (str(tmp_path / "kvpress"), str(tmp_path / "python"))
    assert "packages" not in plan.told({})


def test_prompts_may_stand_in_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"ids": [1, 2]}\n\n{"pair": "x", "ids": [3], "expected_ids": [4]}\n')
    path = tmp_path / "compare.toml"
    path.write_text('model = "demo"\nprompts = "p.jsonl"\n[strategies.s]\nwindow = 4\n')
    assert [(each["pair"], each["parts"]) for each in read_plan(path).prompts] == [
        ("p1", [["user", [1, 2]]]), ("x", [["user", [3]]]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[gate]", "[gate", "is not TOML"),
        ('model = "models/small"', "", "names no model"),
        ("by =", "rank =", "there is no 'rank'; allowed are model, name"),
        ('by = "kv_bytes"', 'by = "luck"', "allowed are attended, kv_bytes"),
        ("pairs = 40", "few = 40", "gate: there is no 'few'; allowed are margins"),
        ("pairs = 40", 'pairs = "many"', "gate holds what is no number"),
        ("agreement = 0.03", "length = 1.0", "no measure that can decide"),
        ("max_new_tokens = 8", "max_new_tokens = 0", "a whole number from 1"),
        ('hour = "2.50"', 'hour = "dear"', "hour is no amount"),
        ("[strategies.window]", "[strategies.dense]", "dense is the baseline"),
        ("window = 16\nsinks = 4", "on = false", "every strategy is off"),
        ('pair = "second"', 'pair = "p1"', "two prompts are called p1"),
        ('cluster = "chat"', 'cluster = "a chat"', "cluster must match"),
        ('["context", [1, 2]]', '["memory", [1, 2]]', "origins are system, template, user"),
        ('["context", [1, 2]]', '["context", [-1]]', "a part is"),
        ('text = "how heavy is it?"', 'words = "how heavy is it?"', "prompt 1: there is no 'words'"),
        ("[[prompt]]", 'prompts = "x"\n[[prompt]]', "one of the two"),
    ],
)
def test_what_cannot_be_run_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "compare.toml"
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    path.write_text(text if "one of the two" not in message else 'prompts = "x"\n' + GOOD)
    with pytest.raises(ConfigError, match=message) as told:
        read_plan(path)
    assert "heavy" not in str(told.value), "no word of a prompt is in a message"


def test_the_demonstration_has_the_same_prompts_every_time() -> None:
    assert demo_plan().told({}) == demo_plan().told({})
    assert demo_plan(seed=8).prompts != demo_plan().prompts


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("window = 16", "window = 2020-01-01", "'window' is no number"),
        ("max_new_tokens", 'forced = "no"\nmax_new_tokens', "forced must be true or false"),
        ("max_new_tokens", "meaning = 5\nmax_new_tokens", "meaning is no text"),
        ("margins = { agreement = 0.03 }", "margins = 5", "gate holds what is no number"),
        ('parts = [["context", [1, 2]], ["user", "秤"]]', "parts = 5", "parts is no list"),
        ('"2.50"', '"1e30"', "hour is no amount from 0"),
        ("window = 16", "press = 5", "'press' is no name; press is that of a class"),
        ("window = 16", 'window = "KnormPress"', "'window' is no number"),
        (
            "max_new_tokens",
            'packages = "none"\nmax_new_tokens',
            "packages is .*none, which is not there; name a fol",
        ),
        ("max_new_tokens", 'python = "none"\nmax_new_tokens', "python is .*none, which is not there; name an interpr"),
    ],
)
def test_what_is_of_another_kind_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "compare.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        read_plan(path)
