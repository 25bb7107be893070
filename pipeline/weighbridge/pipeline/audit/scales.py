"""The bounded views of a gap that are bet on: clipped at three numbers of tokens, and relative to the size.

One scale sees a token on every answer, another a burst of hundreds on few; nobody has to know beforehand which it will
be. Clipped values are bounded, so no single answer decides, and their mean is what a tolerance is calibrated for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOKENS: tuple[int, ...] = (4, 32, 256)
NAMES: tuple[str, ...] = (*(f"{size}_tokens" for size in TOKENS), "relative")


def scaled(gaps: Ints, sizes: Ints) -> list[Floats]:
    """The gaps on every scale, each within [-1, 1], in the order of `NAMES`.

    The token scales are powers of two, so that their values and sums of them are exact.

    Args:
        gaps: reported - observed, tokens, of any shape.
        sizes: observed tokens, 0 or more. Beside nothing observed any gap is relatively as large as can be.
    """
    views = [np.clip(gaps, -size, size) / float(size) for size in TOKENS]
    return [*views, relative(gaps, sizes)]


def relative(gaps: Ints, sizes: Ints) -> Floats:
    """gap / size within [-1, 1]."""
    out: Floats = np.clip(gaps / np.maximum(sizes, 1), -1.0, 1.0)
    return np.where(sizes > 0, out, np.sign(gaps).astype(np.float64))
