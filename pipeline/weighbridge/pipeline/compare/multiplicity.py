"""Several tests at once: Holm (1979) for a gate, where no error may pass; Benjamini-Hochberg (1995) for exploring."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values: the chance of any false rejection stays at the level they are held against."""
    order = sorted(range(len(p)), key=p.__getitem__)
    out = [1.0] * len(p)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[at]))
        out[at] = highest
    return out


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values: the expected share of false rejections stays at the level they are held against."""
    order = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    out = [1.0] * len(p)
    lowest = 1.0
    for rank, at in enumerate(order):
        lowest = min(lowest, len(p) / (len(p) - rank) * p[at])
        out[at] = lowest
    return out
