"""Intervals, tests and curves, against other ways of working them out and against seeded simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.compare import drawing
from weighbridge.pipeline.compare.bootstrap import paired
from weighbridge.pipeline.compare.drawing import drawn
from weighbridge.pipeline.compare.effect import Evidence
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.judging import hold, judge
from weighbridge.pipeline.compare.mcnemar import exact_p, mcnemar
from weighbridge.pipeline.compare.multiplicity import benjamini_hochberg, holm
from weighbridge.pipeline.compare.passes import Passes, at_least
from weighbridge.pipeline.compare.ranks import rank_correlation
from weighbridge.pipeline.compare.survival import median, share_at, survival
from weighbridge.schemas.enumerations import Judgement


def test_the_interval_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).gamma(0.7, size=60)
    ours = paired(values.tolist(), seed=1)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=2000, method="BCa", rng=np.random.default_rng(2))
    limits = theirs.confidence_interval
    assert ours.low == pytest.approx(limits.low, rel=0.04)
    assert ours.high == pytest.approx(limits.high, rel=0.04)


def test_intervals_cover_as_often_as_they_say() -> None:
    """A seeded sample of skewed differences; the benchmark runs hundreds, of three kinds."""
    source = np.random.default_rng(17)
    covered = 0
    for run in range(60):
        found = paired((1 - source.exponential(1, 120)).tolist(), seed=run)
        covered += (found.low or 0) <= 0 <= (found.high or 0)
    assert covered >= 52


def test_a_p_value_is_the_level_at_which_the_interval_ends() -> None:
    values = np.random.default_rng(5).exponential(size=80).tolist()
    found = paired(values, seed=1)
    assert found.low is not None
    assert found.high is not None
    assert found.p_below(found.low) == pytest.approx(0.025, abs=0.004)
    assert found.p_above(found.high) == pytest.approx(0.025, abs=0.004)
    assert found.p_below(found.low - 1) < 0.002 < 0.99 < (found.p_below(found.high + 1) or 0)  # type: ignore[operator]


def test_pairs_of_one_cluster_are_no_independent_witnesses() -> None:
    source = np.random.default_rng(8)
    values = np.repeat(source.normal(size=20), 30)
    alone, together = paired(values.tolist()), paired(values.tolist(), [f"task-{at // 30}" for at in range(600)])
    assert (alone.clusters, together.clusters) == (600, 20)
    assert (together.high or 0) - (together.low or 0) > 3 * ((alone.high or 0) - (alone.low or 0))


def test_no_spread_promises_no_more_than_so_many_pairs_can() -> None:
    found = paired([0.0] * 100, worst=1.0)
    assert found.low == pytest.approx(-(1 - 0.025 ** (1 / 100)))
    assert found.p_below(-0.05) == pytest.approx(0.95**100)
    assert paired([0.0] * 100).p_below(-0.05) == 0.0
    assert paired([0.5], worst=1.0).low is None
    even = paired([0.5, -0.5, 0.25, -0.25], ["one", "one", "two", "two"], worst=1.0)
    assert even.low == pytest.approx(-(1 - 0.025 ** (1 / 2))), "two clusters of one mean show no spread either"
    assert (even.p_below(-0.05) or 0) > 0.9
    assert paired([]).mean is None


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 1), (13, 13), (40, 80)])
def test_the_exact_test_is_that_of_a_coin(lost: int, won: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    wanted = stats.binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert exact_p(lost, won) == pytest.approx(wanted)


def test_pairs_are_counted_by_who_passes() -> None:
    assert mcnemar([True, True, False, False], [True, False, True, False])[:4] == (1, 1, 1, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusting_keeps_order_and_never_lowers(p: list[float]) -> None:
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert all(1 >= new >= old for new, old in zip(adjusted, p, strict=True))
        order = sorted(range(len(p)), key=p.__getitem__)
        assert [adjusted[at] for at in order] == sorted(adjusted)
    assert min(holm(p)) == pytest.approx(min(1.0, min(p) * len(p)))


def test_adjusting_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert benjamini_hochberg([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])


def test_the_curve_by_hand() -> None:
    """Six pairs: two part at 3, one ends equal at 5, one parts at 5, two end equal at 9."""
    steps = survival([(3, True), (3, True), (5, False), (5, True), (9, False), (9, False)])
    assert [(step.at, step.at_risk, step.parted) for step in steps] == [(3, 6, 2), (5, 4, 1)]
    assert [step.share for step in steps] == pytest.approx([2 / 3, 1 / 2])
    assert [share_at(steps, place) for place in (2, 4)] == pytest.approx([1.0, 2 / 3])
    assert median(steps) == 5
    assert median(survival([(4, False)])) is None


def test_ranks_with_ties_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = [1, 2, 2, 3, 9], [0.1, 0.4, 0.2, 0.2, 0.8]
    assert rank_correlation(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert rank_correlation([1, 1], [1, 2]) is None


def rates(pairs: int, lost: float, won: float) -> tuple[float, float]:
    """How often a loss of 0.02 that is just the margin is told to be inside of it, and beyond: worked out exactly."""
    logs = np.array([0.0, *np.cumsum(np.log(np.arange(1, pairs + 1)))])
    inside = beyond = 0.0
    for gone in range(pairs + 1):
        for come in range(pairs - gone + 1):
            rest = pairs - gone - come
            chance = float(
                np.exp(logs[pairs] - logs[gone] - logs[come] - logs[rest])
                * lost**gone * won**come * (1 - lost - won) ** rest
            )  # fmt: skip
            if chance > 1e-9:
                found = Passes(pairs, gone, come)
                inside += chance * (found.p_below(-0.02) <= 0.025)
                beyond += chance * (found.p_above(-0.02) <= 0.025)
    return inside, beyond


@pytest.mark.parametrize(("lost", "won"), [(0.02, 0.0), (0.04, 0.02), (0.07, 0.05), (0.22, 0.2)])
def test_of_pairs_that_pass_or_not_a_loss_of_the_margin_seldom_passes(lost: float, won: float) -> None:
    inside, beyond = rates(60, lost, won)
    assert inside <= 0.026
    assert beyond <= 0.026


def test_the_score_is_that_of_a_worked_example() -> None:
    """Without a margin Tango's statistic is McNemar's; and won and lost exchanged it is the same turned round."""
    found = Passes(100, 12, 5)
    assert found.score(0.0) == pytest.approx((5 - 12) / 17**0.5)
    assert found.turned().score(0.03) == pytest.approx(-found.score(-0.03))
    assert found.p_below(-0.02) > 0.5 > found.p_above(-0.02)
    assert at_least(2, 3, 0.5) == pytest.approx(0.5)
    assert (at_least(0, 3, 0.5), at_least(1, 3, 0.0), at_least(3, 3, 1.0)) == (1.0, 0.0, 1.0)


def test_a_studentised_bound_is_that_of_scipy_s_resamples() -> None:
    """Where few lose much, the studentised bound is further out than BCa's, and it is what decides."""
    values = -np.random.default_rng(6).lognormal(0, 1.2, 80)
    found = paired(values.tolist(), seed=1, decides=True)
    drawn = np.random.default_rng(9).choice(values, size=(4000, 80))
    ratios = (drawn.mean(axis=1) - values.mean()) / (drawn.std(axis=1, ddof=1) / 80**0.5)
    error = values.std(ddof=1) / 80**0.5
    assert found.ratios.error == pytest.approx(error)
    bound = values.mean() - 2.2 * error
    assert found.ratios.p_below(values.mean() - bound) == pytest.approx(np.mean(ratios >= 2.2), abs=0.012)
    assert found.ratios.p_above(values.mean() - (values.mean() + 2.2 * error)) == pytest.approx(
        np.mean(ratios <= -2.2), abs=0.015
    )
    assert (found.p_not_below(bound) or 0) >= (found.p_below(bound) or 0)


