"""Which cells may be judged by their rows: what the self-tests of all cells say, alone and together.

A cell that broke its promise, or whose days scatter beyond all chance, is judged by whole days. What no cell shows
alone, all cells of a task or of a class show together: if their days scatter more than rows with nothing in common
could, as many rows count as one as that takes. Beyond two rows, they too are judged by whole days.
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
_MOST = 2.0
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
    steady = [own & ~no for own, no in zip(kept, _doubted([test.scattered() for test in tests]), strict=True)]
    # One that is doubted already is no reason to doubt the others.
    rest = [test.without(~own) for test, own in zip(tests, steady, strict=True)]
    cluster = [np.ones(len(family)) for _ in tests]
    for groups in (family, np.zeros(len(family), np.int64)):
        sums = [test.together(groups) for test in rest]
        doubts = _doubted([each.scattered() for each in sums])
        for place, (each, doubted) in enumerate(zip(sums, doubts, strict=True)):
            found = np.where(doubted, each.dispersion(), 1.0)
            cluster[place] = np.maximum(cluster[place], found[groups])
    return [
        Trust(own, alone & (size <= _MOST) & ~_among(~alone, test.days > 0, family), np.minimum(size, _MOST))
        for own, alone, size, test in zip(kept, steady, cluster, tests, strict=True)
    ]


def _among(doubted: Mask, tested: Mask, family: Ints) -> Mask:
    """Cells of tasks of which many of the tested cells are doubted one by one."""
    of_task, out_of = (np.bincount(family, weights=each.astype(np.float64)) for each in (doubted & tested, tested))
    found: Mask = ((of_task > 1) & (of_task > _MANY * out_of))[family]
    return found


def _doubted(chances: list[Floats]) -> list[Mask]:
    whole = np.concatenate(chances) if chances else np.empty(0)
    found = reported([whole, np.empty(0), np.empty(0)], DOUBT)[0]
    return np.split(found, np.cumsum([len(values) for values in chances])[:-1])
