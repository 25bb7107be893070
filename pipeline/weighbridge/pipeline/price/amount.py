"""What one reading costs at one row of the price book, class by class, with the reason where it cannot be told.

    amount of a class  =  sum over its modalities: tokens x price / 10**6, an exact decimal of at most 18 places

Where the classes of a direction are not all known, the tokens that are left are priced only if no split of them could
cost anything else: every class that could hold them has the same price, or the row prices one class of the direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact

from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import Modality, PriceStatus, TokenClass, Verdict
from weighbridge.schemas.lattice import (
    CELLS,
    CROSSED_CLASSES,
    INPUT_CLASSES,
    OUTPUT_CLASSES,
    REPORTED_CLASSES,
    SPLIT_MODALITIES,
    Cell,
)

Counts = Mapping[str, int | None]

# Wide enough for every product and sum here; should one ever not fit, it raises instead of rounding.
_EXACT = Context(prec=60, traps=[Inexact])
_MILLION = Decimal(10) ** 6
_ZERO = Decimal(0)
# Which obstacle is told where there are several: first what no price book can mend, then what the user can.
OBSTACLES = (PriceStatus.CONTRADICTORY, PriceStatus.NO_COUNTS, PriceStatus.CLASS_UNPRICED, PriceStatus.SPLIT_UNKNOWN)


@dataclass(frozen=True, slots=True)
class Priced:
    """What a reading costs.

    Attributes:
        amount: the whole reading; null where any part of it is unknown.
        by_class: class -> its cost with all its modalities; null where unknown.
        by_cell: cell -> its cost; the cell of a class's own name is its text.
        status: priced, or why not.
    """

    amount: Decimal | None
    by_class: dict[str, Decimal | None]
    by_cell: dict[str, Decimal | None]
    status: PriceStatus


def price_reading(
    counts: Counts,
    cells: Counts,
    input_total: int | None,
    output_total: int | None,
    verdict: Verdict | str,
    row: PriceRow | None,
) -> Priced:
    """Price one reading.

    Args:
        counts: class -> tokens, all modalities; null where unknown.
        cells: crossed cell -> tokens; null where unknown.
        input_total, output_total: all tokens of a direction; null where unknown.
        verdict: of the reading; a contradictory one is not priced.
        row: the row of its provider, model and day; null where there is none.
    """
    known = [*(counts.get(name) for name in REPORTED_CLASSES), input_total, output_total]
    if verdict == Verdict.CONTRADICTORY:
        return _unpriced(PriceStatus.CONTRADICTORY)
    if all(count is None for count in known):
        return _unpriced(PriceStatus.NO_COUNTS)
    if row is None:
        return _unpriced(PriceStatus.NO_PRICE)
    if row.up_to_input_tokens is not None and (input_total is None or input_total > row.up_to_input_tokens):
        return _unpriced(PriceStatus.NO_COUNTS if input_total is None else PriceStatus.CLASS_UNPRICED)
    bill = _Bill(row, counts, cells)
    bill.add_direction(input_total, INPUT_CLASSES)
    bill.add_direction(output_total, OUTPUT_CLASSES)
    status = next((status for status in OBSTACLES if status in bill.obstacles), PriceStatus.PRICED)
    if status is PriceStatus.CONTRADICTORY:
        return _unpriced(status)
    amount = _sum(bill.parts) if status is PriceStatus.PRICED else None
    return Priced(amount, bill.by_class, bill.by_cell, status)


def text_price(row: PriceRow, token_class: TokenClass) -> Decimal | None:
    """The price of a class's text. A write of unknown lifetime has one where both lifetimes cost the same."""
    known = row.prices.get((token_class, Modality.TEXT))
    if known is None and token_class is TokenClass.CACHE_WRITE_UNKNOWN:
        short, long = _write_prices(row)
        return short if short == long else None
    return known


def possible_prices(row: PriceRow, token_class: TokenClass) -> set[Decimal]:
    """Every price that a token of this class can have."""
    found = {row.prices.get((token_class, modality)) for modality in Modality}
    if token_class is TokenClass.CACHE_WRITE_UNKNOWN and found == {None}:
        found = set(_write_prices(row))
    return {price for price in found if price is not None}


def lifetimes_differ(row: PriceRow, token_class: TokenClass) -> bool:
    """Whether a write of this class could have lived for two different prices."""
    return token_class is TokenClass.CACHE_WRITE_UNKNOWN and len(possible_prices(row, token_class)) > 1