def test_clusters_have_one_error() -> None:
    """Thirty pairs of each of twenty clusters are as sure as the twenty."""
    source = np.random.default_rng(8)
    means = source.normal(size=20)
    one = paired(means.tolist(), decides=True)
    many = paired(np.repeat(means, 30).tolist(), [f"t{at // 30}" for at in range(600)], decides=True)
    assert many.ratios.error == pytest.approx(one.ratios.error)
    assert many.p_not_below(-1.0) == pytest.approx(one.p_not_below(-1.0), abs=0.02)
    assert many.passes is None


def test_judgements_keep_their_rates() -> None:
    """The gate itself on seeded losses of just the margin and of five points; the benchmark runs thousands."""
    source = np.random.default_rng(21)
    gate = Gate(margins={"score": 0.02})
    told: dict[tuple[float, Judgement], int] = {}
    for loss in (0.02, 0.06):
        for _ in range(30):
            lost = 0.15 * (1 - source.exponential(1, 200)) - loss
            (ruling,) = judge(
                [hold({"score": lost.tolist()}, [None] * 200, [True] * 200, Evidence.EVENTS, gate)], gate, gate.margins
            )
            told[loss, ruling.judgement] = told.get((loss, ruling.judgement), 0) + 1
    assert told.get((0.02, Judgement.NOT_WORSE), 0) <= 3
    assert told[0.06, Judgement.WORSE] >= 24


