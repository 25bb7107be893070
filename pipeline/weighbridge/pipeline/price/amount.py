"""What one reading costs at one row of the price book, class by class, with the reason where it cannot be told.

    amount of a class  =  sum over its modalities: tokens x price / 10**6, an exact decimal of at most 18 places

Of a row with prices above a length of input, the reading is priced in the bracket it lies in, or slice by slice; what
is charged by use is added. Where the classes of a direction are not all known, the tokens that are left are priced
only if no split of them could cost anything else: every class that could hold them has the same price, or the row
prices one class of the direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from weighbridge.pipeline.price.bounds import EXACT, within
from weighbridge.pipeline.price.fee import fees_of
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.tier import counted_between, slices
from weighbridge.schemas.enumerations import Modality, PriceStatus, TokenClass, Verdict
from weighbridge.schemas.lattice import (
    CELLS,
    CROSSED_CELLS,
    CROSSED_CLASSES,
    INPUT_CLASSES,
    OUTPUT_CLASSES,
    REPORTED_CLASSES,
    SPLIT_MODALITIES,
    Cell,
)

T = TypeVar("T")
Counts = Mapping[str, int | None]

_MILLION = Decimal(10) ** 6
_ZERO = Decimal(0)
# Which obstacle is told where there are several: first what no price book can mend, then what the user can.
OBSTACLES = (
    PriceStatus.CONTRADICTORY,
    PriceStatus.NO_COUNTS,
    PriceStatus.CLASS_UNPRICED,
    PriceStatus.FEE_UNPRICED,
    PriceStatus.SPLIT_UNKNOWN,
)
_NO_COUNTS: Counts = dict.fromkeys(REPORTED_CLASSES, 0)
_NO_CELLS: Counts = dict.fromkeys((cell.name for cell in CROSSED_CELLS), 0)


@dataclass(frozen=True, slots=True)
class Priced:
    """What a reading costs.

    Attributes:
        amount: the whole reading; null where any part of it is unknown.
        by_class: class -> its cost with all its modalities; null where unknown.
        by_cell: cell -> its cost; the cell of a class's own name is its text.
        status: priced, or why not.
        fees: what is charged by use; null where unknown.
        tier: the highest threshold of the row that it lies above, 0 for none; null where the row has none.
    """

    amount: Decimal | None
    by_class: dict[str, Decimal | None]
    by_cell: dict[str, Decimal | None]
    status: PriceStatus
    fees: Decimal | None = None
    tier: int | None = None


def price_reading(
    counts: Counts,
    cells: Counts,
    input_total: int | None,
    output_total: int | None,
    verdict: Verdict | str,
    row: PriceRow | None,
    used: Mapping[str, int] | None = None,
    *,
    whole: bool = True,
) -> Priced:
    """Price one reading.

    Args:
        counts: class -> tokens, all modalities; null where unknown.
        cells: crossed cell -> tokens; null where unknown.
        input_total, output_total: all tokens of a direction; null where unknown.
        verdict: of the reading; a contradictory one is not priced.
        row: the row of its provider, model, day and terms; null where there is none.
        used: kind of fee -> how often it was used.
        whole: whether it is that of an attempt and not of one of its calls; only the former pays for the request.

    Raises:
        SumError: it costs more than the lake holds.
    """
    known = [*(counts.get(name) for name in REPORTED_CLASSES), input_total, output_total]
    if verdict == Verdict.CONTRADICTORY:
        return unpriced(PriceStatus.CONTRADICTORY)
    if all(count is None for count in known):
        return unpriced(PriceStatus.NO_COUNTS)
    if row is None:
        return unpriced(PriceStatus.NO_PRICE)
    fewest, most = counted_between(row.counted, counts, input_total)
    lowest = row.bracket_of(fewest)
    highest = max(lowest, row.bracket_of(most))
    uncounted = PriceStatus.NO_COUNTS if input_total is None else PriceStatus.SPLIT_UNKNOWN
    fees = fees_of(row.fees, used or {}, whole=whole)
    totals = (input_total, output_total)
    if row.marginal and highest:
        if fewest != most:
            return unpriced(uncounted)
        return _in_slices(row, counts, cells, totals, fees, highest)
    found = [_in_bracket(row, at, counts, cells, totals, fees) for at in range(lowest, highest + 1)]
    return agreed(found, uncounted)


def agreed(found: Sequence[Priced], otherwise: PriceStatus) -> Priced:
    """What a reading costs where each of these may be it: what they have in common, with `otherwise` where they differ.

    A reading whose price does not hang on what is unknown has a known price.
    """
    first = found[0]
    if all(each == first for each in found):
        return first
    same = all((each.amount, each.status) == (first.amount, first.status) for each in found)
    return Priced(
        first.amount if same else None,
        {name: _common(each.by_class[name] for each in found) for name in first.by_class},
        {name: _common(each.by_cell[name] for each in found) for name in first.by_cell},
        first.status if same else otherwise,
        _common(each.fees for each in found),
        _common(each.tier for each in found),
    )


def unpriced(status: PriceStatus) -> Priced:
    """A reading nothing of which is priced."""
    return Priced(None, dict.fromkeys(REPORTED_CLASSES), dict.fromkeys(cell.name for cell in CELLS), status)


def _in_bracket(
    row: PriceRow,
    at: int,
    counts: Counts,
    cells: Counts,
    totals: tuple[int | None, int | None],
    fees: Decimal | PriceStatus,
) -> Priced:
    """The reading as one that lies in this bracket whole."""
    bracket = row.brackets[at]
    if not bracket.prices:
        return unpriced(PriceStatus.CLASS_UNPRICED)
    bill = _Bill(row.within(bracket), counts, cells)
    for total, classes in zip(totals, (INPUT_CLASSES, OUTPUT_CLASSES), strict=True):
        bill.add_direction(total, classes)
    return _billed(row, bracket.tier, [bill], fees)


def _in_slices(
    row: PriceRow,
    counts: Counts,
    cells: Counts,
    totals: tuple[int | None, int | None],
    fees: Decimal | PriceStatus,
    highest: int,
) -> Priced:
    """The reading in slices: the tokens of each bracket at its own prices."""
    counted = {str(name): counts.get(name) or 0 for name in row.counted}
    mixed = {cell.name: cells.get(cell.name) for cell in CROSSED_CELLS if cell.token_class in row.counted}
    if any(count < 0 for count in counted.values()):
        return unpriced(PriceStatus.CONTRADICTORY)
    if any(mixed.values()):
        # Which tokens of a class lie beyond the threshold is told, but not of which modality they are.
        return unpriced(PriceStatus.SPLIT_UNKNOWN)
    bills = []
    inside = slices(row.brackets, row.counted, counted)
    beyond = sum(count for part in inside[1:] for count in part.values())
    for at, (bracket, part) in enumerate(zip(row.brackets, inside, strict=True)):
        others = (counts, cells) if at == 0 else (_NO_COUNTS, _NO_CELLS)
        bill = _Bill(row.within(bracket), {**others[0], **part}, {**others[1], **mixed})
        rest = (None if totals[0] is None else totals[0] - beyond, totals[1]) if at == 0 else (sum(part.values()), 0)
        for total, classes in zip(rest, (INPUT_CLASSES, OUTPUT_CLASSES), strict=True):
            bill.add_direction(total, classes)
        bills.append(bill)
    return _billed(row, row.brackets[highest].tier, bills, fees)


def _billed(row: PriceRow, tier: int, bills: Sequence[_Bill], fees: Decimal | PriceStatus) -> Priced:
    """The sum of some bills and the fees of a reading."""
    obstacles = {status for bill in bills for status in bill.obstacles}
    if isinstance(fees, PriceStatus):
        obstacles.add(fees)
    status = next((status for status in OBSTACLES if status in obstacles), PriceStatus.PRICED)
    if status is PriceStatus.CONTRADICTORY:
        return unpriced(status)
    charged = None if isinstance(fees, PriceStatus) else fees
    parts = [part for bill in bills for part in bill.parts]
    amount = within(_sum([*parts, charged or _ZERO]), "costs of a reading") if status is PriceStatus.PRICED else None
    by_class, by_cell = ([getattr(bill, name) for bill in bills] for name in ("by_class", "by_cell"))
    return Priced(amount, _added(by_class), _added(by_cell), status, charged, tier if row.above else None)


def _added(tables: Sequence[dict[str, Decimal | None]]) -> dict[str, Decimal | None]:
    if len(tables) == 1:
        return tables[0]
    out: dict[str, Decimal | None] = {}
    for name in tables[0]:
        costs = [table[name] for table in tables]
        known = [cost for cost in costs if cost is not None]
        out[name] = _sum(known) if len(known) == len(costs) else None
    return out


def _common(values: Iterable[T | None]) -> T | None:
    first, *others = values
    return first if all(value == first for value in others) else None


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


def _sum(parts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for part in parts:
        total = EXACT.add(total, part)
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
        return EXACT.divide(EXACT.multiply(Decimal(tokens), price or _ZERO), _MILLION)

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