def prices_one(row: PriceRow, classes: Iterable[TokenClass]) -> bool:
    """Whether the row prices exactly one of these classes."""
    return len({token_class for token_class, _ in row.prices} & set(classes)) == 1


def _write_prices(row: PriceRow) -> tuple[Decimal | None, Decimal | None]:
    short = row.prices.get((TokenClass.CACHE_WRITE_5M, Modality.TEXT))
    return short, row.prices.get((TokenClass.CACHE_WRITE_1H, Modality.TEXT))


def _unpriced(status: PriceStatus) -> Priced:
    return Priced(None, dict.fromkeys(REPORTED_CLASSES), dict.fromkeys(cell.name for cell in CELLS), status)


def _sum(parts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for part in parts:
        total = _EXACT.add(total, part)
    return total


@dataclass(slots=True)
class _Bill:
    """A reading while it is priced: the parts whose cost is known, and what stands in the way of the others."""

    row: PriceRow
    counts: Counts
    cells: Counts
    by_class: dict[str, Decimal | None] = field(default_factory=dict)
    by_cell: dict[str, Decimal | None] = field(default_factory=dict)
    parts: list[Decimal] = field(default_factory=list)
    obstacles: set[PriceStatus] = field(default_factory=set)

    def add_direction(self, total: int | None, classes: tuple[TokenClass, ...]) -> None:
        """Price the classes of a direction, and the tokens of it that no known class holds."""
        for token_class in classes:
            cost = self._class(token_class)
            self.by_class[token_class] = cost
            if cost is not None:
                self.parts.append(cost)
        unknown = [token_class for token_class in classes if self.counts.get(token_class) is None]
        if unknown and total is None:
            self.obstacles.add(PriceStatus.NO_COUNTS)
        elif unknown and total is not None:
            self._rest(total - sum(self.counts.get(name) or 0 for name in classes), unknown, classes)

    def _class(self, token_class: TokenClass) -> Decimal | None:
        """The cost of a class: its reported modalities, and what is left of it as text."""
        cells = [Cell(token_class, each) for each in SPLIT_MODALITIES if token_class in CROSSED_CLASSES]
        rest = self.counts.get(token_class)
        if rest is None:
            self.by_cell.update(dict.fromkeys([token_class.value, *(cell.name for cell in cells)]))
            return None
        hidden: set[Decimal | None] = set()
        for cell in cells:
            inside, price = self.cells.get(cell.name), self.row.prices.get((token_class, cell.modality))
            self.by_cell[cell.name] = None if inside is None else self._cost(inside, price)
            hidden |= {price} if inside is None else set()
            rest -= inside or 0
        self.by_cell[token_class] = self._text(token_class, rest, hidden - {None})
        costs = [
            self.by_cell[token_class],
            *(self.by_cell[c.name] for c in cells if self.cells.get(c.name) is not None),
        ]
        known = [cost for cost in costs if cost is not None]
        return _sum(known) if len(known) == len(costs) else None

    def _text(self, token_class: TokenClass, tokens: int, hidden: set[Decimal | None]) -> Decimal | None:
        """The cost of text, unless some of it may be of a modality or lifetime that has another price."""
        price = text_price(self.row, token_class)
        if tokens > 0 and (hidden - {price} or lifetimes_differ(self.row, token_class)):
            self.obstacles.add(PriceStatus.SPLIT_UNKNOWN)
            return None
        return self._cost(tokens, price)

    def _cost(self, tokens: int, price: Decimal | None) -> Decimal | None:
        if tokens < 0:
            self.obstacles.add(PriceStatus.CONTRADICTORY)
            return None
        if tokens and price is None:
            self.obstacles.add(PriceStatus.CLASS_UNPRICED)
            return None
        return _EXACT.divide(_EXACT.multiply(Decimal(tokens), price or _ZERO), _MILLION)

    def _rest(self, tokens: int, unknown: list[TokenClass], classes: tuple[TokenClass, ...]) -> None:
        """Price tokens that are somewhere in the unknown classes."""
        prices = {price for token_class in unknown for price in possible_prices(self.row, token_class)}
        everywhere = all(text_price(self.row, token_class) is not None for token_class in unknown)
        if tokens > 0 and prices and (len(prices) > 1 or not (everywhere or prices_one(self.row, classes))):
            self.obstacles.add(PriceStatus.SPLIT_UNKNOWN)
            return
        cost = self._cost(tokens, next(iter(prices), None))
        if cost is not None:
            self.parts.append(cost)
