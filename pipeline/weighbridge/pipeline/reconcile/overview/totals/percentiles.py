"""Group and figure as one whole number, and exact percentiles of such numbers, each of which may count many times.

Numbers that were sorted one by one, numbers that were counted in their place and numbers that are taken back (they
count below nought) are put together here; the percentile of a group is read from its place among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weighbridge.pipeline.reconcile.overview.groups import PERCENT
from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints
from weighbridge.schemas.errors import LakeError

BITS = 42
# Figures lie within this on both sides of nought: `figures.LARGEST` is half of it.
SHIFT = 2 ** (BITS - 1)
MOST_GROUPS = 2 ** (63 - BITS)


class Counted(NamedTuple):
    """Packed numbers, rising and each once, and how often each counts."""

    numbers: Ints
    counts: Ints


NOTHING = Counted(NONE, NONE)


def packed(group: Ints, figure: Ints) -> Ints:
    """Group, from nought to below `MOST_GROUPS`, and figure, within `SHIFT`, as one number that sorts as both do."""
    numbers: Ints = (group << BITS) + figure + SHIFT
    return numbers


def counted(rising: Ints) -> Counted:
    """Rising packed numbers, equal ones following one another."""
    if not len(rising):
        return NOTHING
    first = np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1]]))
    return Counted(rising[first], np.diff(np.append(first, len(rising))))


def together(several: Sequence[Counted]) -> Counted:
    """The sum of several, of which some may count below nought.

    Raises:
        LakeError: a number counts below nought in all.
    """
    held = [each for each in several if len(each.numbers)]
    if not held:
        return NOTHING
    numbers, counts = (np.concatenate(column) for column in zip(*held, strict=True))
    if len(held) > 1:
        # Few runs that rise: merged rather than sorted.
        order = np.argsort(numbers, kind="stable")
        numbers, counts = numbers[order], counts[order]
        first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        numbers, counts = numbers[first], np.add.reduceat(counts, first)
    if counts.min() < 0:
        raise LakeError("keys were taken back that were never added; nothing is told. Run `weighbridge validate`.")
    met = counts > 0
    return Counted(numbers, counts) if met.all() else Counted(numbers[met], counts[met])


def percentiles(held: Counted) -> tuple[Ints, Ints]:
    """Group and percentile in hundredths of each group."""
    if not len(held.numbers):
        return NONE, NONE
    group = held.numbers >> BITS
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    reached = np.cumsum(held.counts)
    ends = reached[np.append(starts[1:], len(group)) - 1]
    before = np.concatenate([[0], ends[:-1]])
    sizes = ends - before
    whole, part = np.divmod(PERCENT * (sizes - 1), 100)
    places = (before + whole, before + np.minimum(whole + 1, sizes - 1))
    below, above = (_figure(held.numbers[np.searchsorted(reached, place, "right")]) for place in places)
    return group[starts], below * 100 + (above - below) * part


def _figure(numbers: Ints) -> Ints:
    figures: Ints = (numbers & (2 * SHIFT - 1)) - SHIFT
    return figures
