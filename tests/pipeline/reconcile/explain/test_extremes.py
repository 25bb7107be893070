"""Figures no attempt can have: nothing is multiplied or added up beyond 64 bits, so nothing wraps around to a gap."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, SEGMENT, Core, World, key

MOST_32 = 2**31 - 1


def _choices(world: World) -> None:
    """2^31 - 1 prompts of 8,589,934,597 tokens are 2^64 + 2,147,483,643 tokens: not the ones that were reported."""
    observed = 8_589_934_597
    world.attempt(1, input_computed=observed, n=MOST_32)
    world.reading(1, input_total=MOST_32 * observed - 2**64)
    world.attempt(2, input_computed=1203, n=3)
    world.reading(2, input_total=401)


def _messages(world: World) -> None:
    """2^39 a message: 2^31 - 1 of them are 2^70 - 2^39 tokens, of which 64 bits would hold -2^39, just the gap."""
    rows = ((1, 1, 1, 2**39 + 1), (2, 2, 1, 2**40 + 1), (3, MOST_32, 2**39 + 1, 1))
    for number, messages, recounted, reported in rows:
        world.attempt(number, messages=messages, input_recounted=recounted, provider="vllm",
                      recount_has_template=False, template="tpl-1")  # fmt: skip
        world.reading(number, input_total=reported, provider="vllm")


def _child(world: World, number: int, child: int, tokens: int) -> None:
    hi, lo = key(number)
    own = {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": "agent", "segment": SEGMENT, "revision": 0}
    world.add("child", {**own, "child": child, "kind": "iteration", "input_computed": tokens})


def _iterations(world: World) -> None:
    """Calls inside an answer with 2^63 - 1 tokens each, which nothing can add up; 30 of one that is plausible."""
    for number, sizes in ((1, (2**63 - 1, 2**63 - 1)), (2, (30,))):
        world.attempt(number, input_computed=100)
        world.reading(number, input_total=70)
        for child, tokens in enumerate(sizes, start=1):
            _child(world, number, child, tokens)


EXPECTED: dict[Callable[[World], None], list[tuple[int, str, int]]] = {
    _choices: [(2, "parallel_choices", -802)],
    _messages: [],
    _iterations: [(2, "iterations_left_out", -30)],
}


@pytest.mark.parametrize("build", EXPECTED, ids=lambda each: each.__name__.strip("_"))
def test_figures_no_attempt_can_have_explain_nothing(
    world: World, polars_core: Core, build: Callable[[World], None]
) -> None:
    """They neither end the run nor wrap around to an amount; what stands beside them is explained."""
    build(world)
    outcomes, parts = polars_core.weighed(world)
    told = parts.filter(pl.col("direction") == "input").sort("attempt_lo").select("attempt_lo", "cause", "tokens")
    assert [(lo & 0xFFFF, cause, tokens) for lo, cause, tokens in told.rows()] == EXPECTED[build]
    compared = outcomes.drop_nulls("gap")
    assert (compared["explained"] + compared["residual"]).to_list() == compared["gap"].to_list()
