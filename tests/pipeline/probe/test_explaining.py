"""From counts to partings without a server: made-up observations, faults put in by hand or at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.probe.answer import delivered
from weighbridge.pipeline.probe.api import all_apis
from weighbridge.pipeline.probe.case import usage_cases
from weighbridge.pipeline.probe.endpoint import Answered
from weighbridge.pipeline.probe.engine_counts import EngineCount, between, counters
from weighbridge.pipeline.probe.judge import judge
from weighbridge.pipeline.probe.observation import Delivered, Observation
from weighbridge.pipeline.probe.prompt_count import PromptCount
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.pipeline.probe.step import all_steps
from weighbridge.pipeline.probe.usage import Reported, reported
from weighbridge.schemas.enumerations import Direction, EngineCounter, FinishReason, Verdict

STEPS = all_steps()
# What each part adds, by step; each prompt has a template of 20 tokens and 1 begin token beside its content.
PARTS: Mapping[str, Mapping[str, int]] = {
    "system": {"system": 45, "system_again": 45},
    "system_longer": {"system": 81, "system_again": 81},
    "tools": {"tools": 205},
    "tools_longer": {"tools": 241},
    "history": {"history": 85, "history_again": 85, "history_resent": 41},
    "history_longer": {"history": 121, "history_again": 121, "history_resent": 77},
    "history_again": {"history": 170, "history_again": 170, "history_resent": 167},
}
CONTENT = {name: 30 + 7 * at for at, name in enumerate(STEPS)}


def seen(
    name: str, told: int | None, *, engine: int | None = None, counted: bool = True, content: int | None = None
) -> Observation:
    """A step whose prompt counts its content, what its parts add, and 21."""
    step = STEPS[name]
    text = content if content is not None else CONTENT["plain" if step.same_prompt else name]
    total = text + 21 + max(PARTS.get(name, {"": 0}).values())
    return Observation(
        step=step,
        usage=Reported(told, 3, None, None, (), Verdict.ASSUMED, (), "openai_chat"),
        prompt=PromptCount(total, text, 20, 1, PARTS.get(name, {})) if counted else None,
        answer=Delivered(choices=1, of_choices=(3,), pieces=0, reasoning=0, finish=FinishReason.STOP, limit=16),
        engine=None if engine is None else EngineCount(engine, None, 3, 1),
    )


def right(name: str) -> int:
    """What should be told."""
    one = seen(name, 0).prompt
    assert one is not None
    assert one.total is not None
    return one.total


@given(st.dictionaries(st.sampled_from(sorted(STEPS)), st.integers(-50, 50), max_size=6))
def test_there_is_a_parting_exactly_where_something_is_off(off: dict[str, int]) -> None:
    found = judge([seen(name, right(name) + off.get(name, 0)) for name in STEPS])
    wrong = {name for name, amount in off.items() if amount and name != "reasoning"}
    assert bool(found) is bool(wrong)
    # The first step that is off is the first parting, and it states the whole of its difference.
    if wrong:
        first = next(name for name in STEPS if name in wrong)
        assert (found[0].step, found[0].difference, found[0].share) == (first, off[first], off[first])


@given(
    begin=st.sampled_from([0, 0, 1, -1]),
    system=st.sampled_from([0, 1, -1]),
    tools=st.sampled_from([0, -1]),
    history=st.sampled_from([0, 1, -1]),
)
def test_faults_that_come_together_are_told_apart(begin: int, system: int, tools: int, history: int) -> None:
    def told(name: str) -> int:
        parts = PARTS.get(name, {})
        more = begin + system * parts.get("system", 0) + tools * parts.get("tools", 0)
        return right(name) + more + history * parts.get("history", 0)

    found = [(one.step, one.cause.code, one.share) for one in judge([seen(name, told(name)) for name in STEPS])]
    expected = [("plain", "special_tokens", begin)] if begin else []
    for step, sign, twice, gone in (
        ("system", system, "system_counted_twice", "system_not_counted"),
        ("tools", tools, "", "tools_not_counted"),
        ("history", history, "history_duplicated", "history_not_counted"),
    ):
        if sign:
            expected.append((step, twice if sign > 0 else gone, sign * PARTS[step][step]))
    assert found == expected


def test_counts_beyond_what_a_column_holds_are_compared_exactly() -> None:
    huge = 2**63 + 1
    (one,) = judge([seen("plain", huge)])
    assert (one.cause.code, one.difference) == ("unexplained", huge - 51)
    (one,) = judge([seen("plain", -5)])
    assert (one.cause.code, one.difference) == ("unexplained", -56)


def test_a_prompt_that_is_counted_without_its_template_is_held_against_the_first_step() -> None:
    def bare(name: str, told: int) -> Observation:
        one = seen(name, told)
        assert one.prompt is not None
        return Observation(
            step=one.step, usage=one.usage, answer=one.answer, prompt=PromptCount(None, one.prompt.content, None, 1)
        )

    honest = [bare(name, right(name)) for name in STEPS]
    assert [case.against for case in usage_cases(honest, Direction.INPUT)][:2] == ["content", "content"]
    assert judge(honest[:7]) == []
    (one,) = judge([bare(name, right(name) + 6 * (name == "chinese")) for name in list(STEPS)[:7]])
    assert (one.step, one.cause.code, one.difference) == ("chinese", "tokenizer_version", 6)


def test_two_causes_that_explain_as_much_are_both_told() -> None:
    # Of one step alone, 20 tokens too few may be the template; the begin token and 20 more would be 21.
    (one,) = judge([seen("plain", 51 - 20)])
    assert (one.cause.code, one.confidence, one.alternatives) == ("template_not_applied", "probable", ())
    # The system message counted twice, or a history of the same length: only one of them is there.
    found = judge([seen("plain", 51), seen("system", right("system") + 45)])
    assert [(one.cause.code, one.alternatives) for one in found] == [("system_counted_twice", ())]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.text(max_size=4) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "usage choices message delta content text output response type index prompt_tokens total_tokens "
                "completion_tokens prompt_tokens_details cached_tokens tool_calls finish_reason status".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(api=st.sampled_from(sorted(all_apis())), events=st.lists(_JSON, max_size=3), streamed=st.booleans())
def test_whatever_an_endpoint_sends_is_read_or_left_unread_and_never_a_crash(
    api: str, events: list[Any], streamed: bool
) -> None:
    spoken = all_apis()[api]
    body = next((event for event in events if isinstance(event, dict)), {})
    answered = Answered(None, tuple(events), {}) if streamed else Answered(body, None, {})
    usage = reported(answered, "unknown", spoken.dialect, "m")
    assert usage.verdict in set(Verdict)
    answer = delivered(answered, spoken, STEPS["plain"].ask(prompts()), 16, None)
    assert answer.choices >= 1
    judge([Observation(step=STEPS["plain"], usage=usage, prompt=None, answer=answer)])


def _page(values: Sequence[tuple[str, object]]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values)


def test_counters_of_another_model_do_not_count_and_a_restart_is_no_difference() -> None:
    label = 'vllm:prompt_tokens_total{model_name="%s"}'
    before = counters(_page([(label % "m", 10), (label % "other", 99)]), "m")
    assert before.values == {EngineCounter.PROMPT_TOKENS: 10}
    assert counters(_page([(label % "a", 10), (label % "b", 99)]), "m").values == {EngineCounter.PROMPT_TOKENS: 109}
    after = counters(_page([(label % "m", 61)]), "m")
    assert between(before, after) == EngineCount(51, None, None, None)
    assert between(after, before) is None


def test_llama_cpp_counts_what_it_computed_and_cached_tokens_are_added() -> None:
    names = ("llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total")
    before, after = (counters(_page(list(zip(names, pair, strict=True))), "m") for pair in ((100, 10), (103, 13)))
    moved = between(before, after)
    assert moved == EngineCount(None, 3, 3, None)
    cached = Reported(51, 3, 48, None, (), Verdict.ASSUMED, (), "openai_chat")
    one = seen("plain", 51)
    again = Observation(step=one.step, usage=cached, prompt=one.prompt, answer=one.answer, engine=moved)
    assert again.computed(Direction.INPUT) == 51
    assert judge([again]) == []
