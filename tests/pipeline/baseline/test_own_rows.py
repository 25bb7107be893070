"""A cell with rows of its own: the promise holds on what never changed, and what changed is seen."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pipeline.baseline.conftest import NAME, Ints, history_of, lognormal, window_of

from weighbridge.pipeline.baseline.history import History
from weighbridge.pipeline.baseline.own_rows import FEWEST, OwnRows, SelfTest, by_own_rows, squared_deviations
from weighbridge.pipeline.baseline.season import centred
from weighbridge.pipeline.baseline.spans import Floats

DAYS = 33


def of(history: History) -> OwnRows:
    """The last day of a history beside the four weeks before it."""
    window = window_of(history)
    rows = centred(history.rows, NAME, history.series, start=0, since=window.today - 28, today=window.today)
    return by_own_rows(rows, history.series, today=window.today, reference_days=28, quiet=window.quiet)


def p_of(history: History, cluster: float = 1.0) -> Floats:
    """Its p-values, where so many rows count as one."""
    found = of(history)
    return found.p_value(np.full(len(found.rows), cluster))


def drawn(rng: np.random.Generator, cells: int, a_day: float, values: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows of cells that all draw from the same values."""
    counts = rng.poisson(a_day, (cells, DAYS)).ravel()
    series = np.repeat(np.arange(cells * DAYS) // DAYS, counts)
    day = np.repeat(np.arange(cells * DAYS) % DAYS, counts)
    return series, day, rng.choice(values, len(series))


SPIKY = np.array([318] * 30 + [877] * 20 + list(range(1, 2000, 40)) + [16_000] * 2)


@pytest.mark.parametrize(
    "values", [SPIKY, np.array([0, 0, 0, 5]), np.arange(1, 5000, 7)], ids=["spiky", "zeros", "flat"]
)
def test_the_promise_holds_whatever_the_distribution(rng: np.random.Generator, values: Ints) -> None:
    """800 cells of which nothing changed: at most 5 % have a p-value of 5 %, 1 % of 1 %, but for chance."""
    cells = 800
    found = p_of(history_of(*drawn(rng, cells, 30, values), length=DAYS))
    p_values = found[np.isfinite(found)]
    assert len(p_values) > cells * 0.99
    for level in (0.05, 0.01, 0.001):
        sd = np.sqrt(cells * level * (1 - level))
        assert (p_values <= level).sum() <= cells * level + 4 * sd


def test_of_continuous_rows_as_many_exceed_the_limit_as_was_promised(rng: np.random.Generator) -> None:
    """Not only at most 5 %: where no rows tie, 5 %, so that the limit is no larger than it has to be."""
    found = of(history_of(*lognormal(rng, 500, 30, days=DAYS), length=DAYS))
    rate = found.exceeding.sum() / found.rows.sum()
    assert rate == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / found.rows.sum()))


@pytest.mark.parametrize(("factor", "found_at_least"), [(1.5, 0.85), (2.0, 1.0)])
def test_two_hundred_rows_of_half_as_much_again_are_seen_on_their_first_day(
    rng: np.random.Generator, factor: float, found_at_least: float
) -> None:
    """p-values so small that they stand out among thousands of cells."""
    series, day, tokens = lognormal(rng, 100, 200, days=DAYS)
    last = day == DAYS - 1
    tokens = np.where(last, np.rint(tokens * factor), tokens).astype(np.int64)
    p_values = p_of(history_of(series, day, tokens, length=DAYS))
    assert (p_values < 1e-5).mean() >= found_at_least


def test_a_template_that_moves_the_middle_is_seen_though_the_top_is_where_it_was(rng: np.random.Generator) -> None:
    """Prompts capped at 1,000 tokens grow by 200: none of them lies above the 5 % limit, which is the cap."""
    series, day, tokens = lognormal(rng, 50, 200, days=DAYS, between=0.1)
    grown = np.where(day == DAYS - 1, tokens + 200, tokens)
    history = history_of(series, day, np.minimum(grown, 1_000), length=DAYS)
    assert of(history).exceeding.sum() == 0
    assert (p_of(history) < 1e-5).mean() > 0.95


def test_a_small_shift_is_seen_within_five_days(rng: np.random.Generator) -> None:
    """+30 % at 100 rows a day: not on the first day, but the last five days together tell."""
    series, day, tokens = lognormal(rng, 100, 100, days=DAYS)

    def seen_after(days: int) -> float:
        moved = np.where(day >= DAYS - days, np.rint(tokens * 1.3), tokens).astype(np.int64)
        return float((p_of(history_of(series, day, moved, length=DAYS)) < 1e-3).mean())

    assert seen_after(1) < 0.5
    assert seen_after(5) > 0.75


