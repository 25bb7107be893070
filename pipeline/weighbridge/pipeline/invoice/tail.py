"""The ends of cells: from which moment on the calls of a cell make up an amount, and what they come to.

Only here single calls are looked at, and only those of the cells that are asked about: their tokens at the price that
a token of their bundle has in each slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from weighbridge.pipeline.invoice.billing import Billing, Figure, Sum
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger, charged_calls
from weighbridge.pipeline.invoice.ours.clocks import clocks
from weighbridge.pipeline.invoice.rates import PLACES, WIDE
from weighbridge.pipeline.invoice.spans import MOMENT
from weighbridge.pipeline.invoice.zones import local_day
from weighbridge.schemas.lattice import CROSSED_CELLS

# Cells are looked at together, so many at a time, which bounds memory.
_AT_ONCE = 100
_MONEY, _COUNT = pl.Decimal(38, 18), pl.Decimal(38, 0)
_OF_CLASS = {
    str(name): [str(cell.name) for cell in CROSSED_CELLS if cell.token_class == name]
    for name in {cell.token_class for cell in CROSSED_CELLS}
}


def batched(keys: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    """The cells in lots of a size."""
    for place in range(0, len(keys), size):
        yield keys[place : place + size]


class Rate(NamedTuple):
    """A slot of a bundle in a cell: what each token costs, or, of a single call, what all of them do."""

    number: int
    place: int
    column: str
    unit: Decimal | None
    flat: Decimal | None
    model: str | None
    token_class: str | None
    currency: str | None


def tail(
    ledger: Ledger, billing: Billing, gaps: Mapping[Key, tuple[Figure, datetime]], given: Mapping[Key, Figure]
) -> dict[Key, datetime]:
    """Cell -> the latest moment from which on its calls make up exactly so many tokens and so much money.

    Args:
        ledger: both sides.
        billing: how calls are charged.
        gaps: cell -> what they should make up, as far as it is known, and the earliest moment to begin at.
        given: cell -> what all its calls make up.
    """
    able = {key: gap for key, gap in gaps.items() if key in given and _can(gap[0], given[key])}
    found: dict[Key, datetime] = {}
    for keys in batched(sorted(able, key=repr), _AT_ONCE):
        found |= _tail(ledger, billing, keys, able)
    return found


def _tail(
    ledger: Ledger, billing: Billing, keys: Sequence[Key], able: Mapping[Key, tuple[Figure, datetime]]
) -> dict[Key, datetime]:
    calls = _calls(ledger, billing, keys)
    if calls is None:
        return {}
    wanted = pl.DataFrame(
        [(place, able[key][0].tokens, able[key][0].money, able[key][1]) for place, key in enumerate(keys)],
        schema={"place": pl.Int64, "of_tokens": pl.Int64, "of_money": _MONEY, "earliest": MOMENT},
        orient="row",
    )
    own = calls.join(wanted, on="place").filter(pl.col("at") >= pl.col("earliest"))
    moments = own.group_by("place", "at", "of_tokens", "of_money").agg(_known_sum("tokens"), _known_sum("money"))
    from_end = moments.sort("at", descending=True).with_columns(
        pl.when(pl.col(name).is_null().cast(pl.Int64).cum_sum().over("place") == 0).then(
            pl.col(name).cum_sum().over("place")
        )
        for name in ("tokens", "money")
    )
    same = pl.all_horizontal(
        (pl.col(f"of_{name}").is_null() | (pl.col(name) == pl.col(f"of_{name}"))).fill_null(value=False)
        for name in ("tokens", "money")
    )
    found = from_end.filter(same).group_by("place").agg(pl.col("at").max())
    return {keys[place]: moment for place, moment in found.iter_rows()}


def cuts(
    ledger: Ledger, billing: Billing, dropped: Mapping[Key, datetime], moved: Mapping[Key, tuple[Key, datetime]]
) -> Iterator[tuple[Sum, int | None, Decimal | None]]:
    """What is taken out of cells as not counted yet, and what comes into others as counted late.

    Args:
        ledger: both sides.
        billing: how calls are charged.
        dropped: cell -> calls from this moment on are not charged in it.
        moved: cell -> (cell, moment): calls of that cell from that moment on are charged here, too.
    """
    asked = [(key, key, moment, -1) for key, moment in dropped.items()]
    asked += [(source, key, moment, 1) for key, (source, moment) in moved.items()]
    sources = list(dict.fromkeys(source for source, *_ in asked))
    calls = _calls(ledger, billing, sources)
    if calls is None:
        return
    for source, key, moment, sign in asked:
        late = calls.filter(pl.col("place") == sources.index(source), pl.col("at") >= pl.lit(moment))
        by = ("day", "model", "token_class", "currency")
        summed = late.group_by(by).agg(_known_sum("tokens"), _known_sum("money"))
        for day, model, token_class, currency, tokens, money in summed.sort(by).iter_rows():
            about = Sum(key, day, model, token_class, currency)
            yield about, _signed(tokens, sign), _signed(money, sign)


def _signed(value: Any, sign: int) -> Any:
    return None if value is None else sign * value


def _can(gap: Figure, given: Figure) -> bool:
    """Whether some calls of a cell can make it up at all: something, and no more than all of them."""
    told = [(a, b) for a, b in zip(gap, given, strict=True) if a is not None]
    return bool(told) and all(b is not None and 0 < a <= b for a, b in told)


def _calls(ledger: Ledger, billing: Billing, keys: Sequence[Key]) -> pl.DataFrame | None:
    """place (of the cell), at, day, tokens, money, model, token_class, currency: the calls of cells by slot."""
    rates = list(_rates(ledger, billing, keys)) if keys else []
    if not rates:
        return None
    table = pl.DataFrame(
        rates,
        schema={"number": pl.UInt32, "place": pl.Int64, "column": pl.String, "unit": _MONEY, "flat": _MONEY,
                "model": pl.String, "token_class": pl.String, "currency": pl.String},
        orient="row",
    )  # fmt: skip
    moment = clocks(ledger.contract.zone)[billing.clock]
    frames = []
    for (column,), own in table.partition_by("column", as_dict=True).items():
        members = ledger.calls.members.join(own.select("number").unique(), on="number", how="semi").select(
            "number", moment.alias("at"), _tokens(str(column)).alias("tokens")
        )
        some = members.filter((pl.col("tokens") != 0).fill_null(value=True))
        frames.append(some.join(own.drop("column"), on="number"))
    money = pl.coalesce("flat", pl.col("tokens").cast(_COUNT) * pl.col("unit")).cast(_MONEY)
    out = pl.concat(frames).with_columns(money=money, day=local_day(pl.col("at"), ledger.contract.zone))
    return out.drop("unit", "flat")


def _rates(ledger: Ledger, billing: Billing, keys: Sequence[Key]) -> Iterator[Rate]:
    places = {key: place for place, key in enumerate(keys)}
    for bundle in charged_calls(billing):
        number = bundle.places[billing.clock].span
        if number < 0:
            continue
        for slot in ledger.slots(bundle, apart=True):
            key = ledger.grouping.of_slot(bundle, slot, ledger.spans[number])
            if key not in places or slot.tokens == 0:
                continue
            one = bundle.calls == 1
            unit = None if one or slot.money is None or not slot.tokens else _unit(slot.money, slot.tokens)
            yield Rate(bundle.number, places[key], slot.column, unit, slot.money if one else None, bundle.named,
                       key.token_class, bundle.currency)  # fmt: skip


def _unit(money: Decimal, tokens: int) -> Decimal | None:
    """What one token costs; null where that is no decimal of 18 places, so that no price per token made the sum."""
    unit = WIDE.divide(money, Decimal(tokens))
    told = unit.quantize(PLACES, context=WIDE)
    return told if WIDE.multiply(told, Decimal(tokens)) == money else None


def _tokens(column: str) -> pl.Expr:
    """The tokens of a slot: of a class, what is left of it as text."""
    left = pl.col(column)
    for cell in _OF_CLASS.get(column, ()):
        left -= pl.col(cell).fill_null(0)
    return left


def _known_sum(name: str) -> pl.Expr:
    """A sum that is not known where any part of it is not."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
