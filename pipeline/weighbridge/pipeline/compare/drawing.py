"""Resamples, as how often each cluster is in each of them; sums over resamples are then one product of matrices.

All measures of all strategies over the same pairs have the same resamples, for there is one seed: they are drawn once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Times = npt.NDArray[np.uint16]
_ROWS: Final = 128  # resamples at once, so that memory stays bounded
_KEPT: Final = 40_000_000  # counts that are kept for the next measure: 80 MB at most
_MOST: Final = np.iinfo(np.uint16).max


def drawn(columns: Reals, resamples: int, seed: int) -> Reals:
    """Sums over resamples.

    Args:
        columns: numbers per cluster (clusters x columns).
        resamples: how many; each draws as many clusters as there are, with replacement.
        seed: the same seed gives the same resamples.

    Returns:
        resamples x columns.
    """
    many = len(columns)
    parts = _kept(many, resamples, seed) if many * resamples <= _KEPT else _times(many, resamples, seed)
    return np.concatenate([part.astype(np.float64) @ columns for part in parts])


@lru_cache(maxsize=1)
def _kept(many: int, resamples: int, seed: int) -> tuple[Times, ...]:
    return tuple(_times(many, resamples, seed))


def _times(many: int, resamples: int, seed: int) -> Iterator[Times]:
    """How often each cluster is in each resample, some resamples at once."""
    source = np.random.default_rng(seed)
    for at in range(0, resamples, _ROWS):
        rows = min(_ROWS, resamples - at)
        places = source.integers(0, many, size=(rows, many), dtype=np.int32).astype(np.int64)
        places += np.arange(rows)[:, None] * many
        counts = np.bincount(places.ravel(), minlength=rows * many)
        # That one cluster is drawn so often has no chance worth a thought; it would be told short, not wrapped round.
        yield np.minimum(counts, _MOST).astype(np.uint16).reshape(rows, many)
