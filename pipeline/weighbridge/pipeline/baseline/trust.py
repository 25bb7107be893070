"""Which cells may be judged by their rows: what the self-tests of all cells say, alone and together.

A cell that broke its promise is judged by whole days. Where the days of a cell scatter beyond all chance, as many of
its rows count as one as that takes. What no cell shows alone, all cells of a task or of a class show together, and then
that holds for all of them. Beyond five rows whole days are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weighbridge.pipeline.baseline.discovery import reported
from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.own_rows import SelfTest
from weighbridge.pipeline.baseline.spans import Floats

# The self-test is a test too: of the cells it doubts, at most this share is doubted wrongly.
DOUBT = Fraction(1, 100)
# Rows that count as one, beyond which whole days are compared.
_MOST = 5.0
# Where more than this part of the cells of a task is doubted one by one, the others only hide it better.
_MANY = 0.25


@dataclass(frozen=True, slots=True)
class Trust:
    """One class, or the retries; one item per series.

    Attributes:
        kept: whether the reference window kept its promise, as far as that can be told.
        by_rows: whether the cell may be judged by its rows.
        cluster: how many rows count as one, 1 or more.
    """

    kept: Mask
    by_rows: Mask
    cluster: Floats


def trust(tests: Sequence[SelfTest], family: Ints) -> list[Trust]:
    """What the self-tests say, one answer for each.

    Args:
        tests: of every class, and of the retries.
        family: per series its task.
    """
    kept = [~no for no in _doubted([test.disagreement() for test in tests])]
    doubted = [~own | no for own, no in zip(kept, _doubted([test.scattered() for test in tests]), strict=True)]
    # What one cell scatters is no reason to doubt the others, unless it is no longer one.
    rest = [test.without(no) for test, no in zip(tests, doubted, strict=True)]
    cluster = [
        np.maximum(np.where(no, test.dispersion(), 1.0), _of_most(test, no, family))
        for test, no in zip(tests, doubted, strict=True)
    ]
    for groups in (family, np.zeros(len(family), np.int64)):
        sums = [test.together(groups) for test in rest]
        for place, (each, no) in enumerate(zip(sums, _doubted([each.scattered() for each in sums]), strict=True)):
            found = np.where(no, each.dispersion(), 1.0)
            cluster[place] = np.maximum(cluster[place], found[groups])
    return [
        Trust(own, own & (size <= _MOST), np.clip(size, 1.0, _MOST)) for own, size in zip(kept, cluster, strict=True)
    ]


def _of_most(test: SelfTest, doubted: Mask, family: Ints) -> Floats:
    """Per cell how far the cells of its task scatter, where many of them are doubted one by one; else 1.

    The median of the cells: one incident nobody has looked at yet says nothing about the others.
    """
    out, scatter = np.ones(len(family)), test.dispersion()
    for task in np.unique(family[doubted]):
        own = (family == task) & (test.days > 0)
        if 1 < (doubted & own).sum() > _MANY * own.sum():
            out[family == task] = np.median(scatter[own])
    return out


def _doubted(chances: list[Floats]) -> list[Mask]:
    whole = np.concatenate(chances) if chances else np.empty(0)
    found = reported([whole, np.empty(0), np.empty(0)], DOUBT)[0]
    return np.split(found, np.cumsum([len(values) for values in chances])[:-1])
