"""Which cells may be judged by their rows, and how many rows count as one."""

from __future__ import annotations

import numpy as np
import pytest

from weighbridge.pipeline.baseline.own_rows import SelfTest
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.trust import Trust, trust

FAMILY = np.repeat(np.arange(4), 50)


def windows(dispersion: float, *, alarms: int = 1, family: int | None = None) -> SelfTest:
    """200 cells of four tasks, 28 days each, whose days scatter so much: all of them, or those of one task."""
    mine = np.ones(200, bool) if family is None else family == FAMILY
    return of_squares(28, 28.0 * np.where(mine, dispersion, 1.0), alarms=alarms)


def of_squares(days: int, *squares: Floats, alarms: int = 1) -> SelfTest:
    """200 cells with these sums of squares, one for each limit, of many rows a day."""
    held = np.array(squares)
    return SelfTest(np.full(200, days), np.full(200, alarms), held, np.full(held.shape, 2.0 * days))


def answer(test: SelfTest) -> Trust:
    """What the test of one class says."""
    return trust([test], FAMILY)[0]


def test_windows_that_scatter_as_chance_does_are_trusted_row_by_row() -> None:
    found = answer(windows(1.0))
    assert found.kept.all()
    assert found.by_rows.all()
    assert (found.cluster == 1).all()


@pytest.mark.parametrize("dispersion", [1.2, 1.5])
def test_what_all_cells_together_show_makes_rows_count_less(dispersion: float) -> None:
    """No cell alone is out of the ordinary at 1.2 or 1.5; two hundred of them are."""
    found = answer(windows(dispersion))
    assert found.by_rows.all()
    assert found.cluster == pytest.approx(dispersion)


def test_one_task_is_doubted_without_the_others() -> None:
    found = answer(windows(1.5, family=2))
    assert (found.cluster[FAMILY == 2] > 1.4).all()
    assert (found.cluster[FAMILY != 2] < 1.2).all()


def test_a_cell_beyond_all_chance_is_judged_by_whole_days_and_spoils_no_other() -> None:
    test = windows(1.0)
    test.squares[0, 7] = 28 * 40.0
    found = answer(test)
    assert np.flatnonzero(~found.by_rows).tolist() == [7]
    assert (np.delete(found.cluster, 7) == 1).all()


def test_more_alarms_than_the_exact_bound_allows_is_a_broken_promise() -> None:
    """Twelve of 28 days beyond 5 %."""
    test = windows(1.0)
    test.alarms[3] = 12
    found = answer(test)
    assert np.flatnonzero(~found.kept).tolist() == [3]
    assert np.flatnonzero(~found.by_rows).tolist() == [3]


def test_rows_that_go_together_by_more_than_five_are_not_counted_at_all() -> None:
    few = of_squares(3, np.full(200, 3 * 5.4), alarms=0)
    assert not answer(few).by_rows.any()
    assert answer(few).kept.all()


def test_nothing_tested_nothing_doubted() -> None:
    nothing = SelfTest(np.zeros(200, np.int64), np.zeros(200, np.int64), np.zeros((1, 200)), np.zeros((1, 200)))
    found = answer(nothing)
    assert found.by_rows.all()
    assert (found.cluster == 1).all()


def test_the_limit_at_which_days_scatter_most_decides() -> None:
    """The middle is as calm as chance, the top is not: a batch of long answers now and then."""
    found = answer(of_squares(28, np.full(200, 28 * 1.6), np.full(200, 28.0), np.full(200, 28.0)))
    assert found.cluster == pytest.approx(1.6)


def test_squares_that_chance_makes_large_are_no_reason_to_doubt() -> None:
    """Few rows a day above a limit: a mean of 1.05 with three times the noise is what such days do."""
    calm = SelfTest(
        np.full(200, 28), np.zeros(200, np.int64), np.full((1, 200), 28 * 1.05), np.full((1, 200), 28 * 6.0)
    )
    assert answer(calm).by_rows.all()
    assert (answer(calm).cluster == 1).all()
    assert (answer(of_squares(28, np.full(200, 28 * 1.05))).cluster > 1).all()


def test_a_cell_that_scatters_beyond_chance_has_rows_that_count_less_and_spoils_no_other() -> None:
    test = windows(1.0)
    test.squares[0, 7] = 28 * 3.5
    found = answer(test)
    assert found.by_rows.all()
    assert found.cluster[7] == pytest.approx(3.5)
    assert (np.delete(found.cluster, 7) == 1).all()


def test_where_many_cells_of_a_task_are_doubted_the_others_are_too() -> None:
    """Thirty of fifty cells scatter beyond all chance, one by far; what is left of the task only hides it better."""
    test = windows(1.0)
    test.squares[0, 60:90] = 28 * 3.0
    test.squares[0, 60] = 28 * 90.0
    found = answer(test)
    assert np.flatnonzero(~found.by_rows).tolist() == [60]
    assert found.cluster[(FAMILY == 1) & found.by_rows] == pytest.approx(3.0)
    assert (found.cluster[FAMILY != 1] == 1).all()
