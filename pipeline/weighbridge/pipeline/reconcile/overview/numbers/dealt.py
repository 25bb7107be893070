"""Whole numbers in no order, put into order with their places."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints

# More numbers than this are dealt out into parts first, which lie near the processor while they are put into order.
_NEAR = 2**15


def in_order(numbers: Ints) -> tuple[Ints, Ints]:
    """Some numbers, rising, and where each of them lay; equal ones as they lay.

    NumPy deals out numbers of 8 or 16 bits by their digits, instead of comparing them. So they are dealt out by their
    first bits, and what is left to be ordered is nearly in order: for a quarter of the time that ordering them takes at
    once. Where they are so few, or so close, that dealing out is no help, it is no harm.

    Args:
        numbers: at least one.
    """
    if len(numbers) <= _NEAR:
        return _near(numbers)
    first = _first(numbers, np.uint8)
    places = np.argsort(first, kind="stable")
    held = numbers.take(places)
    ends = np.cumsum(np.bincount(first)).tolist()
    for start, end in pairwise([0, *ends]):
        if start < end:
            held[start:end], order = _near(held[start:end])
            places[start:end] = places[start:end].take(order)
    return held, places


def _near(numbers: Ints) -> tuple[Ints, Ints]:
    places = np.argsort(_first(numbers, np.uint16), kind="stable")
    held = numbers.take(places)
    order = np.argsort(held, kind="stable")
    return held.take(order), places.take(order)


def _first(numbers: Ints, kind: type[np.unsignedinteger[Any]]) -> np.ndarray[Any, Any]:
    """Of each number the first bits of its distance from the least one, as many as a number of a kind has."""
    least, most = int(numbers.min()), int(numbers.max())
    shift = np.uint64(max(0, (most - least).bit_length() - np.iinfo(kind).bits))
    # As numbers without a sign, for the distance of the two ends has 64 bits.
    origin, far = np.int64(least).view(np.uint64), numbers.view(np.uint64)
    out = np.empty(len(numbers), kind)
    for start in range(0, len(out), _NEAR):
        out[start : start + _NEAR] = (far[start : start + _NEAR] - origin) >> shift
    return out
