"""Which order statistics enclose a median, whatever the distribution: exact from the binomial of a fair coin.

Of n independent values the number below the median is binomial(n, 1/2), if none lies on it; ties only make the
interval surer. So values of rank k and n + 1 - k enclose it with a chance of 1 - 2 P(binomial < k), at least.

    n = 6: ranks 1 and 6, 0.96875        n = 100: ranks 40 and 61, 0.9648
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

COVERAGE = 0.95
# Terms further from the middle than so many standard deviations are bounded instead of added.
_REACH = 9.0


class Ranks(NamedTuple):
    """The two ranks, from 1, and how surely the values of these ranks enclose the median, at least."""

    lower: int
    upper: int
    coverage: float


@lru_cache(maxsize=4096)
def median_ranks(values: int, coverage: float = COVERAGE) -> Ranks | None:
    """The innermost pair of ranks that encloses the median so surely; null where there are too few values.

    Args:
        values: how many there are.
        coverage: below 1.
    """
    spare = (1.0 - coverage) / 2
    first = max(0, math.floor(values / 2 - _REACH * math.sqrt(values) / 2) - 1)
    # Hoeffding: P(binomial <= n/2 - t) <= exp(-2 t^2 / n); what is left out is put in as its bound.
    below = 0.0 if first == 0 else math.exp(-_REACH * _REACH / 2)
    rank, inside = 0, below
    for successes in range(first, values // 2 + 1):
        below += math.exp(_log_choose(values, successes) - values * math.log(2))
        if below > spare:
            break
        rank, inside = successes + 1, below
    return Ranks(rank, values + 1 - rank, 1.0 - 2 * inside) if rank else None


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