def test_the_interval_that_is_shown_is_the_one_that_decides() -> None:
    few = paired([-1.0] * 3 + [1.0] + [0.0] * 96, worst=1.0, decides=True)
    low, high = few.limits
    assert few.passes is not None
    assert few.passes.score(low or 0) == pytest.approx(1.96, abs=0.001)
    assert few.passes.score(high or 0) == pytest.approx(-1.96, abs=0.001)
    values = -np.random.default_rng(6).lognormal(0, 1.2, 80)
    skewed = paired(values.tolist(), worst=None, decides=True)
    low, high = skewed.limits
    one, other = skewed.ratios.limits(skewed.mean or 0, 0.025)
    assert low == pytest.approx(min(one, skewed.low or 0))
    assert high == pytest.approx(max(other, skewed.high or 0)), "the wider of both on either side"
    assert skewed.p_not_below(low or 0) == pytest.approx(0.025, abs=0.003)
    assert paired([0.5], worst=1.0, decides=True).limits == (None, None)


def test_resamples_are_those_of_indices_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).normal(size=50)
    sizes = np.random.default_rng(3).integers(1, 5, 50).astype(float)
    names = [f"t{at}" for at, size in enumerate(sizes) for _ in range(int(size))]
    found = paired(np.repeat(values, sizes.astype(int)).tolist(), names, seed=4, decides=True)
    order = sorted(range(50), key=lambda at: f"t{at}")  # clusters are drawn in the order of their names
    sums, counts = (values * sizes)[order], sizes[order]
    index = np.random.default_rng(4).integers(0, 50, size=(2000, 50), dtype=np.int32)
    totals = counts[index].sum(axis=1)
    means = sums[index].sum(axis=1) / totals
    errors = np.sqrt(((sums[index] - means[:, None] * counts[index]) ** 2).sum(axis=1) * 50 / 49) / totals
    assert np.sort(means) == pytest.approx(found.draws)
    assert np.sort((means - (found.mean or 0)) / errors) == pytest.approx(found.ratios.draws)
    assert drawn(np.ones((3, 1), dtype=np.float64), 2000, 1)[:, 0] == pytest.approx(3.0)
    columns = np.column_stack([sums, counts])
    kept = drawn(columns, 300, 1)
    monkeypatch.setattr(drawing, "_KEPT", 0)
    assert np.array_equal(drawn(columns, 300, 1), kept), "what is too much to keep is drawn again, and is the same"
