"""The smallest set of amounts, against a search by hand over every set there is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product

import polars as pl
import pytest

from weighbridge.pipeline.reconcile.explain.search import LARGEST_SET, RIVALS, offers_of, with_smallest
from weighbridge.pipeline.reconcile.frames import collected, frame_of

CAUSES = {"a": 2, "b": 1, "c": 3, "d": 1, "e": 2, "f": 1}
OFFERS = offers_of(CAUSES)
COLUMNS = [offer.column for own in OFFERS.values() for offer in own]


def in_order(row: dict[str, int | None]) -> Iterator[tuple[str, ...]]:
    """Every set of columns: by size, then by causes, then by amounts."""
    for size in range(1, LARGEST_SET + 1):
        for chosen in combinations(OFFERS.values(), size):
            for offers in product(*chosen):
                if all(row[offer.column] is not None for offer in offers):
                    yield tuple(offer.column for offer in offers)


def by_hand(row: dict[str, int | None]) -> tuple[tuple[str, ...], int | None, str | None]:
    """The columns taken, how many sets of that size fit, and the causes of the others."""
    fitting = [s for s in in_order(row) if sum(row[name] or 0 for name in s) == row["remaining"]]
    same = [s for s in fitting if len(s) == len(fitting[0])]
    if not same:
        return (), None, None
    names = ["+".join(name.split("_")[1] for name in s) for s in same[1 : RIVALS + 1]]
    return same[0], len(same), ",".join(names) or None


def searched(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], int | None, str | None]]:
    """The same by joins."""
    found = with_smallest(frame_of(rows), OFFERS)
    taken = {f"takes_{o.column}": o.is_taken() for own in OFFERS.values() for o in own}
    for row in collected(found.with_columns(**taken).sort("attempt_lo")).iter_rows(named=True):
        yield tuple(name for name in COLUMNS if row[f"takes_{name}"]), row["fits"], row["alternatives"]


def test_it_finds_what_a_search_by_hand_finds() -> None:
    """Small amounts of either sign, so that sums meet by chance all the time; up to ten of them a row."""
    draw = random.Random(11)
    rows = [
        {
            "attempt_lo": number,
            "attempt_hi": 7,
            "remaining": draw.choice([-9, -4, 3, 5, 8, 40]),
            **{name: draw.choice([None, None, *range(-6, 0), *range(1, 7)]) for name in COLUMNS},
        }
        for number in range(400)
    ]
    schema = dict.fromkeys(rows[0], pl.Int64())
    found = list(searched(pl.DataFrame(rows, schema=schema)))
    assert found == [by_hand(row) for row in rows]
    sizes = {len(taken) for taken, _, _ in found}
    assert sizes == set(range(LARGEST_SET + 1)), "every size, and rows that nothing fits"
    assert max(fits or 0 for _, fits, _ in found) > RIVALS + 1


def test_more_causes_than_a_place_can_tell_apart_are_refused() -> None:
    """A place is cause and amount in one number."""
    with pytest.raises(ValueError, match="at most 64 causes with 8 amounts each"):
        offers_of({"a": 9})
