"""The search for the smallest set of amounts that adds up exactly, as joins: what an amount costs is a row, not a plan.

Every candidate amount of a row is a row of its own. Sets of one amount are those rows; sets of one more are those sets
beside the amounts of later causes. Rows for which a set of some size fits leave the search before the next size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, first_of, tokens, words
from weighbridge.pipeline.reconcile.recipe import stacked

# An explanation of more parts than this is a coincidence: with some amounts at hand, some sum always fits.
LARGEST_SET = 4
# Rivals that are kept by name beside the set that was taken.
RIVALS = 8
_AMOUNTS = 8  # of one cause, at most
_CAUSES = 64  # of one direction, at most
_PLACES = tuple(f"place_{number}" for number in range(1, LARGEST_SET + 1))


@dataclass(frozen=True, slots=True)
class Offer:
    """One candidate amount.

    Attributes:
        place: cause and amount as one number, in the documented order.
        cause: its code.
        column: where the amount stands; null where it cannot apply.
    """

    place: int
    cause: str
    column: str

    def is_taken(self) -> Expr:
        """Whether the set that was taken holds it."""
        return reduce(or_, ((nw.col(name) == self.place).fill_null(value=False) for name in _PLACES))


def offers_of(amounts: Mapping[str, int]) -> dict[str, tuple[Offer, ...]]:
    """The offers of some causes, which are given in the documented order, each with the number of its amounts.

    Raises:
        ValueError: more causes, or amounts of one, than a place can tell apart.
    """
    if len(amounts) > _CAUSES or max(amounts.values(), default=0) > _AMOUNTS:
        raise ValueError(f"at most {_CAUSES} causes with {_AMOUNTS} amounts each can be searched; raise these limits")
    return {
        code: tuple(Offer(place * _AMOUNTS + number, code, f"offer_{code}_{number}") for number in range(count))
        for place, (code, count) in enumerate(amounts.items())
    }


def with_smallest(rows: Frame, offers: Mapping[str, Sequence[Offer]]) -> Frame:
    """The rows with the smallest set of offers that adds up to `remaining`; of those, the first in order.

    Order: by the causes of a set, then by their amounts. Of one cause a set holds at most one amount.

    Args:
        rows: one row per attempt, with `remaining` and the columns of the offers.
        offers: `offers_of` the causes.

    Returns:
        The same rows with the places that were taken (`Offer.is_taken`; all null where nothing fits), `fits` (how many
        sets of that size do, null where none does) and `alternatives` (the others, as `cause+cause,cause`, up to
        `RIVALS` of them; null where none).
    """
    flat = [offer for own in offers.values() for offer in own]
    if not flat:
        return rows.with_columns(**dict.fromkeys(_PLACES, tokens()), fits=tokens(), alternatives=words())
    single = _long(rows, flat)
    sets = single.select(
        *KEY, "remaining", "cause", total=nw.col("amount"), causes=nw.col("cause"), amounts=nw.col("number"),
        **_places(1),
    )  # fmt: skip
    fitting = []
    for size in range(1, min(LARGEST_SET, len(offers)) + 1):
        if size > 1:
            sets = _longer(sets, single, size)
        fit = sets.filter(nw.col("total") == nw.col("remaining"))
        fitting.append(fit.select(*KEY, *_PLACES, rank=nw.col("causes") * _AMOUNTS**size + nw.col("amounts")))
        sets = sets.join(fit.select(*KEY).unique(), on=list(KEY), how="anti")
    return rows.join(_taken(stacked(fitting), list(offers)), on=list(KEY), how="left")


def _long(rows: Frame, offers: Sequence[Offer]) -> Frame:
    """attempt_lo, attempt_hi, remaining, place, cause, number, amount: one row per amount that can apply."""
    named = rows.select(*KEY, "remaining", **{str(offer.place): nw.col(offer.column) for offer in offers})
    long = named.unpivot(
        [str(offer.place) for offer in offers],
        index=[*KEY, "remaining"],
        variable_name="place",
        value_name="amount",
    )
    known = long.filter(~nw.col("amount").is_null()).with_columns(place=nw.col("place").cast(nw.Int64))
    return known.with_columns(cause=nw.col("place") // _AMOUNTS, number=nw.col("place") % _AMOUNTS)


def _places(size: int) -> dict[str, Expr]:
    """The places of a set of one amount; those it has not are null."""
    return {name: nw.col("place") if number < size else tokens() for number, name in enumerate(_PLACES)}


def _longer(sets: Frame, single: Frame, size: int) -> Frame:
    """Every set with one amount of a later cause added."""
    more = single.select(*KEY, "place", "number", "amount", later=nw.col("cause"))
    both = sets.join(more, on=list(KEY), how="inner").filter(nw.col("later") > nw.col("cause"))
    return both.select(
        *KEY,
        "remaining",
        cause=nw.col("later"),
        total=nw.col("total") + nw.col("amount"),
        causes=nw.col("causes") * _CAUSES + nw.col("later"),
        amounts=nw.col("amounts") * _AMOUNTS + nw.col("number"),
        **{name: nw.col("place") if number == size - 1 else nw.col(name) for number, name in enumerate(_PLACES)},
    )


def _taken(fitting: Frame, causes: Sequence[str]) -> Frame:
    """Per attempt the first set that fits, and the names of the next ones. All of an attempt's sets are of one size."""
    ranked = fitting.with_columns(one=tokens(1)).with_columns(
        nth=nw.col("one").cum_sum().over(*KEY, order_by="rank"), name=_name(causes)
    )
    first = {name: nw.when(nw.col("nth") == 1).then(nw.col(name)).max() for name in _PLACES}
    others = {f"rival_{n}": nw.when(nw.col("nth") == n + 1).then(nw.col("name")).max() for n in range(1, RIVALS + 1)}
    found = ranked.group_by(*KEY).agg(**first, **others, fits=nw.col("nth").max())
    names = nw.concat_str(*(nw.col(name) for name in others), separator=",", ignore_nulls=True)
    return found.select(*KEY, *_PLACES, "fits", alternatives=nw.when(nw.col("fits") > 1).then(names))


def _name(causes: Sequence[str]) -> Expr:
    """A set by its causes, as `cause+cause`."""
    codes = {name: nw.col(name) // _AMOUNTS for name in _PLACES}
    parts = [first_of([(codes[name] == n, words(code)) for n, code in enumerate(causes)], words()) for name in codes]
    return nw.concat_str(*parts, separator="+", ignore_nulls=True)
