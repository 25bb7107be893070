"""A seeded sample of the benchmark: false accusations, speed of detection, and the cause that is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weighbridge.pipeline.audit.trial import NEVER
from weighbridge.pipeline.simulate.misreport import all_misreports
from weighbridge.pipeline.simulate.trials import CONFUSED, Case, run_of, said_of

LABELLED = [code for code, each in all_misreports().items() if each.expected is not None]


@pytest.mark.parametrize("code", ["M0", "M1", "M2"])
def test_honest_cells_are_not_accused_however_often_they_are_looked_at(code: str) -> None:
    """60 runs of 300 answers, looked at after each of them; 0.6 accusations are promised at most."""
    run = run_of(Case(code), runs=60, answers=300, calibration=200, seed=2, alpha=0.01)
    assert int((run.trial.accused < NEVER).sum()) <= 3


def median(found: NDArray[np.int64]) -> float:
    return float(np.median(found))


@pytest.mark.parametrize(("factor", "alpha", "most"), [(0.0028, 0.01, 45), (0.018, 0.01, 20), (0.0028, 0.05, 45)])
def test_a_share_of_every_bill_is_accused_within_a_few_answers(factor: float, alpha: float, most: int) -> None:
    run = run_of(Case("M5", factor), runs=60, answers=120, calibration=500, seed=2, alpha=alpha)
    assert median(run.trial.accused) <= most
    assert median(run.trial.detected) <= most


def test_a_token_on_every_answer_is_a_convention_and_never_accused() -> None:
    run = run_of(Case("M0", plus=1), runs=40, answers=200, calibration=500, seed=2, alpha=0.01)
    said: list[Any] = [said_of(run, number) for number in range(40)]
    assert {str(each.verdict) for each in said} == {"convention"}
    assert {each.label.code for each in said} == {"end_token_convention"}


@pytest.mark.parametrize("code", LABELLED)
def test_the_right_cause_is_named(code: str) -> None:
    run = run_of(Case(code), runs=4, answers=CONFUSED, calibration=500, seed=9, alpha=0.01)
    named = [said_of(run, number) for number in range(4)]
    assert {each.label.code for each in named if each.label} == {all_misreports()[code].expected}
    assert sum(each.label is not None for each in named) >= 2, "few answers are bursts, and come late in some runs"


def test_counts_do_not_show_that_more_was_really_generated() -> None:
    run = run_of(Case("M16", 10.0), runs=20, answers=300, calibration=500, seed=2, alpha=0.01)
    assert int((run.trial.detected < NEVER).sum()) == 0
