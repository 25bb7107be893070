"""The second reader itself: its sums by hand, and that a product which reads otherwise would be noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.pipeline.ingest.second_reader.compare import agree, readings
from tests.pipeline.ingest.second_reader.meaning import BOTH, Convention, Meaning, Told, meanings
from tests.pipeline.ingest.second_reader.reader import has_tokens, shape_of, understood

from weighbridge.schemas.enumerations import Verdict


def test_a_total_leaves_one_of_two_meanings() -> None:
    inside = Meaning(fresh=86, read=17817, written=0, visible=40, thought=0, input_total=17903, output_total=40)
    assert meanings(Told(17903, 40, 17943, read=17817, thought=0)) == (inside, {inside})


def test_without_a_total_both_meanings_are_possible_and_the_documented_one_is_told() -> None:
    beside = Convention(cache_inside=False)
    documented, possible = meanings(Told(100, 7, read=60, thought=0, documented=beside))
    assert documented == Meaning(100, 60, 0, 7, 0, 160, 7)
    assert possible == {documented, Meaning(40, 60, 0, 7, 0, 100, 7)}


def test_a_documented_meaning_that_the_numbers_refute_gives_way_to_the_only_one_left() -> None:
    only = Meaning(fresh=12, read=0, written=0, visible=1, thought=290, input_total=12, output_total=291)
    assert meanings(Told(12, 1, 303, thought=290)) == (only, {only})


def test_thoughts_that_show_in_the_total_alone_are_what_is_left_of_it() -> None:
    only = Meaning(fresh=35, read=0, written=0, visible=12, thought=62, input_total=35, output_total=74)
    assert meanings(Told(35, 12, 109, documented=Convention(thought_inside=False))) == (only, {only})


def test_a_tool_prompt_is_tried_inside_and_beside_the_prompt() -> None:
    told = Told(80, 173, 550, thought=60, tool=237, tools=BOTH, documented=Convention(thought_inside=False))
    only = Meaning(fresh=317, read=0, written=0, visible=173, thought=60, input_total=317, output_total=233)
    assert meanings(told) == (only, {only})


def test_a_total_that_counts_the_cache_twice_is_a_meaning_where_that_is_conceivable() -> None:
    beside = Meaning(fresh=4995, read=0, written=4993, visible=None, thought=None, input_total=9988, output_total=19)
    told = Told(4995, 19, 10007, written=4993, documented=Convention(cache_inside=False))
    assert meanings(told) == (beside, {beside})
    twice = Meaning(fresh=2, read=0, written=4993, visible=None, thought=None, input_total=4995, output_total=19)
    assert meanings(told._replace(twice=BOTH, documented=Convention(cache_twice=True))) == (twice, {beside, twice})


def test_numbers_that_fit_no_meaning_have_none() -> None:
    assert meanings(Told(10, 5, 99, read=3, thought=0)) == (None, set())
    assert meanings(Told(10, 5, 15, read=11, thought=0)) == (None, set())
    assert meanings(Told(10, 5, 15, read=3, thought=0, fresh=8)) == (None, set())


RECORD: dict[str, Any] = {
    "id": "r_made",
    "provider": "openai",
    "api_flavor": "openai_chat",
    "model": "m",
    "meta_headers": {},
    "response": {
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": 20,
            "total_tokens": 70,
            "prompt_tokens_details": {"cached_tokens": 30},
            "completion_tokens_details": {"reasoning_tokens": 8},
        }
    },
}


def test_two_readers_agree_on_an_answer() -> None:
    (usage,) = shape_of(RECORD).calls(RECORD)
    assert usage is not None
    assert has_tokens(usage)
    assert understood(RECORD, usage)[0] == Meaning(20, 30, 0, 12, 8, 50, 20)
    agree(RECORD, usage, readings(RECORD)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": Verdict.ASSUMED},
        {"total": 71},
        {"input_total": 80},
        {"reported_total": None},
        {"counts": {"cache_read": 29}},
        {"counts": {"input_uncached": None}},
        {"counts": {"reasoning": 0, "output_visible": 20}},
    ],
)
def test_a_reading_with_any_other_figure_is_not_agreed_on(change: dict[str, Any]) -> None:
    (usage,), (reading,) = shape_of(RECORD).calls(RECORD), readings(RECORD)
    assert usage is not None
    changed = {**change, "counts": {**reading.counts, **change.get("counts", {})}}
    with pytest.raises(AssertionError):
        agree(RECORD, usage, replace(reading, **changed))
