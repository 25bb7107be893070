"""Which cells may be judged by their rows, and how many rows count as one."""

from __future__ import annotations

import numpy as np
import pytest

from weighbridge.pipeline.baseline.own_rows import SelfTest
from weighbridge.pipeline.baseline.trust import Trust, trust

FAMILY = np.repeat(np.arange(4), 50)


def windows(dispersion: float, *, alarms: int = 1, family: int | None = None) -> SelfTest:
    """200 cells of four tasks, 28 days each, whose days scatter so much: all of them, or those of one task."""
    mine = np.ones(200, bool) if family is None else family == FAMILY
    return SelfTest(np.full(200, 28), np.full(200, alarms), 28.0 * np.where(mine, dispersion, 1.0))


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
    test.squares[7] = 28 * 40.0
    found = answer(test)
    assert np.flatnonzero(~found.by_rows).tolist() == [7]
    assert (found.cluster == 1).all()


def test_more_alarms_than_the_exact_bound_allows_is_a_broken_promise() -> None:
    """Twelve of 28 days beyond 5 %."""
    test = windows(1.0)
    test.alarms[3] = 12
    found = answer(test)
    assert np.flatnonzero(~found.kept).tolist() == [3]
    assert np.flatnonzero(~found.by_rows).tolist() == [3]


def test_rows_that_go_together_by_more_than_two_are_not_counted_at_all() -> None:
    """Three days a cell: none shows it alone, and all of them together do."""
    few = SelfTest(np.full(200, 3), np.zeros(200, np.int64), np.full(200, 3 * 2.4))
    assert few.scattered().min() > 0.01
    assert not answer(few).by_rows.any()
    assert answer(few).kept.all()


def test_nothing_tested_nothing_doubted() -> None:
    nothing = SelfTest(np.zeros(200, np.int64), np.zeros(200, np.int64), np.zeros(200))
    found = answer(nothing)
    assert found.by_rows.all()
    assert (found.cluster == 1).all()
