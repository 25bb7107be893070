"""Which of all cells of a day are reported: Benjamini and Hochberg's rule, with weights that were fixed beforehand.

Of what is reported, at most the share q is expected to be false, however many cells there are. Tests that compare whole
days cannot have small p-values (the smallest is one in the number of days they were compared with), tests of rows can;
so the rule is asked with weights (Genovese, Roeder and Wasserman 2006) that leave each kind of test its own part of q.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from weighbridge.pipeline.baseline.history import Mask
from weighbridge.pipeline.baseline.spans import Floats

# Parts of q: by rows, by days of siblings, by counts of days. Those of kinds that have no cells go to the others.
PARTS = (Fraction(20, 100), Fraction(38, 100), Fraction(42, 100))


def reported(kinds: Sequence[Floats], q: Fraction) -> list[Mask]:
    """Which cells of each kind of test are reported.

    Args:
        kinds: p-values per kind, in the order of `PARTS`; NaN where a cell was not tested.
        q: share of false cells among those reported.
    """
    sizes = [int(np.isfinite(values).sum()) for values in kinds]
    shared = sum(part for part, size in zip(PARTS, sizes, strict=True) if size)
    if not shared:
        return [np.zeros(len(values), bool) for values in kinds]
    whole = sum(sizes)
    # The weights of all cells have the mean 1.
    weights = [float(part / shared * whole / size) if size else 1.0 for part, size in zip(PARTS, sizes, strict=True)]
    weighted = [values / weight for values, weight in zip(kinds, weights, strict=True)]
    every = np.concatenate(weighted)
    ordered = np.sort(every[np.isfinite(every)])
    passing = np.flatnonzero(ordered <= float(q) * np.arange(1, whole + 1) / whole)
    bound = ordered[passing[-1]] if passing.size else -1.0
    return [np.isfinite(values) & (values <= bound) for values in weighted]
