"""Do raters agree beyond chance? Cohen's kappa (1960) of two, Fleiss' (1971) of several, Krippendorff's alpha of any.

1: always; 0: as often as chance gives; below 0: less. Words are categories: nothing is nearer to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """Agreement of raters.

    Attributes:
        items: that at least two raters judged.
        cohen: of exactly two raters, over the items both judged; else null.
        fleiss: where every item was judged equally often, at least twice; else null.
        krippendorff: over all items judged at least twice; null where there is none.
    """

    items: int
    cohen: float | None
    fleiss: float | None
    krippendorff: float | None


def agreement(items: Sequence[Mapping[str, str]]) -> Agreement:
    """Measure agreement.

    Args:
        items: per item the word of each rater.
    """
    several = [item for item in items if len(item) >= 2]
    raters = sorted({rater for item in several for rater in item})
    sizes = {len(item) for item in items}
    return Agreement(
        len(several),
        _cohen([(item[raters[0]], item[raters[1]]) for item in several]) if len(raters) == 2 else None,
        _fleiss(several) if len(sizes) == 1 and several else None,
        _krippendorff(several) if several else None,
    )


def _beyond(seen: float, expected: float) -> float | None:
    """Null where everybody says one word: chance explains all of it, and nothing is left."""
    return None if expected >= 1 else (seen - expected) / (1 - expected)


def _cohen(pairs: Sequence[tuple[str, str]]) -> float | None:
    seen = sum(one == other for one, other in pairs) / len(pairs)
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    return _beyond(seen, sum(first[word] * second[word] for word in first) / len(pairs) ** 2)


def _fleiss(items: Sequence[Mapping[str, str]]) -> float | None:
    size = len(items[0])
    counts = [Counter(item.values()) for item in items]
    seen = sum(sum(n * (n - 1) for n in count.values()) for count in counts) / (len(items) * size * (size - 1))
    whole = sum(counts, Counter[str]())
    return _beyond(seen, sum((n / whole.total()) ** 2 for n in whole.values()))


def _krippendorff(items: Sequence[Mapping[str, str]]) -> float | None:
    whole = sum((Counter(item.values()) for item in items), Counter[str]())
    total = whole.total()
    apart = sum(
        sum(n * (len(item) - n) for n in Counter(item.values()).values()) / (len(item) - 1) for item in items
    )  # fmt: skip
    expected = sum(n * (total - n) for n in whole.values()) / (total - 1)
    return None if not expected else 1 - apart / expected
