"""Learning what a chat template adds, in whole numbers, from the gaps of its own cell."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import Core, World

# Of a provider whose templates nobody published, so that there is nothing but the gaps themselves to learn from.
BARE: dict[str, Any] = {"recount_has_template": False, "template": "tpl-1", "provider": "vllm"}


def teach(world: World, *attempts: tuple[int | None, int, int], **columns: Any) -> None:
    """Attempts as (messages, recounted, reported)."""
    for number, (messages, recounted, reported) in enumerate(attempts, start=1):
        world.attempt(number, messages=messages, input_recounted=recounted, **{**BARE, **columns})
        world.reading(number, input_total=reported, provider="vllm")


def explained(core: Core, world: World) -> list[int | None]:
    """What the template explains of each attempt's input, in their order; and nothing else explains anything."""
    outcomes, parts = core.weighed(world)
    assert set(parts["cause"]) <= {"template_not_applied"}
    own = parts.select("attempt_lo", "tokens")
    joined = outcomes.filter(pl.col("direction") == "input").join(own, on="attempt_lo", how="left").sort("attempt_lo")
    return joined["tokens"].to_list()


def test_per_request_and_per_message_are_learnt_for_each_model(world: World, polars_core: Core) -> None:
    """10 + 4 + 3 = 17, 20 + 8 + 3 = 31, 50 + 20 + 3 = 73: 4 a message and 3 a request, not the published 3 and 3."""
    teach(world, (1, 10, 17), (2, 20, 31), (5, 50, 73))
    assert explained(polars_core, world) == [7, 11, 23]
    outcomes, parts = polars_core.weighed(world)
    assert parts["confidence"].to_list() == ["probable"] * 3
    assert outcomes.filter(pl.col("direction") == "input")["status"].to_list() == ["EXPLAINED"] * 3


def test_two_attempts_teach_nothing(world: World, polars_core: Core) -> None:
    """Two points always lie on a line."""
    teach(world, (1, 10, 17), (2, 20, 31))
    assert explained(polars_core, world) == [None, None]


def test_without_a_strict_majority_nothing_is_learnt(world: World, polars_core: Core) -> None:
    """Three of six agree on 7; that is no majority. A seventh that agrees makes one."""
    rows = [*[(1, 10, 17)] * 3, (1, 10, 12), (1, 10, 15), (1, 10, 19)]
    teach(world, *rows)
    assert explained(polars_core, world) == [None] * 6
    world.attempt(7, messages=1, input_recounted=30, **BARE)
    world.reading(7, input_total=37, provider="vllm")
    assert explained(polars_core, world) == [7, 7, 7, None, None, None, 7]


def test_attempts_that_match_without_a_template_are_part_of_the_vote(world: World, polars_core: Core) -> None:
    """Where most recounts agree with usage there is nothing to learn from the few that do not."""
    teach(world, (1, 10, 10), (1, 11, 11), (1, 12, 12), (1, 13, 13), (1, 10, 17), (1, 10, 17), (1, 10, 17))
    assert explained(polars_core, world) == [None] * 7


def test_a_constant_is_learnt_where_the_messages_are_not_known(world: World, polars_core: Core) -> None:
    """Then the template is what every request has more."""
    teach(world, (None, 10, 17), (None, 20, 27), (None, 50, 57))
    assert explained(polars_core, world) == [7, 7, 7]


@pytest.mark.parametrize(
    ("column", "other"), [("template", "tpl-2"), ("model_served", "m-2"), ("recount_has_template", True)]
)
def test_a_cell_is_one_model_and_one_template(column: str, other: object, world: World, polars_core: Core) -> None:
    """Two attempts here and one there do not teach one another."""
    teach(world, (1, 10, 17), (2, 20, 31))
    world.attempt(3, messages=5, input_recounted=50, **{**BARE, column: other})
    world.reading(3, input_total=73, provider="vllm")
    assert explained(polars_core, world) == [None] * 3


def test_a_template_never_takes_tokens_away(world: World, polars_core: Core) -> None:
    """Recounts that are all too high by one are no template of -1."""
    teach(world, (1, 10, 9), (1, 20, 19), (1, 30, 29))
    assert explained(polars_core, world) == [None] * 3


def test_an_odd_one_out_stays_unexplained(world: World, polars_core: Core) -> None:
    """What most agree on is not forced onto the one that disagrees."""
    teach(world, (1, 10, 17), (2, 20, 31), (5, 50, 73), (3, 30, 46))
    assert explained(polars_core, world) == [7, 11, 23, None]
