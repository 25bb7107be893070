"""The search for the smallest exact explanation: alone, in pairs, all together, ambiguous, and not at all."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, Core, World


def explained(core: Core, world: World, direction: str) -> tuple[dict[str, int], int, str | None]:
    """The causes of the only attempt in one direction, their residual and confidence."""
    outcomes, parts = (frame.filter(pl.col("direction") == direction) for frame in core.weighed(world))
    tokens = dict(parts.select("cause", "tokens").iter_rows())
    return tokens, outcomes["residual"].item(), outcomes["confidence"].item()


def told(core: Core, world: World, column: str) -> list[Any]:
    """A column of the parts of gaps."""
    return core.weighed(world)[1][column].to_list()


# One fault each: columns of the attempt, columns of the reading, the cause and its tokens.
Fault = tuple[str, dict[str, Any], dict[str, Any], dict[str, int]]
G3: dict[str, Any] = {"recount_special": 2, "recount_template": 9}
IN, OUT = "input", "output"


def cached(total: int, **classes: int) -> dict[str, Any]:
    """A report that names 300 cached tokens."""
    return {"input_total": total, "cache_read": 300, **classes}


def reasoned(total: int) -> dict[str, Any]:
    """A report that names 30 tokens of reasoning."""
    return {"output_total": total, "reasoning": 30}


ALONE: dict[str, Fault] = {
    "cache left out": (IN, {"input_computed": 900}, cached(600), {"cache_convention": -300}),
    "cache put in": (IN, {"input_computed": 900}, cached(1200), {"cache_convention": 300}),
    "read and write left out": (
        IN,
        {"input_computed": 900},
        cached(550, cache_write_5m=20, cache_write_1h=30),
        {"cache_convention": -350},
    ),
    "cache left out, the engine knows": (
        IN,
        {"input_computed": 900, "cached_local": 256, "cached_external": 64},
        {"input_total": 580},
        {"cache_convention": -320},
    ),
    "special tokens": (
        IN,
        {"input_recounted": 100, "recount_special": 2, "recount_has_special": False},
        {"input_total": 102},
        {"special_tokens": 2},
    ),
    "template": (
        IN,
        {"input_recounted": 100, "recount_template": 9, "recount_has_template": True},
        {"input_total": 91},
        {"template_not_applied": -9},
    ),
    "reasoning": (OUT, {"output_computed": 80}, reasoned(50), {"reasoning_convention": -30}),
    "hidden reasoning": (OUT, {"output_recounted": 50}, reasoned(80), {"reasoning_not_delivered": 30}),
    "end token": (
        OUT,
        {"output_computed": 80, "withheld_end_token": 1},
        {"output_total": 79},
        {"end_token_convention": -1},
    ),
    "end token unseen": (
        OUT,
        {"output_recounted": 80, "finish_reason": "stop"},
        {"output_total": 81},
        {"end_token_convention": 1},
    ),
}
TOGETHER: dict[str, Fault] = {
    "special and template": (
        IN,
        {"input_recounted": 100, "recount_has_special": False, "recount_has_template": False, **G3},
        {"input_total": 111},
        {"special_tokens": 2, "template_not_applied": 9},
    ),
    "cache and template": (
        IN,
        {"input_recounted": 900, "recount_has_template": False, "recount_template": 9},
        cached(609),
        {"cache_convention": -300, "template_not_applied": 9},
    ),
    "cache and special": (
        IN,
        {"input_recounted": 900, "recount_has_special": True, "recount_special": 2},
        cached(598),
        {"cache_convention": -300, "special_tokens": -2},
    ),
    "cache, special and template": (
        IN,
        {"input_recounted": 900, "recount_has_special": False, "recount_has_template": False, **G3},
        cached(611),
        {"cache_convention": -300, "special_tokens": 2, "template_not_applied": 9},
    ),
    "reasoning and end token": (
        OUT,
        {"output_computed": 80, "withheld_end_token": 1},
        reasoned(49),
        {"end_token_convention": -1, "reasoning_convention": -30},
    ),
    "hidden reasoning and end token": (
        OUT,
        {"output_recounted": 50, "finish_reason": "stop"},
        reasoned(81),
        {"end_token_convention": 1, "reasoning_not_delivered": 30},
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_each_fault_alone_is_explained_to_the_last_token(name: str, world: World, polars_core: Core) -> None:
    """One fault, one cause, nothing left."""
    direction, attempt, reading, causes = ALONE[name]
    world.attempt(1, **attempt)
    world.reading(1, **reading)
    assert explained(polars_core, world, direction) == (causes, 0, "probable")


@pytest.mark.parametrize("name", TOGETHER)
def test_faults_that_occur_together_are_taken_apart(name: str, world: World, polars_core: Core) -> None:
    """Each gets its own exact part."""
    direction, attempt, reading, causes = TOGETHER[name]
    world.attempt(1, **attempt)
    world.reading(1, **reading)
    assert explained(polars_core, world, direction) == (causes, 0, "probable")


@pytest.mark.parametrize("name", [*ALONE, *TOGETHER])
def test_a_repeated_report_is_taken_off_before_any_other_cause(name: str, world: World, polars_core: Core) -> None:
    """The same faults under a report that came twice: the repetition is certain, the rest is as it was."""
    direction, attempt, reading, causes = {**ALONE, **TOGETHER}[name]
    total = reading[f"{direction}_total"]
    world.attempt(1, **attempt)
    world.reading(1, **reading)
    world.reading(1, **reading, report=1)
    assert explained(polars_core, world, direction) == ({**causes, "duplicate_report": total}, 0, "probable")


def test_one_token_off_and_nothing_is_explained(world: World, polars_core: Core) -> None:
    """There is no partial guess: the whole gap stays as the residual."""
    world.attempt(1, input_computed=900, cached_local=300)
    world.reading(1, input_total=601, cache_read=300)
    assert explained(polars_core, world, "input") == ({}, -299, "none")


def test_the_smaller_explanation_goes_before_the_earlier_one(world: World, polars_core: Core) -> None:
    """-7 is one template; cache and special tokens together make -7 too, but are two."""
    world.attempt(
        1,
        input_recounted=100,
        recount_special=2,
        recount_has_special=True,
        recount_template=7,
        recount_has_template=True,
    )
    world.reading(1, input_total=93, cache_read=5)
    assert explained(polars_core, world, "input") == ({"template_not_applied": -7}, 0, "probable")


def test_explanations_of_one_size_are_ambiguous_and_the_others_are_kept(world: World, polars_core: Core) -> None:
    """Two special tokens or two tokens of template: the first in the documented order is taken, and said so."""
    world.attempt(
        1,
        input_recounted=100,
        recount_special=2,
        recount_has_special=False,
        recount_template=2,
        recount_has_template=False,
    )
    world.reading(1, input_total=102)
    assert explained(polars_core, world, "input") == ({"special_tokens": 2}, 0, "ambiguous")
    assert told(polars_core, world, "alternatives") == ["template_not_applied"]


def test_pairs_of_one_size_are_kept_as_alternatives_too(world: World, polars_core: Core) -> None:
    """-3 is cache -5 with special +2, or cache -12 with template +9."""
    world.attempt(1, input_recounted=100, recount_has_special=False, recount_has_template=False, cached_local=12, **G3)
    world.reading(1, input_total=97, cache_read=5)
    causes = {"cache_convention": -5, "special_tokens": 2}
    assert explained(polars_core, world, "input") == (causes, 0, "ambiguous")
    assert told(polars_core, world, "alternatives") == ["cache_convention+template_not_applied"] * 2


def test_the_report_and_the_engine_agreeing_is_one_explanation(world: World, polars_core: Core) -> None:
    """The same amount offered twice by one cause is no ambiguity."""
    world.attempt(1, input_computed=900, cached_local=300)
    world.reading(1, input_total=600, cache_read=300)
    assert explained(polars_core, world, "input") == ({"cache_convention": -300}, 0, "probable")
    assert told(polars_core, world, "priced_as") == ["input_uncached"]


def test_a_recount_says_nothing_about_end_tokens_of_a_cut_answer(world: World, polars_core: Core) -> None:
    """An answer that hit its limit has no end token to count."""
    world.attempt(1, output_recounted=80, finish_reason="length")
    world.reading(1, output_total=81)
    assert explained(polars_core, world, "output") == ({}, 1, "none")


def test_end_tokens_are_one_per_choice_that_ended_by_itself(world: World, polars_core: Core) -> None:
    """Three choices, of which the children say that two came to their own end; a later revision counts."""
    world.attempt(1, output_recounted=80, n=3, finish_reason="stop")
    world.reading(1, output_total=82)
    child = {
        "attempt_hi": 1 << 32,
        "attempt_lo": 1,
        "day": DAY,
        "source": "agent",
        "kind": "choice",
        "revision": 0,
    }
    for number, reason in enumerate(["stop", "length", "length"], start=1):
        world.add("child", {**child, "child": number, "finish_reason": reason})
    world.add("child", {**child, "child": 2, "finish_reason": "tool_calls", "revision": 1})
    assert explained(polars_core, world, "output") == ({"end_token_convention": 2}, 0, "probable")


def test_without_children_every_choice_asked_for_is_taken_to_have_ended(world: World, polars_core: Core) -> None:
    """`n` choices of an attempt that stopped by itself."""
    world.attempt(1, output_recounted=80, n=3, finish_reason="stop")
    world.reading(1, output_total=83)
    assert explained(polars_core, world, "output") == ({"end_token_convention": 3}, 0, "probable")
