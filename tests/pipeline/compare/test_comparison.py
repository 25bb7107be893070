"""Judgements, recommendations and findings of whole comparisons."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from tests.pipeline.compare.sides import PRUNED, WHOLE, scored, side, words

from weighbridge.pipeline.compare.answer import Answer, Cost, Side
from weighbridge.pipeline.compare.bootstrap import paired
from weighbridge.pipeline.compare.comparison import compare
from weighbridge.pipeline.compare.found import findings
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.told import told
from weighbridge.schemas.enumerations import FinishReason, Judgement
from weighbridge.schemas.errors import ConfigError, ContractError

DAY = date(2026, 3, 5)
GATE = Gate(margins={"score": 0.05})


def judged(off: list[float], on: list[float], gate: Gate = GATE) -> Judgement:
    """What is said of two lists of scores."""
    found = compare(scored("dense", off), [scored("sparse", on, PRUNED)], gate)
    return found.strategies[0].judgement


def test_the_most_saving_strategy_that_is_not_worse_is_recommended() -> None:
    source = np.random.default_rng(2)
    base = source.uniform(0.5, 0.9, 200)
    quarter = Cost(prompt_tokens=100, attended=250, attended_dense=1000)
    found = compare(
        scored("dense", base.tolist()),
        [
            scored("mild", (base + source.normal(0, 0.05, 200)).clip(0, 1).tolist(), PRUNED),
            scored("hard", (base - 0.2).tolist(), quarter),
        ],
        GATE,
    )
    assert [(each.side.name, each.judgement) for each in found.strategies] == [
        ("hard", Judgement.WORSE), ("mild", Judgement.NOT_WORSE),
    ]  # fmt: skip
    assert (found.recommended, found.resource) == ("mild", "attended")
    assert [finding.code for finding in findings(found, DAY)] == ["strategy_worse"]


def test_a_planted_loss_is_called_worse_and_an_equal_strategy_is_not() -> None:
    """The benchmark runs thousands of these; here a seeded sample shows that the rates are of the right size."""
    source = np.random.default_rng(11)
    lost = equal = 0
    for at in range(20):
        noise = source.normal(0, 0.12, 300)
        high = paired((noise - 0.05).tolist(), seed=at).p_above(-0.02)
        lost += high is not None and high <= 0.025
        beyond = paired(noise.tolist(), seed=at).p_above(-0.02)
        equal += beyond is not None and beyond <= 0.025
    assert (lost >= 16, equal) == (True, 0)


def test_no_judgement_is_given_on_few_pairs_or_where_nothing_shows_an_effect() -> None:
    assert judged([1.0] * 29, [0.0] * 29) is Judgement.UNDECIDED
    assert judged([1.0] * 40, [0.0] * 40) is Judgement.WORSE
    off, on = scored("dense", [1.0] * 200), scored("sparse", [1.0] * 200, WHOLE)
    found = compare(off, [on], GATE)
    assert found.strategies[0].judgement is Judgement.NO_EFFECT
    (finding,) = findings(found, DAY)
    assert (finding.code, finding.rows, finding.origin) == ("strategy_had_no_effect", 200, "compare")


def test_forty_equal_answers_do_not_prove_a_margin_of_a_fiftieth() -> None:
    assert judged([1.0] * 40, [1.0] * 40, Gate(margins={"score": 0.02})) is Judgement.UNDECIDED
    assert judged([1.0] * 400, [1.0] * 400, Gate(margins={"score": 0.02})) is Judgement.NOT_WORSE


def test_one_pair_that_differs_a_little_proves_no_more_than_equal_ones() -> None:
    for pairs, word in ((40, Judgement.UNDECIDED), (400, Judgement.NOT_WORSE)):
        assert judged([1.0] * pairs, [0.999, *[1.0] * (pairs - 1)], Gate(margins={"score": 0.02})) is word


def test_nor_does_it_of_what_is_worse_where_there_is_more_of_it() -> None:
    little = paired([0.001, *[0.0] * 39], worst=1.0)
    assert (little.p_above(0.02) or 0) < 0.001
    assert little.p_not_above(0.02) == pytest.approx(0.98**40, rel=0.01)


def test_a_strategy_that_loses_few_answers_wholly_seldom_passes() -> None:
    """Losses of just the margin, in two answers of a hundred, behind small differences of all of them."""
    source = np.random.default_rng(7)
    passed = 0
    for at in range(30):
        lost = source.normal(0, 0.01, 40) - (source.random(40) < 0.02)
        passed += (paired(lost.tolist(), seed=at, worst=1.0).p_not_below(-0.02) or 0.0) <= 0.025
    assert passed <= 3


def test_what_the_baseline_itself_does_not_repeat_is_no_loss() -> None:
    answers, again = words(60, 40), words(60, 40, seed=2)
    half = {pair: [*ids[:20], *again[pair][20:]] for pair, ids in answers.items()}
    other = {pair: [*ids[:20], *words(60, 40, seed=3)[pair][20:]] for pair, ids in answers.items()}
    floor = {pair: Answer(pair=pair, ids=ids) for pair, ids in half.items()}
    off = side("dense", answers, again=floor)
    found = compare(off, [side("sparse", other, PRUNED)], Gate(margins={"similarity": 0.05}))
    held = found.strategies[0].measured["similarity"]
    assert held.off == pytest.approx(0.5, abs=0.05)
    assert held.found.mean == pytest.approx(0.0, abs=0.03)
    assert {finding.code for finding in findings(found, DAY)} == {"baseline_not_repeatable"}
    assert found.floor_measured


def test_ids_of_two_tokenizers_are_refused_with_the_reason() -> None:
    off, on = side("dense", words(3, 4), tokenizer="aaaa"), side("sparse", words(3, 4), tokenizer="bbbb")
    with pytest.raises(ContractError, match=r"tokenizer aaaa, sparse of bbbb: the same id is another token there"):
        compare(off, [on], GATE)
    with pytest.raises(ContractError, match="have no pair in common"):
        compare(off, [side("sparse", {"q": [1]})], GATE)


@pytest.mark.parametrize("answers", [{"p": [1, 2, 3]}, {"p": []}, {"p": [], "q": []}])
def test_one_pair_and_empty_answers_are_measured_and_not_judged(answers: dict[str, list[int]]) -> None:
    found = compare(side("dense", answers), [side("sparse", answers, PRUNED)], Gate())
    (each,) = found.strategies
    assert each.judgement is Judgement.UNDECIDED
    assert each.measured["similarity"].on == 1.0
    assert each.measured["exact"].unrelated == (None if len(answers) == 1 else 1.0)
    low = told(found)["strategies"][0]["measures"]["similarity"]["low"]
    assert low == (None if len(answers) == 1 else pytest.approx(-0.842, abs=0.001))


def test_answers_that_run_into_their_limit_and_repeat_are_symptoms_with_cause_and_cure() -> None:
    answers = words(60, 40)
    off = Side(name="dense", answers={
        pair: Answer(pair=pair, ids=ids, stop=FinishReason.STOP, cost=WHOLE) for pair, ids in answers.items()
    })  # fmt: skip
    on = Side(name="window", parameters={"window": 8}, answers={
        pair: Answer(pair=pair, ids=[*ids[:4], *[7, 8] * 30], stop=FinishReason.LENGTH, cost=PRUNED)
        for pair, ids in answers.items()
    })  # fmt: skip
    found = {finding.code: finding for finding in findings(compare(off, [on], Gate()), DAY)}
    assert set(found) == {"strategy_worse", "answers_incomplete", "answers_repeat"}
    assert {finding.cause for finding in found.values()} == {"context_evicted"}
    assert found["answers_repeat"].rows == 60
    assert "Raise the window" in found["answers_incomplete"].cure


def test_a_loss_that_grows_with_the_prompt_is_told() -> None:
    answers = words(80, 50)
    off, on = {}, {}
    for at, (pair, ids) in enumerate(answers.items()):
        cost = Cost(prompt_tokens=10 * at, attended=500, attended_dense=1000)
        off[pair] = Answer(pair=pair, ids=ids, cost=cost)
        on[pair] = Answer(pair=pair, ids=[*ids[: 50 - at // 2], *[5000] * (at // 2)], cost=cost)
    made = compare(Side(name="dense", answers=off), [Side(name="sparse", answers=on)], Gate())
    assert "worse_with_length" in {finding.code for finding in findings(made, DAY)}


def test_likeness_of_meaning_stands_beside_the_second_run_and_strangers() -> None:
    def made(name: str, like: float, cost: Cost = WHOLE) -> Side:
        alike = {"semantic": like, "semantic_unrelated": 0.3}
        return Side(
            name=name, answers={f"p{at}": Answer(pair=f"p{at}", ids=[at], alike=alike, cost=cost) for at in range(50)}
        )

    off = made("dense", 1.0)
    again = {pair: replace(answer, alike={"semantic": 0.95}) for pair, answer in off.answers.items()}
    found = compare(replace(off, again=again), [made("s", 0.85, PRUNED)], Gate(margins={"semantic": 0.2}))
    held = found.strategies[0].measured["semantic"]
    assert (held.off, held.on, held.unrelated) == pytest.approx((0.95, 0.85, 0.3))
    assert found.strategies[0].judgement is Judgement.NOT_WORSE


def test_savings_tell_keys_entries_time_and_exact_money() -> None:
    dense = Cost(attended=1000, attended_dense=1000, kv_peak_bytes=800, kv_written=100, kv_kept=100, seconds=1.5)
    sparse = Cost(
        attended=250, attended_dense=1000, kv_peak_bytes=200, kv_written=100, kv_kept=30, kv_masked=5, seconds=0.6
    )
    answers = words(4, 5)
    found = compare(side("dense", answers, dense), [side("s", answers, sparse)], Gate(), hour=Decimal("3.60"))
    saved = {name: held.saved for name, held in found.strategies[0].saved.items()}
    assert saved == pytest.approx(
        {"attended": 0.75, "kv_bytes": 0.75, "kv_entries": 0.75, "seconds": 0.6, "money": 0.6}
    )
    money = found.strategies[0].saved["money"]
    assert (money.off, money.on) == (Decimal("0.006"), Decimal("0.0024"))


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"margins": {"length": 1.0}}, "no measure that can decide; allowed are exact"),
        ({"margins": {"similarity": 0.0}}, "give the loss you tolerate"),
        ({"margins": {"similarity": float("nan")}}, "give the loss you tolerate"),
        ({"margins": {"nll": float("inf")}}, "give the loss you tolerate"),
        ({"resamples": 100}, "a whole number from 2000 to 100000"),
        ({"resamples": 2500.5}, "a whole number from 2000 to 100000"),
        ({"resamples": 10**11}, "a whole number from 2000 to 100000"),
        ({"level": 0.2}, "between 0.5 and 1"),
        ({"pairs": 1}, "at least 2 are needed"),
    ],
)
def test_a_gate_that_cannot_decide_is_refused(gate: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Gate(**gate)  # type: ignore[arg-type]


def test_a_measure_nobody_knows_cannot_decide() -> None:
    with pytest.raises(ConfigError, match="agreement is not known of these answers; known are"):
        compare(side("dense", words(3, 4)), [side("s", words(3, 4), PRUNED)], Gate(margins={"agreement": 0.02}))


def test_what_nobody_counts_cannot_rank() -> None:
    with pytest.raises(ConfigError, match="nothing is ranked by 'weight'; allowed are attended"):
        compare(side("dense", words(3, 4)), [side("s", words(3, 4))], Gate(), resource="weight")
    with pytest.raises(ConfigError, match=r"how much money it takes.*say what an hour costs"):
        compare(side("dense", words(3, 4)), [side("s", words(3, 4))], Gate(), resource="money")
