"""Audits held to their promise: false accusations, answers to detection, and the cause that is named.

    python benchmarks/audit.py [nulls] [speed] [causes] [contrast] [--runs N] [--trials N] [--seed N] [--quick]

    nulls     honest cells (M0 to M2), looked at after every answer, at alpha 5 % and 1 %; end tokens where the cell
              was calibrated without; a token on every answer. Accusations beside the exact binomial bound.
    speed     +0.28 % and +1.8 % of every bill, and the published rates: answers to detection and to accusation.
    causes    M3 to M17 with their usual factors: detection, answers to it, and the confusion matrix of causes; and M16,
              which no count shows, by the test of days that baselines make.
    contrast  the peer: a t-test looked at after every answer, on answers exactly at the edge of what is tolerated.

Without names all four run. Amounts that are no whole tokens are rounded by a seeded uniform draw. Exit code 0:
everything holds; 1: something is WRONG.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

from weighbridge.pipeline.audit.process import Standing, advance
from weighbridge.pipeline.audit.quantiles import student_quantile
from weighbridge.pipeline.audit.scales import scaled
from weighbridge.pipeline.audit.trial import NEVER
from weighbridge.pipeline.audit.verdict import threshold
from weighbridge.pipeline.baseline.tails import beta_binomial_tail
from weighbridge.pipeline.simulate.answers import honest
from weighbridge.pipeline.simulate.misreport import all_misreports
from weighbridge.pipeline.simulate.trials import CONFUSED, Case, Run, run_of, said_of

PARTS = ("nulls", "speed", "causes", "contrast")
ALPHAS = (0.05, 0.01)
RUNS, TRIALS = 5_000, 200
BATCH = 250
# A correct audit exceeds its bound with this probability at most.
DOUBT = 0.001
LEAST_RIGHT = 0.95
LEAST_FOUND = 0.9
# Of runs of over-generation that a published audit finds, at less than 2 % false ones.
PUBLISHED = 0.851


def bound(runs: int, alpha: float) -> int:
    """The number of accusations that a promise of alpha exceeds with a probability of `DOUBT` at most, exactly."""
    log_mass = [
        math.lgamma(runs + 1)
        - math.lgamma(k + 1)
        - math.lgamma(runs - k + 1)
        + k * math.log(alpha)
        + (runs - k) * math.log1p(-alpha)
        for k in range(runs + 1)
    ]
    tail = 0.0
    for k in range(runs, -1, -1):
        tail += math.exp(log_mass[k])
        if tail > DOUBT:
            return k
    return 0


def verdict(holds: bool) -> str:
    return "ok" if holds else "WRONG"


def batches(case: Case, runs: int, *, answers: int, calibration: int, seed: int, alpha: float) -> Iterator[Run]:
    for number, begin in enumerate(range(0, runs, BATCH)):
        own = min(BATCH, runs - begin)
        yield run_of(case, runs=own, answers=answers, calibration=calibration, seed=seed + 1_000 * number, alpha=alpha)


def nulls(runs: int, seed: int) -> bool:
    """Honest cells and conventions."""
    print(f"\nnulls: {runs:,} runs of 1,000 answers each, calibrated with 500, looked at after every answer")
    print(f"{'':34}{'alpha':>7}{'bet passed':>12}{'accused':>9}{'bound':>7}")
    cases = {
        "M0 honest": Case("M0"),
        "M1 end tokens": Case("M1"),
        "M2 tokens nobody would choose": Case("M2"),
        "M1, calibrated without end tokens": Case("M1", strange=True),
        "a token on every answer": Case("M0", plus=1),
    }
    good = True
    for alpha in ALPHAS:
        limit = bound(runs, alpha)
        for name, case in cases.items():
            passed = accused = 0
            for run in batches(case, runs, answers=1_000, calibration=500, seed=seed, alpha=alpha):
                passed += int((run.trial.detected < NEVER).sum())
                accused += int((run.trial.accused < NEVER).sum())
            # Of conventions the bet is to pass; that they are accused is what must not be.
            convention = case.strange or case.plus > 0
            holds = accused <= limit and (convention or passed <= 2 * limit)
            good &= holds
            print(f"{name:34}{alpha:>7.0%}{passed:>12,}{accused:>9,}{limit:>7,}  {verdict(holds)}")
    return good


def speed(trials: int, seed: int) -> bool:
    """Answers to detection and accusation."""
    print(f"\nspeed: {trials} runs, calibrated with 2,000 answers; answers to the bet, and to all an accusation takes")
    print(f"{'':34}{'alpha':>7}{'found':>8}{'median':>8}{'p90':>6}{'accused':>10}{'median':>8}{'p90':>6}")
    good = True
    wanted: list[tuple[str, Case, int | None]] = [
        ("+0.05 % of every bill", Case("M5", 0.0005), None),
        ("+0.28 % of every bill", Case("M5", 0.0028), 45),
        ("+1.8 % of every bill", Case("M5", 0.018), 20),
        ("+11.2 % of every bill", Case("M5", 0.112), None),
        ("0.28 % of tokens split", Case("M3", 0.0028), None),
        ("1.8 % of tokens split", Case("M3", 0.018), None),
        ("0.28 %, plausible splits", Case("M4", 0.0028), None),
    ]
    for alpha in ALPHAS:
        for name, case, most in wanted:
            run = run_of(case, runs=trials, answers=1_000, calibration=2_000, seed=seed, alpha=alpha)
            figures = []
            for found in (run.trial.detected, run.trial.accused):
                figures += [float((found < NEVER).mean()), *_quantiles(found)]
            holds = most is None or max(figures[1], figures[4]) <= most
            good &= holds
            told = "" if most is None else f"  at most {most}: {verdict(holds)}"
            shown = "".join(
                f"{figures[at]:>{first}.1%}{_count(figures[at + 1]):>8}{_count(figures[at + 2]):>6}"
                for at, first in ((0, 8), (3, 10))
            )
            print(f"{name:34}{alpha:>7.0%}{shown}{told}")
    return good


def _quantiles(found: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[float, float]:
    ordered = np.sort(found)
    return float(ordered[(len(ordered) - 1) // 2]), float(ordered[math.ceil(0.9 * len(ordered)) - 1])


def _count(value: float) -> str:
    return "never" if value >= NEVER else f"{value:.0f}"


def causes(trials: int, seed: int) -> bool:
    """Detection and the confusion matrix."""
    print(
        f"\ncauses: {trials} runs of {CONFUSED:,} answers, calibrated with 2,000, alpha 1 %; what is named in the end"
    )
    print(f"{'':6}{'':36}{'found':>8}{'median':>8}{'p90':>6}{'right':>8}  verdicts; other causes")
    good = True
    for code, kind in all_misreports().items():
        if code in {"M0", "M1", "M2"}:
            continue
        factors = (kind.factor, 10.0) if code == "M16" else (kind.factor, 0.01) if code == "M6" else (kind.factor,)
        factors = (*factors, 14.69) if code == "M7" else factors
        for factor in factors:
            rare = code == "M6" and factor < 0.05
            answers, calibration = (3_000, 10_000) if rare else (CONFUSED, 2_000)
            case = Case(code, factor)
            run = run_of(case, runs=trials, answers=answers, calibration=calibration, seed=seed, alpha=0.01)
            found = run.trial.detected
            said = [said_of(run, number) for number in range(trials)]
            names = Counter(each.label.code for each in said if each.label is not None)
            verdicts = Counter(str(each.verdict) for each in said)
            share, detected = float((found < NEVER).mean()), sum(names.values())
            right = names[str(kind.expected)] / detected if detected else 0.0
            holds = detected <= bound(trials, 0.02) if kind.expected is None else right >= LEAST_RIGHT
            holds &= kind.expected is None or share >= LEAST_FOUND
            good &= holds
            median, most = _quantiles(found)
            others = {name: count for name, count in names.items() if name != kind.expected}
            shown = f"{right:.1%}" if kind.expected else "-"
            told = ", ".join(f"{name} {count}" for name, count in verdicts.most_common())
            more = ("; " + ", ".join(f"{name} {count}" for name, count in others.items())) if others else ""
            title = f"{kind.title} ({factor:g})"
            print(
                f"{code:6}{title:36.36}{share:>8.1%}{_count(median):>8}{_count(most):>6}{shown:>8}  {told}{more}"
                f"  {verdict(holds)}"
            )
    return good & over_generation(trials, seed)


def over_generation(trials: int, seed: int) -> bool:
    """M16 by the test of days: answers of a day above a limit that one in twenty of 300 others exceeds."""
    good = True
    rank = math.ceil(301 * 0.95)
    for factor in (1.0, 2.0, 10.0):
        rng = np.random.default_rng([seed, 16])
        reference = honest(rng, (trials, 300)).reported
        limit = np.sort(reference, axis=-1)[:, rank - 1]
        day = all_misreports()["M16"].draw(rng, (trials, 100), factor).reported
        above = (day > limit[:, None]).sum(axis=-1)
        cases = [np.full(trials, number) for number in (100, 300, rank)]
        chance = beta_binomial_tail(above, *cases)
        found = int((chance < 0.01).sum())
        holds = found <= bound(trials, 0.01) if factor == 1.0 else found >= PUBLISHED * trials
        good &= holds
        print(f"M16   by baselines, a day of 100 answers, x {factor:<4g} found {found} of {trials}  {verdict(holds)}")
    return good


def contrast(runs: int, seed: int) -> bool:
    """The bet beside a t-test, both looked at after every answer, on answers exactly at the edge."""
    rng = np.random.default_rng([seed, 99])
    sample = honest(rng, (1, 2_000_000))
    edge = np.array([float(view.mean()) for view in scaled(sample.gaps, sample.observed)])
    tests = bets = 0
    line = np.array([student_quantile(0.99, rows - 1) for rows in range(30, 1_001)])
    for begin in range(0, runs, BATCH):
        answers = honest(rng, (min(BATCH, runs - begin), 1_000))
        gaps = answers.gaps.astype(np.float64)
        counts = np.arange(1, 1_001)
        mean = np.cumsum(gaps, axis=-1) / counts
        variance = (np.cumsum(gaps * gaps, axis=-1) - counts * mean**2) / np.maximum(counts - 1, 1)
        error = np.sqrt(np.maximum(variance, 1e-12) / counts)
        tests += int((((mean - 0.02) / error)[:, 29:] > line).any(axis=-1).sum())
        course = advance(Standing.start(gaps.shape[:-1]), answers.gaps, answers.observed, edge, edge)
        bets += int((course.over >= threshold(0.01)).any(axis=-1).sum())
    limit = bound(runs, 0.01)
    holds = bets <= limit < tests
    print(f"\ncontrast: {runs:,} runs of 1,000 answers exactly at the edge of what is tolerated, 1 % promised")
    print(f"a t-test looked at from the 30th answer on: {tests:,} ({tests / runs:.1%}) falsely accused")
    print(f"the bet: {bets:,} ({bets / runs:.1%}), bound {limit:,}  {verdict(holds)}")
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    given = parser.parse_args()
    runs, trials = (
        (max(1, given.runs // 10), max(20, given.trials // 10)) if given.quick else (given.runs, given.trials)
    )
    work = {"nulls": (nulls, runs), "speed": (speed, trials), "causes": (causes, trials), "contrast": (contrast, runs)}
    good = True
    for name in given.parts or PARTS:
        begun = time.process_time()
        part, number = work[name]
        good &= part(number, given.seed)
        print(f"{name}: {time.process_time() - begun:.0f} CPU s", flush=True)
    print("\neverything holds" if good else "\nWRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
