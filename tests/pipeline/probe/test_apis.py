"""Every API a probe speaks: what is sent, and that the same faults are found in the words of each."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pipeline.probe.conftest import Probed

from weighbridge.pipeline.probe.api import all_apis
from weighbridge.pipeline.probe.ask import Feature
from weighbridge.pipeline.probe.cause import all_causes
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.pipeline.probe.step import all_steps, chosen
from weighbridge.schemas.finding import CODE


def test_each_api_takes_the_steps_it_has_features_for() -> None:
    left_out = {
        name: [s for s in all_steps() if s not in {c.name for c in chosen(api)}] for name, api in all_apis().items()
    }
    structured = ["system", "system_longer", "tools", "tools_longer", "history", "history_longer", "history_again"]
    assert left_out == {
        "chat": [],
        "completions": [*structured, "reasoning"],
        "messages": ["stream_unasked", "choices"],
        "responses": ["stop_string", "stream_unasked", "choices"],
    }


# A bare text has the begin token and its 31 bytes.
@pytest.mark.parametrize(
    ("api", "provider", "plain", "cached"),
    [("completions", None, 32, 32), ("messages", "anthropic", 51, 48), ("responses", "openai", 51, 48)],
)
def test_an_api_without_a_fault_is_consistent(
    probed: Probed, api: str, provider: str | None, plain: int, cached: int
) -> None:
    result = probed(wanted={"api": api, "provider": provider}, stop_counted=4)
    assert [one.cause.code for one in result.partings if one.cause.code != "stop_trimmed"] == []
    assert result.verdict == "consistent"
    assert result.left_out == {}
    seen = {one.name: one for one in result.seen}
    assert seen["plain"].usage.input == plain
    assert (seen["repeat"].usage.input, seen["repeat"].usage.cached) == (plain, cached)
    assert (seen["stream"].usage.input, seen["stream"].usage.output, seen["stream"].answer.finish) == (plain, 3, "stop")


@pytest.mark.parametrize(
    ("api", "provider", "faults", "expected"),
    [
        ("completions", None, {"begin": 0}, ("plain", "special_tokens", -1)),
        ("completions", None, {"choices": True}, ("choices", "parallel_choices", 32)),
        ("messages", "anthropic", {"system": 2}, ("system", "system_counted_twice", 45)),
        ("messages", "anthropic", {"cache": "twice"}, ("repeat", "cache_convention", 48)),
        ("messages", "anthropic", {"tools": False}, ("tools", "tools_not_counted", -205)),
        ("responses", "openai", {"history": 2}, ("history", "history_duplicated", 85)),
        ("responses", "openai", {"reasoning": "out"}, ("reasoning", "reasoning_convention", -3)),
    ],
)
def test_a_fault_is_found_in_the_words_of_each(
    probed: Probed, api: str, provider: str | None, faults: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    first = probed(wanted={"api": api, "provider": provider}, **faults).first
    assert first is not None
    assert (first.step, first.cause.code, first.difference) == expected


def test_every_step_names_itself_and_its_order_is_its_own() -> None:
    steps = all_steps()
    assert len({step.order for step in steps.values()}) == len(steps)
    assert next(iter(steps)) == "plain"
    names = list(steps)
    for name, step in steps.items():
        ask = step.ask(prompts())
        assert ask.turns[-1].role == "user"
        for other in step.grows_by or ():
            assert names.index(other) <= names.index(name)
        needed = {
            Feature.SYSTEM: ask.system,
            Feature.TOOLS: ask.tool,
            Feature.STOP: ask.stop,
            Feature.REASONING: ask.think,
        }
        assert all(bool(part) is (feature in step.needs) for feature, part in needed.items())
        assert (step.ask(prompts()).messages() == steps["plain"].ask(prompts()).messages()) is (
            step.same_prompt or ask.tool is not None
        )


def test_every_cause_has_a_code_a_cure_of_one_sentence_and_an_order_of_its_own() -> None:
    causes = all_causes()
    assert len({cause.order for cause in causes}) == len(causes)
    for cause in causes:
        assert CODE.fullmatch(cause.code)
        assert cause.cure.endswith(".")
        assert ". " not in cause.cure
        assert cause.title
    assert causes[-1].code == "unexplained"


def test_the_texts_are_those_of_their_version() -> None:
    # A text that changes makes other counts: it takes another version, and then another digest here.
    assert (prompts().version, prompts().digest[:16]) == (1, "f00ab2ef4e0d9ffe")
    assert len(prompts().texts["plain"].encode()) == 31
    assert len(prompts().texts["addition"].encode()) == 36
