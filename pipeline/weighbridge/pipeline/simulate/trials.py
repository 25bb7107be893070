"""Audits of many simulated cells at once: each is calibrated with honest answers of its own, and then audited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.tolerance import Tolerance, learnt
from weighbridge.pipeline.audit.trial import Trial, tried
from weighbridge.pipeline.audit.verdict import Judged, judged
from weighbridge.pipeline.audit.weighings import Weighings, is_pinned, predicted
from weighbridge.pipeline.simulate.answers import Answers
from weighbridge.pipeline.simulate.misreport import Misreport, all_misreports, misreport_of
from weighbridge.pipeline.simulate.world import Ints
from weighbridge.schemas.enumerations import AuditMeasure

# Answers of a cell after which the cause is asked for.
CONFUSED = 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is tried.

    Attributes:
        code: of the misreport.
        factor: of it; null: its usual one.
        plus: tokens more on every answer.
        strange: whether the cell is calibrated with plain honest answers (M0), whatever the misreport's own are.
    """

    code: str
    factor: float | None = None
    plus: int = 0
    strange: bool = False

    @property
    def misreport(self) -> Misreport:
        """The misreport."""
        return misreport_of(self.code)


@dataclass(frozen=True, slots=True)
class Run:
    """Runs of one case, audited.

    Attributes:
        answers: what was audited, with bills.
        gaps, sizes: of the shape (runs, answers).
        tolerance: of each run.
        alpha: what was promised.
        trial: how the bets came out.
    """

    answers: Answers
    gaps: Ints
    sizes: Ints
    tolerance: Tolerance
    alpha: float
    trial: Trial


def run_of(case: Case, *, runs: int, answers: int, calibration: int, seed: int, alpha: float) -> Run:
    """Calibrate and audit so many runs.

    Args:
        case: what is tried.
        runs: how many cells.
        answers, calibration: of each cell, those that are audited and the honest ones before them.
        seed: the same arguments give the same runs.
        alpha: promised chance of a false accusation.
    """
    kind = case.misreport
    rng = np.random.default_rng([seed, int(kind.code[1:])])
    factor = kind.factor if case.factor is None else case.factor
    own = kind.honest is not None and not case.strange
    if own and kind.honest == factor:
        # Honest answers and audited ones are of one kind: of one language, too.
        both = kind.draw(rng, (runs, calibration + answers), factor)
        before, after = _part(both, 0, calibration), _part(both, calibration, calibration + answers)
    else:
        honest = kind if own else all_misreports()["M0"]
        before = honest.draw(rng, (runs, calibration), honest.factor if not own or kind.honest is None else kind.honest)
        after = kind.draw(rng, (runs, answers), factor)
    after = after.billed(np.full_like(after.observed, case.plus))
    ratio = float(before.reported.sum() / before.observed.sum())
    tolerance = learnt(*_weighed(before, ratio))
    gaps, sizes = _weighed(after, ratio)
    return Run(after, gaps, sizes, tolerance, alpha, tried(gaps, sizes, tolerance, alpha))


def said_of(run: Run, number: int) -> Judged:
    """What is said of one of the runs once all of its answers are there."""
    kept = ~is_pinned(run.answers.reported[number], run.answers.limit[number])
    names = ("reported", "messages", "limit", "repeated", "missing", "rejected")
    evidence = {name: getattr(run.answers, name)[number][kept] for name in names}
    own = Weighings.of(AuditMeasure(run.answers.measure), run.gaps[number][kept], run.sizes[number][kept], **evidence)
    held = run.tolerance
    tolerance = Tolerance(
        held.rows,
        held.over[number],
        held.under[number],
        held.steepest[number],
        held.flattest[number],
        held.variance[number],
    )
    return judged(own, tolerance, float(run.trial.over[number]), float(run.trial.under[number]), run.alpha)


def _weighed(answers: Answers, ratio: float) -> tuple[Ints, Ints]:
    """Gaps and sizes; hidden reasoning is held against what honest answers have beside as many visible tokens."""
    if answers.measure != AuditMeasure.HIDDEN_REASONING:
        return answers.gaps, answers.observed
    sizes = predicted(answers.observed, ratio)
    return answers.reported - sizes, sizes


def _part(answers: Answers, begin: int, end: int) -> Answers:
    """Some answers of every run."""
    names = [name for name in Answers.__slots__ if name != "measure"]
    return Answers(measure=answers.measure, **{name: getattr(answers, name)[:, begin:end] for name in names})
