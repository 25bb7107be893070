"""On which pairs a strategy acted, and that what it loses there is not diluted by those on which it did nothing."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from tests.pipeline.compare.sides import PRUNED, WHOLE, scored

from weighbridge.pipeline.compare.answer import Answer, Cost, Side
from weighbridge.pipeline.compare.comparison import Comparison, compare
from weighbridge.pipeline.compare.deed import deed
from weighbridge.pipeline.compare.effect import Evidence, evidence
from weighbridge.pipeline.compare.eviction import Visible
from weighbridge.pipeline.compare.found import findings
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.power import beforehand, least_margin, least_pairs
from weighbridge.pipeline.compare.told import told
from weighbridge.pipeline.compare.why import NOT_SHOWN, why, word
from weighbridge.schemas.enumerations import Judgement

DAY = date(2026, 3, 5)
GATE = Gate(margins={"score": 0.05})
ACTED = Cost(prompt_tokens=100, kv_written=200, kv_kept=100, kv_evicted=100, events=3)
IDLE = Cost(prompt_tokens=100, kv_written=100, kv_kept=100, kv_evicted=0, events=0)


def held(idle: int, acted: int, loss: float, gate: Gate = GATE) -> Comparison:
    """A strategy that loses so much on average where it acts, and nothing where it does not."""
    lost = np.random.default_rng(4).normal(loss, 0.08, acted)
    off = scored("dense", [0.8] * (idle + acted), Cost(kv_written=200, kv_kept=200, events=0))
    costs = [IDLE] * idle + [ACTED] * acted
    scores = [0.8] * idle + [0.8 - float(each) for each in lost]
    on = Side(
        name="limit",
        parameters={"kv_cache_limit": 56},
        answers={
            f"p{at}": Answer(pair=f"p{at}", ids=[at], score=score, cost=cost)
            for at, (score, cost) in enumerate(zip(scores, costs, strict=True))
        },
    )
    return compare(off, [on], gate)


def test_a_loss_where_it_acts_is_not_diluted_by_answers_it_left_alone() -> None:
    (each,) = (found := held(400, 100, 0.15)).strategies
    loss, _, high = each.losses["score"]
    assert loss == pytest.approx(0.03, abs=0.01)
    assert high is not None
    assert high < 0.05, "over the whole workload it is inside of the margin"
    assert each.touched["score"][0] == pytest.approx(0.15, abs=0.03)
    assert (each.judgement, each.acted, each.unshown, found.recommended) == (Judgement.WORSE, 100, 400, None)


def test_what_holds_on_both_is_not_worse() -> None:
    (each,) = (found := held(400, 150, 0.0)).strategies
    assert (each.judgement, found.recommended) == (Judgement.NOT_WORSE, "limit")
    assert "it acted on 150 of 550 pairs (told by state events), and 72 such pairs are the least" in why(found, each)


def test_too_few_pairs_it_acted_on_show_nothing_however_many_there_are() -> None:
    (each,) = (found := held(600, 50, 0.0)).strategies
    assert (each.judgement, word(each), found.recommended) == (Judgement.UNDECIDED, NOT_SHOWN, None)
    said = why(found, each)
    assert "it acted on 50 of 650 pairs" in said
    assert "a margin of 0.05 (score) takes at least 72 such pairs" in said
    assert "or tolerate 0.0" in said
    needs = told(found)["strategies"][0]["needs"]
    assert (needs["acted"]["have"], needs["acted"]["least"], needs["all"]["have"]) == (50, 72, 650)
    alone = held(600, 3, 0.0).strategies[0]
    assert (alone.judgement, word(alone)) == (Judgement.UNDECIDED, NOT_SHOWN)


def test_pairs_are_never_chosen_by_what_came_of_them() -> None:
    """Answers that differ where nothing was evicted are no such pairs, and equal ones where something was are."""
    off = scored("dense", [1.0] * 100)
    answers = {
        f"p{at}": Answer(pair=f"p{at}", ids=[at if at % 2 else 500], score=1.0, cost=ACTED if at < 40 else IDLE)
        for at in range(100)
    }
    (each,) = compare(off, [Side(name="s", answers=answers)], GATE).strategies
    assert each.acted == 40
    assert {pair.off.pair for pair in each.acted_on().pairs} == {f"p{at}" for at in range(40)}


def test_what_tells_where_it_acted_is_named() -> None:
    assert evidence([Answer(pair="p", ids=[], cost=IDLE)]) is Evidence.EVENTS
    assert evidence([Answer(pair="p", ids=[], cost=WHOLE)]) is Evidence.COUNTS
    assert evidence([Answer(pair="p", ids=[], cost=Cost(kv_written=4))]) is Evidence.NOTHING
    counted = compare(scored("dense", [1.0] * 80), [scored("s", [1.0] * 80, PRUNED)], GATE)
    assert "as no state events are at hand" in why(counted, counted.strategies[0])
    blind = compare(scored("dense", [1.0] * 80), [scored("s", [0.2] * 80, Cost())], GATE)
    assert blind.strategies[0].judgement is Judgement.WORSE, "worse answers need nobody to tell that it was on"
    assert "neither state events nor counts tell" in why(blind, blind.strategies[0])
    equal = compare(scored("dense", [1.0] * 80), [scored("s", [1.0] * 80, Cost())], GATE)
    assert equal.strategies[0].judgement is Judgement.NO_EFFECT


def test_the_finding_counts_both_kinds_of_pairs() -> None:
    found = {each.code: each for each in findings(held(30, 70, 0.0), DAY)}
    idle = found["strategy_had_no_effect"]
    assert (idle.rows, idle.expected, idle.observed, idle.difference) == (30, 100, 70, -30)


def test_state_events_speak_for_a_cause_and_that_only_the_parameter_does_is_said() -> None:
    found = held(10, 90, 0.4)
    seen = [
        Visible(f"p{at}", [0.0] * 10 + [1.0] * 30, [("system", 0, 10), ("user", 10, 30)], 3 if at < 60 else None)
        for at in range(90)
    ]
    (worse,) = [each for each in findings(found, DAY, (), {"limit": seen}) if each.code == "strategy_worse"]
    assert worse.cause == "context_evicted"
    assert "State events speak for this cause: 100% of the system prompt's KV entries were gone" in worse.cure
    assert "answers that part had lost 25% of their prompt, equal ones 25%" in worse.cure
    blind = compare(scored("dense", [1.0] * 80), [scored("s", [0.2] * 80, Cost(), parameters={"window": 8})], GATE)
    (worse,) = [each for each in findings(blind, DAY) if each.code == "strategy_worse"]
    assert worse.cause == "context_evicted"
    assert "Only the parameter speaks for this cause (window)" in worse.cure


def test_a_parameter_whose_work_was_not_done_is_no_cause() -> None:
    narrowed = Cost(attended=10, attended_dense=100, kv_evicted=0, kv_masked=0, events=1)
    both = {"kv_cache_limit": 500, "attention_topk": 4}
    found = compare(scored("dense", [1.0] * 80), [scored("s", [0.2] * 80, narrowed, parameters=both)], GATE)
    (worse,) = [each for each in findings(found, DAY) if each.code == "strategy_worse"]
    assert worse.cause == "attention_narrow"
    assert "10% of the keys of dense attention were read in 80 answers" in worse.cure
    idle = compare(scored("dense", [1.0] * 80), [scored("s", [0.2] * 80, IDLE, parameters=both)], GATE)
    assert "No state event shows" in deed(idle.strategies[0]).told


def test_what_a_margin_takes_is_told_before_anything_is_run() -> None:
    assert (least_pairs(0.02, 0.025), least_pairs(0.05, 0.025), least_pairs(0.1, 0.025)) == (183, 72, 36)
    assert least_margin(183, 0.025) <= 0.02 < least_margin(182, 0.025)
    short = beforehand(Gate(), 30, 1)
    assert short is not None
    assert "30 prompts are too few" in short
    assert "a margin of 0.02 (agreement) takes at least 183 on which it acts" in short
    assert "or tolerate 0.12" in short
    assert beforehand(Gate(), 183, 1) is None
    assert "at least 217" in (beforehand(Gate(), 183, 2) or ""), "two strategies share the chance of an error"
    assert beforehand(Gate(margins={"nll": 0.1}), 30, 1) is None, "a loss without a limit has no such number"


def test_a_loss_reaches_as_far_as_so_many_pairs_leave_open() -> None:
    """Of hundred answers that differ a little, 3.6 in a hundred may be lost wholly, and none of them be seen."""
    lost = np.random.default_rng(3).normal(0, 0.001, 100)
    (each,) = compare(scored("dense", [0.5] * 100), [scored("s", (0.5 - lost).tolist(), ACTED)], GATE).strategies
    loss, low, high = each.losses["score"]
    assert high == pytest.approx((loss or 0) + 1 - 0.025**0.01)
    assert (low or 0) > -0.001
