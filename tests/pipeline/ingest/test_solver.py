"""The identity solver on figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weighbridge.pipeline.ingest.dialect import Role
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.pipeline.ingest.known import Figures
from weighbridge.pipeline.ingest.outcome import words
from weighbridge.pipeline.ingest.solver import solve
from weighbridge.pipeline.ingest.solver_frame import CELLS, INPUTS, OUTPUTS
from weighbridge.schemas.enumerations import Verdict


def solved(name: str, provider: str, figures: dict[str, int], *, stale: bool = False) -> dict[str, Any]:
    dialect = dialect_for(provider, name)
    assert dialect is not None
    solution = solve(dialect, provider, Figures({Role(role): count for role, count in figures.items()}, stale))
    verdict, reason, rule, flags = words(dialect, solution.code)
    return {
        **dict(zip((*INPUTS, *OUTPUTS), solution.classes, strict=True)),
        **dict(zip(CELLS, solution.cells, strict=True)),
        "input_total": solution.input_total,
        "output_total": solution.output_total,
        "total": solution.total,
        "verdict": verdict,
        "reason": reason,
        "rule": rule,
        "flags": flags,
    }


def openai(**figures: int) -> dict[str, Any]:
    return solved("openai_chat", "openai", figures)


def azure(**figures: int) -> dict[str, Any]:
    return solved("openai_chat", "azure", figures)


def anthropic(*, stale: bool = False, **figures: int) -> dict[str, Any]:
    return solved("anthropic_messages", "anthropic", figures, stale=stale)


def gemini(**figures: int) -> dict[str, Any]:
    return solved("gemini_generate_content", "google", figures)


def declared(**figures: int) -> dict[str, Any]:
    return solved("declared", "anyone", figures)


def test_the_total_proves_that_cached_tokens_are_inside_the_prompt() -> None:
    """17,903 + 40 = 17,943; with the cached 17,817 beside the prompt it would be 35,760."""
    read = openai(input=17903, cache_read=17817, output=40, total=17943)
    assert read["verdict"] is Verdict.PROVED
    assert read["reason"] == "one reading fits the reported total"
    assert read["rule"] == "input_includes_cache=yes; output_includes_reasoning=yes"
    assert (read["input_uncached"], read["cache_read"], read["input_total"]) == (86, 17817, 17903)
    assert (read["output_visible"], read["reasoning"], read["total"]) == (40, 0, 17943)
    assert read["flags"] == ()


def test_a_write_and_a_read_inside_the_prompt() -> None:
    """2,600 = 2,000 read + 400 written + 200; OpenAI does not say how long a write lives."""
    read = openai(input=2600, cache_read=2000, cache_write=400, output=10, total=2610)
    assert (read["input_uncached"], read["cache_read"], read["cache_write_unknown"]) == (200, 2000, 400)
    assert (read["cache_write_5m"], read["cache_write_1h"]) == (0, 0)


def test_the_total_can_refute_the_declared_convention() -> None:
    """12 + 1 + 290 = 303: reasoning beside the output, although the convention says inside."""
    read = openai(input=12, output=1, reasoning=290, total=303)
    assert read["verdict"] is Verdict.PROVED
    assert (read["output_visible"], read["reasoning"], read["output_total"]) == (1, 290, 291)
    assert read["rule"] == "input_includes_cache=yes; output_includes_reasoning=no"
    assert read["flags"] == ("convention_refuted",)


def test_without_a_total_several_readings_fit_and_the_convention_decides() -> None:
    read = openai(input=100, cache_read=40, output=10)
    assert read["verdict"] is Verdict.ASSUMED
    assert (read["input_total"], read["input_uncached"], read["total"]) == (100, 60, 110)


def test_readings_with_equal_counts_are_one() -> None:
    read = openai(input=100, cache_read=0, output=10, reasoning=0)
    assert read["verdict"] is Verdict.PROVED
    assert read["reason"] == "every conceivable reading gives these counts"


def test_two_undeclared_readings_that_fit_decide_nothing() -> None:
    """100 + 50 + 7: the cached 7 beside the input, or the reasoning 7 beside the output, and the total fits both."""
    read = openai(input=100, cache_read=7, output=50, reasoning=7, total=157)
    assert read["verdict"] is Verdict.CONTRADICTORY
    assert read["reason"].startswith("several readings fit with different counts, the declared convention is not among")
    assert read["input_total"] is None
    assert "total_mismatch" in read["flags"]


@pytest.mark.parametrize(
    ("figures", "flag", "words_of_it"),
    [
        ({"input": 10, "output": 5, "total": 20}, "total_mismatch", "do not add up to the reported total"),
        ({"input": 10, "cache_read": 11, "output": 5, "total": 15}, "cached_exceeds_input", "cached tokens exceed"),
        (
            {"input": 10, "output": 5, "reasoning": 6, "total": 15},
            "reasoning_exceeds_output",
            "reasoning tokens exceed",
        ),
        ({"input": 10, "output": -5, "total": 5}, "negative_count", "a count is negative"),
        ({"input": 10, "input_audio": 11, "output": 5, "total": 15}, "modality_exceeds_count", "tokens of a modality"),
    ],
)
def test_what_breaks_a_law_is_contradictory_and_counts_nothing(
    figures: dict[str, int], flag: str, words_of_it: str
) -> None:
    read = openai(**figures)
    assert read["verdict"] is Verdict.CONTRADICTORY
    assert flag in read["flags"]
    assert words_of_it in read["reason"]
    assert all(read[name] is None for name in (*INPUTS, *OUTPUTS, *CELLS, "input_total", "output_total", "total"))


def test_no_count_at_all_is_unknown_not_zero() -> None:
    read = openai()
    assert (read["verdict"], read["flags"], read["input_total"]) == (Verdict.UNKNOWN, ("usage_missing",), None)


def test_azure_without_details_proves_the_totals_and_leaves_the_split_unknown() -> None:
    read = azure(input=100, output=20, total=120)
    assert read["verdict"] is Verdict.PROVED
    assert (read["input_total"], read["output_total"], read["total"]) == (100, 20, 120)
    assert [read[name] for name in ("input_uncached", "cache_read", "output_visible", "reasoning")] == [None] * 4
    assert read["cache_write_5m"] == 0
    assert read["flags"] == ("cache_detail_missing",)


def test_azure_with_details_reads_their_missing_siblings_as_zero() -> None:
    read = azure(input=100, cache_read=60, output=20, reasoning=5, total=120)
    assert (read["input_uncached"], read["cache_read"], read["cache_write_unknown"]) == (40, 60, 0)
    assert (read["output_visible"], read["reasoning"], read["output_visible_audio"]) == (15, 5, 0)
    assert read["flags"] == ()


def test_an_unknown_split_of_nothing_is_zero() -> None:
    read = azure(input=0, output=0, total=0)
    assert all(read[name] == 0 for name in (*INPUTS, *OUTPUTS))


def test_anthropic_input_smaller_than_its_reads_proves_the_exclusive_reading() -> None:
    """56,322 - 72,960 would be negative, so the reads stand beside the input."""
    read = anthropic(input=56322, cache_write=0, cache_read=72960, output=87, reasoning=0)
    assert read["verdict"] is Verdict.PROVED
    assert (read["input_total"], read["input_uncached"], read["total"]) == (129282, 56322, 129369)


def test_anthropic_input_larger_than_its_reads_is_assumed() -> None:
    read = anthropic(input=41200, cache_write=0, cache_read=38000, output=300)
    assert read["verdict"] is Verdict.ASSUMED
    assert (read["input_total"], read["input_uncached"]) == (79200, 41200)
    assert (read["output_total"], read["output_visible"], read["reasoning"]) == (300, None, None)


def test_a_lifetime_split_beats_a_smaller_creation() -> None:
    read = anthropic(input=10, cache_write=0, cache_write_5m=0, cache_write_1h=1000, output=20)
    assert (read["cache_write_1h"], read["cache_write_unknown"], read["input_total"]) == (1000, 0, 1010)
    assert read["verdict"] is Verdict.ASSUMED
    assert read["flags"] == ("ttl_split_exceeds_creation",)


def test_a_creation_beyond_its_split_leaves_a_remainder_of_unknown_lifetime() -> None:
    read = anthropic(input=6, cache_write=3337, cache_write_5m=3068, cache_write_1h=0, cache_read=6289, output=1)
    assert (read["cache_write_5m"], read["cache_write_unknown"]) == (3068, 269)
    assert read["flags"] == ("ttl_split_incomplete",)


def test_a_creation_revised_below_its_old_split_is_all_of_unknown_lifetime() -> None:
    read = anthropic(stale=True, input=6, cache_write=50, cache_write_5m=80, cache_write_1h=20, output=1)
    assert [read[name] for name in INPUTS[2:]] == [0, 0, 50]
    assert read["input_total"] == 56
    assert read["flags"] == ("ttl_split_stale",)


def test_a_creation_without_a_split_has_no_lifetime() -> None:
    read = anthropic(input=6, cache_write=50, output=1)
    assert [read[name] for name in INPUTS[2:]] == [0, 0, 50]
    assert read["flags"] == ()


def test_gemini_adds_thoughts_and_the_tool_prompt() -> None:
    """80 + 237 = 317 in, 173 + 60 = 233 out, together 550."""
    read = gemini(input=80, tool_prompt=237, output=173, reasoning=60, total=550)
    assert read["verdict"] is Verdict.PROVED
    assert (read["input_uncached"], read["input_total"]) == (317, 317)
    assert (read["output_visible"], read["reasoning"], read["output_total"]) == (173, 60, 233)


def test_gemini_thoughts_inside_the_candidates_are_read_where_the_total_says_so() -> None:
    read = gemini(input=80, output=173, reasoning=60, total=253)
    assert (read["output_visible"], read["reasoning"], read["output_total"]) == (113, 60, 173)
    assert read["flags"] == ("convention_refuted",)


def test_gemini_leaves_zeros_out() -> None:
    read = gemini(input=27, total=27)
    assert read["verdict"] is Verdict.PROVED
    assert (read["output_total"], read["cache_read"], read["reasoning"]) == (0, 0, 0)


def test_audio_is_inside_its_class() -> None:
    read = openai(
        input=15, cache_read=0, input_text=15, input_audio=0, output=47, reasoning=0, output_text=13, output_audio=34,
        total=62,
    )  # fmt: skip
    assert (read["output_visible"], read["output_visible_audio"]) == (47, 34)
    assert (read["input_uncached"], read["input_uncached_audio"]) == (15, 0)


def test_audio_and_cached_tokens_that_overlap_somehow_leave_the_cells_unknown() -> None:
    """Of 100 prompt tokens 40 are audio and 30 are cached; how many of the 40 are among the 30 is not said."""
    read = openai(input=100, cache_read=30, input_audio=40, output=5, total=105)
    assert (read["input_uncached"], read["cache_read"]) == (70, 30)
    assert (read["input_uncached_audio"], read["cache_read_audio"]) == (None, None)
    assert (read["input_uncached_image"], read["cache_read_image"]) == (0, 0)


def test_a_detail_of_the_overlap_settles_the_cells() -> None:
    read = openai(input=100, cache_read=30, input_audio=40, cached_audio=10, output=5, total=105)
    assert (read["input_uncached_audio"], read["cache_read_audio"]) == (30, 10)


def test_nothing_cached_or_everything_cached_settles_the_cells() -> None:
    fresh = openai(input=100, cache_read=0, input_audio=40, output=5, total=105)
    assert (fresh["input_uncached_audio"], fresh["cache_read_audio"]) == (40, 0)
    cached = openai(input=100, cache_read=100, input_audio=40, output=5, total=105)
    assert (cached["input_uncached_audio"], cached["cache_read_audio"]) == (0, 40)


def test_a_cache_write_may_hold_some_of_the_audio() -> None:
    read = openai(input=100, cache_read=0, cache_write=50, input_audio=40, output=5, total=105)
    assert (read["input_uncached_audio"], read["cache_read_audio"]) == (None, 0)


def test_gemini_modalities_of_cache_and_tool_prompt() -> None:
    """Audio: 30 in the prompt, 10 in the tool prompt, 25 of them cached; 15 are new."""
    read = gemini(
        input=100, input_text=70, input_audio=30, tool_prompt=12, tool_text=2, tool_audio=10, cache_read=60,
        cached_text=35, cached_audio=25, output=5, output_text=5, total=117,
    )  # fmt: skip
    assert (read["input_uncached"], read["cache_read"]) == (52, 60)
    assert (read["input_uncached_audio"], read["cache_read_audio"]) == (15, 25)
    assert read["flags"] == ()


def test_image_details_that_do_not_sum_are_kept_and_the_rest_is_text() -> None:
    read = gemini(input=14, input_text=14, output=1283, output_image=1120, reasoning=174, total=1471)
    assert (read["output_visible"], read["output_visible_image"]) == (1283, 1120)
    assert read["flags"] == ("modality_details_incomplete",)


def test_a_text_row_of_zero_beside_image_tokens_is_a_breakdown_and_all_zeros_are_not() -> None:
    assert openai(input=80, input_text=0, input_image=80, output=1, total=81)["flags"] == ()
    assert openai(input=90, input_text=0, input_image=80, output=1, total=91)["flags"] == (
        "modality_details_incomplete",
    )
    assert openai(input=90, input_text=0, input_image=0, output=1, total=91)["flags"] == ()


def test_text_rows_beyond_the_count_do_not_shift_the_audio() -> None:
    """A live session lists 608 text tokens of its history beside a prompt of 25 audio tokens."""
    read = gemini(input=25, input_text=608, input_audio=25, output=25, output_audio=25, total=50)
    assert (read["input_uncached"], read["input_uncached_audio"]) == (25, 25)
    assert read["verdict"] is Verdict.PROVED
    assert read["flags"] == ("modality_details_incomplete",)


def test_declared_totals_alone_leave_the_split_unknown() -> None:
    read = declared(input=4808, output=10)
    assert (read["verdict"], read["total"]) == (Verdict.PROVED, 4818)
    assert (read["input_uncached"], read["output_visible"]) == (None, None)
    assert read["reason"].startswith("the counts are stated outright; how the input splits is not reported")


def test_declared_classes_add_up_to_their_totals() -> None:
    read = declared(
        input_uncached=50, cache_read=150, cache_write_5m=0, cache_write_1h=0, cache_write_unknown=0,
        output_visible=30, reasoning=10,
    )  # fmt: skip
    assert (read["input_total"], read["output_total"], read["total"]) == (200, 40, 240)


def test_one_declared_class_that_is_left_out_is_what_is_left() -> None:
    read = declared(input=200, cache_read=150, output=40, reasoning=10)
    assert (read["output_visible"], read["input_uncached"]) == (30, None)
    full = declared(input=200, cache_read=150, input_uncached=50, output=40)
    assert [full[name] for name in INPUTS] == [50, 150, 0, 0, 0]


def test_declared_parts_beyond_their_total_are_contradictory() -> None:
    read = declared(input=200, cache_read=150, input_uncached=60, output=40)
    assert (read["verdict"], read["flags"]) == (Verdict.CONTRADICTORY, ("parts_mismatch",))


def test_a_missing_side_follows_from_the_total() -> None:
    assert declared(input=200, total=240)["output_total"] == 40
    assert declared(total=240)["total"] == 240
    assert declared(input=200, total=190)["verdict"] is Verdict.CONTRADICTORY


def test_a_total_that_counts_the_cached_tokens_twice_can_be_proved() -> None:
    """Input 100 with 30 read inside it, output 10, and a total of 140 = 100 + 10 + 30."""
    dialect = replace(
        all_dialects()["openai_chat"],
        axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.TOTAL_COUNTS_CACHE_TWICE: (False, True)},
    )
    figures = {Role.INPUT: 100, Role.CACHE_READ: 30, Role.OUTPUT: 10, Role.TOTAL: 140}
    solution = solve(dialect, "openai", Figures(figures))
    verdict, _, rule, flags = words(dialect, solution.code)
    assert (verdict, solution.input_total, solution.total) == (Verdict.PROVED, 100, 110)
    assert solution.classes[:2] == (70, 30)
    assert rule == "input_includes_cache=yes; total_counts_cache_twice=yes"
    assert flags == ("convention_refuted", "total_double_counts_cache")
