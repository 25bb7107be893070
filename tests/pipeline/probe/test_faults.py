"""Each fault of a server is found at its step, with its cause and the exact number. All counts are worked out by hand.

What the server (see `served`) makes of its prompts, in tokens:

    plain    51          the begin token, 8 + 31 of the message, 11 of what primes the answer
    longer   87          36 more words
    system   51 + 45     a frame of 10 ("system" is two letters longer than "user"), 35 of text
    tools    51 + 205    a frame of 9, 196 of JSON
    history  51 + 85     8 + 21 of the question, 13 + 43 of the answer
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.pipeline.probe.conftest import Probed

from weighbridge.pipeline.probe.result import ProbeResult
from weighbridge.pipeline.probe.step import all_steps

Found = tuple[str, str, str, int | None, int | None, int | None]


def _first(result: ProbeResult) -> Found:
    one = result.first
    assert one is not None
    return one.step, str(one.direction), one.cause.code, one.expected, one.observed, one.difference


@pytest.mark.parametrize(("recount", "engine"), [(False, False), (True, False), (True, True)])
def test_a_server_without_a_fault_is_consistent(probed: Probed, recount: bool, engine: bool) -> None:
    result = probed(with_recount=recount, with_engine=engine, stop_counted=4)
    assert result.verdict == "consistent"
    # The one convention there is: four tokens of the stop string are counted and not delivered.
    assert [one.cause.code for one in result.partings] == (["stop_trimmed"] if recount else [])
    assert result.left_out == {}
    assert result.sent == len(all_steps()) + 1  # one is sent twice


WITH_RECOUNT: list[tuple[dict[str, Any], Found]] = [
    ({"template": False}, ("plain", "input", "template_not_applied", 51, 31, -20)),
    ({"begin": 2}, ("plain", "input", "special_tokens", 51, 52, 1)),
    ({"begin": 0}, ("plain", "input", "special_tokens", 51, 50, -1)),
    ({"special_as_text": True}, ("special_tokens", "input", "special_tokens", 94, 116, 22)),
    ({"history": 2}, ("history", "input", "history_duplicated", 136, 221, 85)),
    # The prompt of the first turn, 1 + 8 + 21 + 11 tokens, is added to that of the second.
    ({"resent": True}, ("history", "input", "history_duplicated", 136, 177, 41)),
    ({"history": 0}, ("history", "input", "history_not_counted", 136, 51, -85)),
    ({"system": 2}, ("system", "input", "system_counted_twice", 96, 141, 45)),
    ({"system": 0}, ("system", "input", "system_not_counted", 96, 51, -45)),
    ({"tools": False}, ("tools", "input", "tools_not_counted", 256, 51, -205)),
    ({"summed": True}, ("stream", "input", "stream_merge", 51, 153, 102)),  # three pieces of one token each
    ({"silent": True}, ("stream", "input", "usage_missing", 51, None, -51)),
    ({"mute": True}, ("plain", "input", "usage_missing", 51, None, -51)),
    ({"cache": "out"}, ("repeat", "input", "cache_convention", 51, 3, -48)),  # three blocks of 16 were cached
    ({"cache": "twice"}, ("repeat", "input", "cache_convention", 51, 99, 48)),
    ({"reasoning": "out"}, ("reasoning", "output", "reasoning_convention", 6, 3, -3)),
    ({"choices": True}, ("choices", "input", "parallel_choices", 51, 102, 51)),
    ({"factor": Fraction(11, 10)}, ("plain", "input", "constant_factor", 51, 56, 5)),
    ({"factor": Fraction(9, 10)}, ("plain", "input", "constant_factor", 51, 45, -6)),
    ({"per_message": 1}, ("plain", "input", "template_version", 51, 52, 1)),
    ({"chinese": 2}, ("chinese", "input", "tokenizer_version", 104, 152, 48)),  # 24 letters
    ({"over": 3}, ("cut", "output", "over_cap", 1, 4, 3)),
]


@pytest.mark.parametrize(("faults", "expected"), WITH_RECOUNT, ids=str)
def test_a_fault_is_found_once_by_counting_again(probed: Probed, faults: dict[str, Any], expected: Found) -> None:
    result = probed(**faults)
    assert result.verdict == "parts"
    assert _first(result) == expected
    assert result.first is not None
    assert str(result.first.confidence) == ("certain" if expected[2] == "usage_missing" else "probable")
    assert result.first.alternatives == ()
    # At later steps the same fault is no parting of its own, save where usage did not come or other text is cut anew.
    found = [(one.direction, one.cause.code) for one in result.partings if str(one.severity) == "warning"]
    assert {code for _, code in found} == {expected[2]}
    assert len(set(found)) == len(found) or expected[2] == "usage_missing"


WITHOUT_RECOUNT: list[tuple[dict[str, Any], Found]] = [
    # 36 more words were added where they were counted twice, or not at all.
    ({"system": 2}, ("system_longer", "input", "system_counted_twice", 177, 213, 36)),
    ({"system": 0}, ("system_longer", "input", "system_not_counted", 87, 51, -36)),
    ({"tools": False}, ("tools_longer", "input", "tools_not_counted", 87, 51, -36)),
    ({"history": 2}, ("history_longer", "input", "history_duplicated", 257, 293, 36)),
    ({"history": 0}, ("history_longer", "input", "history_not_counted", 87, 51, -36)),
    ({"resent": True}, ("history_longer", "input", "history_duplicated", 213, 249, 36)),
    ({"summed": True}, ("stream", "input", "stream_merge", 51, 153, 102)),
    ({"silent": True}, ("stream", "input", "usage_missing", 51, None, -51)),
    ({"mute": True}, ("plain", "input", "usage_missing", None, None, None)),
    ({"cache": "out"}, ("repeat", "input", "cache_convention", 51, 3, -48)),
    ({"choices": True}, ("choices", "input", "parallel_choices", 51, 102, 51)),
    ({"over": 3}, ("cut", "output", "over_cap", 1, 4, 3)),
]


@pytest.mark.parametrize(("faults", "expected"), WITHOUT_RECOUNT, ids=str)
def test_a_fault_is_found_without_a_tokenizer_by_what_the_same_words_weigh_elsewhere(
    probed: Probed, faults: dict[str, Any], expected: Found
) -> None:
    result = probed(with_recount=False, **faults)
    assert result.verdict == "parts"
    assert _first(result) == expected


WITH_ENGINE: list[tuple[bool, dict[str, Any], str, Found]] = [
    (True, {"counter": 7}, "parts", ("plain", "input", "engine_counter", 51, 58, 7)),
    (False, {"counter": 7}, "consistent", ("plain", "input", "constant_offset", 58, 51, -7)),
    (False, {"cache": "out"}, "parts", ("repeat", "input", "cache_convention", 51, 3, -48)),
    (False, {"reasoning": "out"}, "parts", ("reasoning", "output", "reasoning_convention", 6, 3, -3)),
    (False, {"choices": True}, "parts", ("choices", "input", "parallel_choices", 51, 102, 51)),
    (False, {"engine_choices": True}, "consistent", ("choices", "input", "parallel_choices", 102, 51, -51)),
    (True, {"engine_choices": True}, "consistent", ("choices", "input", "parallel_choices", 51, 102, 51)),
    (False, {"factor": Fraction(11, 10)}, "parts", ("plain", "input", "constant_factor", 51, 56, 5)),
    (False, {"engine_end_token": 1}, "consistent", ("plain", "output", "end_token_convention", 4, 3, -1)),
]


@pytest.mark.parametrize(("recount", "faults", "verdict", "expected"), WITH_ENGINE, ids=str)
def test_a_fault_is_found_by_the_engines_counters(
    probed: Probed, recount: bool, faults: dict[str, Any], verdict: str, expected: Found
) -> None:
    steps = ["plain", "longer", "code", "repeat", "choices", "reasoning"]
    result = probed(with_recount=recount, with_engine=True, wanted={"steps": steps}, **faults)
    assert result.verdict == verdict
    assert _first(result) == expected


def test_the_end_token_is_a_convention_of_the_api_and_no_fault(probed: Probed) -> None:
    result = probed(end_token=1)
    assert result.verdict == "consistent"
    assert _first(result) == ("plain", "output", "end_token_convention", 3, 4, 1)
    # Both answers of two end by themselves; there it is two, and no new parting.
    assert [one.step for one in result.partings if one.cause.code == "end_token_convention"] == ["plain"]


def test_where_usage_and_engine_agree_both_part_from_the_recount(probed: Probed) -> None:
    wanted = {"steps": ["plain"]}
    result = probed(with_engine=True, wanted=wanted, end_token=1, engine_end_token=1)
    assert [(one.cause.code, [str(weight) for weight in one.weights]) for one in result.partings] == [
        ("end_token_convention", ["usage", "engine"])
    ]


def test_a_constant_prefix_is_a_convention(probed: Probed) -> None:
    result = probed(prefix=7)
    assert result.verdict == "consistent"
    assert _first(result) == ("plain", "input", "constant_offset", 51, 58, 7)


def test_reasoning_that_was_not_delivered_is_consistent_and_never_more(probed: Probed) -> None:
    result = probed(hidden=True)
    assert result.verdict == "consistent"
    assert _first(result) == ("reasoning", "output", "reasoning_not_delivered", 3, 6, 3)
    assert str(result.first.severity if result.first else "") == "info"


def test_two_faults_part_at_two_steps(probed: Probed) -> None:
    found = [one for one in probed(begin=2, tools=False).partings if str(one.severity) == "warning"]
    assert [(one.step, one.cause.code, one.difference, one.share) for one in found] == [
        ("plain", "special_tokens", 1, 1),
        ("tools", "tools_not_counted", -204, -205),
    ]


def test_a_stream_that_was_not_asked_for_usage_may_have_none(probed: Probed) -> None:
    result = probed()
    unasked = next(one for one in result.seen if one.name == "stream_unasked")
    assert unasked.usage.input is None
    assert result.partings == []


def test_a_server_that_ignores_the_number_of_answers_does_not_offer_it(probed: Probed) -> None:
    result = probed(one_answer=True)
    assert result.left_out == {"choices": "the server gives one answer, whatever is asked"}
    assert result.verdict == "consistent"


def test_what_a_server_refuses_is_left_out(probed: Probed) -> None:
    result = probed(refuse={"": 400, "reasoning_effort": 422, "stop": 500})
    assert result.left_out == {
        "empty": "the server does not offer it (status 400)",
        "reasoning": "the server does not offer it (status 422)",
        "stop_string": "the server failed at it (status 500)",
    }
    assert result.verdict == "consistent"


def test_a_request_of_somebody_else_disturbs_a_step_and_it_is_sent_again(probed: Probed) -> None:
    wanted = {"steps": ["plain", "longer"]}
    result = probed(with_engine=True, wanted=wanted, others=2)
    # Two of three tries of the first step: 51 + 9 tokens of 3 requests.
    assert result.sent == 4
    assert [(one.name, one.disturbed, one.engine and one.engine.input) for one in result.seen] == [
        ("plain", False, 51),
        ("longer", False, 87),
    ]
    busy = probed(with_engine=True, wanted=wanted, others=100)
    assert [(one.name, one.disturbed, one.engine) for one in busy.seen] == [
        ("plain", True, None),
        ("longer", True, None),
    ]
    assert busy.verdict == "consistent"
