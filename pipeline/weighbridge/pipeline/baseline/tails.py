"""Exact upper tails of the three laws that promises are made of, for whole columns of cases at once.

A tail is the probability of the figure that was seen plus the sum of the ratios to its neighbours: the logarithm of
one probability from factorials, then nothing but products of fractions. So a tail of 1e-200 is as right as one of 0.3;
taking a cumulative probability from 1, as libraries do, is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ratio = Callable[[Ints, Ints], Floats]

_TABLE = np.array([math.lgamma(n + 1) for n in range(1024)])
# Terms are added in blocks; a block that adds less than this share of the sum is the last.
_BLOCK = 32
_NEGLIGIBLE = 1e-17


def log_factorial(n: Ints) -> Floats:
    """The natural logarithm of n!, to 1e-15 of its size."""
    big = np.maximum(n, len(_TABLE)).astype(np.float64)
    inverse = 1.0 / big
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    stirling = big * np.log(big) - big + 0.5 * np.log(2 * np.pi * big) + series
    return np.where(n < len(_TABLE), _TABLE[np.minimum(n, len(_TABLE) - 1)], stirling)


def beta_binomial_tail(exceeding: Ints, rows: Ints, reference: Ints, rank: Ints) -> Floats:
    """P(at least so many of `rows` new values lie above the limit), if they are exchangeable with the reference.

    The limit is the value of rank k among n values of the reference. Whatever the distribution of the values, the
    number of m new ones above it is beta-binomial with (m, n + 1 - k, k); ties make it less, never more.

    Args:
        exceeding: how many new values lie above the limit.
        rows: how many new values there are, m.
        reference: how many values the limit was made from, n.
        rank: which of them it is, k, from 1 to n.
    """
    above, below = reference + 1 - rank, rank

    def log_mass(j: Ints) -> Floats:
        return (
            _log_choose(j + above - 1, j)
            + _log_choose(rows - j + below - 1, rows - j)
            - _log_choose(rows + above + below - 1, rows)
        )

    def up(j: Ints, at: Ints) -> Floats:
        left = rows[at] - j
        found: Floats = (j + above[at]) / (j + 1) * (left / np.maximum(left + below[at] - 1, 1))
        return found

    def down(j: Ints, at: Ints) -> Floats:
        left = rows[at] - j
        found: Floats = j / (j + above[at] - 1).clip(1) * ((left + below[at]) / (left + 1))
        return found

    mean = rows * (above / (reference + 1))
    return _tail(exceeding, np.zeros_like(rows), rows, mean, log_mass, up, down)


def hypergeometric_tail(marked: Ints, drawn: Ints, all_marked: Ints, all_rows: Ints) -> Floats:
    """P(at least so many marked among `drawn` rows), where `all_marked` of `all_rows` are marked and any may be drawn.

    Args:
        marked: how many of the drawn rows are marked.
        drawn: how many rows were drawn.
        all_marked, all_rows: the same of all rows, the drawn ones included.
    """
    bare = all_rows - all_marked

    def log_mass(j: Ints) -> Floats:
        return _log_choose(all_marked, j) + _log_choose(bare, drawn - j) - _log_choose(all_rows, drawn)

    def up(j: Ints, at: Ints) -> Floats:
        left = (drawn[at] - j) / np.maximum(bare[at] - drawn[at] + j + 1, 1)
        found: Floats = (all_marked[at] - j) / (j + 1) * left
        return found

    def down(j: Ints, at: Ints) -> Floats:
        rest = (bare[at] - drawn[at] + j) / (drawn[at] - j + 1)
        found: Floats = j / np.maximum(all_marked[at] - j + 1, 1) * rest
        return found

    lowest, highest = np.maximum(drawn - bare, 0), np.minimum(drawn, all_marked)
    mean = drawn * (all_marked / np.maximum(all_rows, 1))
    return _tail(marked, lowest, highest, mean, log_mass, up, down)


def binomial_tail(successes: Ints, trials: Ints, rate: float) -> Floats:
    """P(at least so many successes in so many trials of this rate each)."""

    def log_mass(j: Ints) -> Floats:
        found: Floats = _log_choose(trials, j) + j * math.log(rate) + (trials - j) * math.log1p(-rate)
        return found

    def up(j: Ints, at: Ints) -> Floats:
        return (trials[at] - j) / (j + 1) * (rate / (1 - rate))

    def down(j: Ints, at: Ints) -> Floats:
        return j / (trials[at] - j + 1) * ((1 - rate) / rate)

    mean = (trials * rate).astype(np.float64)
    return _tail(successes, np.zeros_like(trials), trials, mean, log_mass, up, down)


def _log_choose(n: Ints, k: Ints) -> Floats:
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def _tail(
    seen: Ints, lowest: Ints, highest: Ints, mean: Floats, log_mass: Callable[[Ints], Floats], up: Ratio, down: Ratio
) -> Floats:
    """P(X >= seen) of a law on lowest..highest: what lies above a figure beyond the mean, else 1 - what lies below."""
    out = np.ones(len(seen))
    out[seen > highest] = 0.0
    inside = (seen > lowest) & (seen <= highest)
    beyond = inside & (seen > mean)
    start = np.where(beyond, seen, np.maximum(seen - 1, lowest))
    first = np.exp(log_mass(np.clip(start, lowest, highest)))
    at = np.flatnonzero(beyond)
    out[at] = first[at] * _sum(seen[at], at, highest[at] - seen[at], up, 1)
    at = np.flatnonzero(inside & ~beyond)
    out[at] = 1.0 - first[at] * _sum(seen[at] - 1, at, seen[at] - 1 - lowest[at], down, -1)
    return np.clip(out, 0.0, 1.0)


def _sum(start: Ints, at: Ints, steps: Ints, ratio: Ratio, way: int) -> Floats:
    """1 + r1 + r1 r2 + ..., where r are the ratios of neighbours from `start` on, for at most `steps` of them."""
    total, term, j = np.ones(len(at)), np.ones(len(at)), start.copy()
    active = np.flatnonzero(steps > 0)
    done = 0
    while active.size:
        offsets = np.arange(_BLOCK)
        places = np.repeat(at[active], _BLOCK)
        ratios = ratio((j[active, None] + way * offsets).ravel(), places).reshape(-1, _BLOCK)
        ratios[done + offsets >= steps[active, None]] = 0.0
        terms = term[active, None] * np.cumprod(ratios, axis=1)
        added = terms.sum(axis=1)
        total[active] += added
        term[active], j[active] = terms[:, -1], j[active] + way * _BLOCK
        done += _BLOCK
        # Beyond the mean terms only shrink, so a block of nothing is followed by nothing.
        active = active[(added > _NEGLIGIBLE * total[active]) & (steps[active] > done)]
    return total