def test_fewer_than_99_rows_raise_no_alarm_of_their_own() -> None:
    """98 rows of one token, then a day of a million each."""
    series = np.zeros(FEWEST + 9, np.int64)
    day = np.r_[np.arange(FEWEST - 1) % 28, np.full(10, 28)]
    tokens = np.r_[np.ones(FEWEST - 1, np.int64), np.full(10, 10**6)]
    assert np.isnan(p_of(history_of(series, day, tokens, length=29))).all()
    more = p_of(history_of(np.r_[0, series], np.r_[3, day], np.r_[1, tokens], length=29))
    assert more[0] < 1e-9


def test_a_day_that_is_low_is_no_alarm_because_of_the_days_before_it(rng: np.random.Generator) -> None:
    """Four high days and then an ordinary one: the news is old."""
    series, day, tokens = lognormal(rng, 50, 100, days=DAYS)
    high = (day >= DAYS - 5) & (day < DAYS - 1)
    moved = np.where(high, tokens * 3, np.where(day == DAYS - 1, tokens // 2, tokens))
    assert (p_of(history_of(series, day, moved, length=DAYS)) > 0.5).all()


def test_where_two_rows_count_as_one_it_takes_twice_as_many(rng: np.random.Generator) -> None:
    """The same p-value, about, as of half of the rows; never a smaller one than if each counted."""
    series, day, tokens = lognormal(rng, 60, 200, days=DAYS)
    moved = np.where(day == DAYS - 1, np.rint(tokens * 1.5), tokens).astype(np.int64)
    half = rng.random(len(series)) < 0.5
    both = p_of(history_of(series, day, moved, length=DAYS))
    paired = p_of(history_of(series, day, moved, length=DAYS), cluster=2.0)
    halved = p_of(history_of(series[half], day[half], moved[half], length=DAYS))
    assert (paired >= both).all()
    assert np.median(np.log10(paired)) == pytest.approx(np.median(np.log10(halved)), abs=1.0)


# --- the self-test ----------------------------------------------------------------------------------------------


def test_windows_that_keep_the_promise_are_not_doubted(rng: np.random.Generator) -> None:
    """Exact bounds: 1,500 cells, and none has more alarms than one in a million would."""
    found = of(history_of(*lognormal(rng, 1_500, 20, days=DAYS), length=DAYS)).test
    assert found.alarms.sum() / found.days.sum() <= 0.05
    assert found.disagreement().min() > 1e-6
    assert (found.disagreement() <= 0.01).mean() <= 0.01


def test_rows_of_a_day_that_go_together_break_the_promise_and_it_is_seen(rng: np.random.Generator) -> None:
    """Days differ by 40 %: a cell alone shows it in its alarms."""
    found = of(history_of(*lognormal(rng, 50, 200, days=DAYS, of_days=0.35), length=DAYS)).test
    assert (found.disagreement() < 1e-4).mean() > 0.9


def test_what_no_cell_shows_alone_all_of_a_task_show_together(rng: np.random.Generator) -> None:
    """Days differ by 10 %, cells have 60 rows a day: their scatter together is out of the question."""
    found = of(history_of(*lognormal(rng, 60, 60, days=DAYS, of_days=0.1), length=DAYS)).test
    assert np.median(found.disagreement()) > 1e-3
    assert found.together(np.zeros(60, np.int64)).scattered()[0] < 1e-9
    steady = of(history_of(*lognormal(rng, 60, 60, days=DAYS), length=DAYS)).test
    assert steady.together(np.zeros(60, np.int64)).scattered()[0] > 1e-3


def test_squared_deviations_have_the_mean_of_chance(rng: np.random.Generator) -> None:
    rows = rng.poisson(40, (500, 28))
    marked = rng.binomial(rows, 0.3)
    assert squared_deviations(marked, rows).squares.mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("a_day", "share"), [(4, 0.05), (20, 0.05), (20, 0.5), (200, 0.25)])
@pytest.mark.parametrize("weekend", [1.0, 0.05], ids=["days alike", "quiet weekends"])
def test_the_noise_of_squared_deviations_is_known(
    rng: np.random.Generator, a_day: int, share: float, weekend: float
) -> None:
    """Few rows or many, on days of one size or of very different ones."""
    rows = rng.poisson(a_day * np.where(np.arange(28) % 7 < 5, 1.0, weekend), (4_000, 28))
    found = squared_deviations(rng.binomial(rows, share), rows)
    sums = found.squares.sum(axis=1)
    assert sums.mean() == pytest.approx((rows > 0).sum(axis=1).mean(), rel=0.03)
    assert sums.var() == pytest.approx(found.noise.mean(), rel=0.2)


def test_a_window_without_days_is_not_doubted() -> None:
    nothing = SelfTest(np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros((3, 2)))
    assert nothing.disagreement().tolist() == [1.0, 1.0]
    assert nothing.scattered().min() > 0.99
