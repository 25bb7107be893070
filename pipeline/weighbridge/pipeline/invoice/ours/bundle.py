"""A bundle: calls that every way to bill treats alike, as one, with the sums of their counts and of what they cost.

Prices are per token, so what a bundle costs at other prices is what its calls would: a month of a million calls is
some thousands of bundles. A call that no sum could stand for (prices by slices of its length, fees by use, terms that
are not told) is a bundle of its own.

    a slot    tokens of one column of a reading (text of a class, one of its modalities, or a direction nobody split)
              and what they cost: of all calls of a bundle a token of a slot costs the same
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from weighbridge.schemas.enumerations import Modality
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, OUTPUT_CLASSES

TEXT = str(Modality.TEXT)
# Total of a direction -> its classes, first the one that a bill which splits nothing charges.
DIRECTIONS = {
    "input_total": tuple(str(name) for name in INPUT_CLASSES),
    "output_total": tuple(str(name) for name in OUTPUT_CLASSES),
}
_CELLS = {
    str(name): tuple((str(cell.name), str(cell.modality)) for cell in CROSSED_CELLS if cell.token_class == name)
    for name in (*INPUT_CLASSES, *OUTPUT_CLASSES)
}


class Slot(NamedTuple):
    """Tokens of one column of the readings of a bundle, and their cost; null where not known."""

    column: str
    token_class: str
    modality: str
    tokens: int | None
    money: Decimal | None


class Place(NamedTuple):
    """Where calls lie by a clock: the number of their period (-1 for none), and their day in the billing zone."""

    span: int
    day: date


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bundle:
    """Some calls of one model, day and terms.

    Attributes:
        number: of the bundle in its month.
        provider, model: as the answers name them; `named`: the model as we do.
        day: the UTC day of its prices.
        places: clock -> where its calls lie.
        minute: when its call arrived, where a price hangs on that.
        failed, superseded: its calls were answered with an error; a later try of the same request followed on them.
        service_tier, batch, region: terms they were served on; null: nothing was said.
        counts, cells: class, and crossed cell -> tokens of all its calls; null where not known.
        totals: direction -> tokens; total: of both.
        length: an input length that lies between the same thresholds as that of each call; null: it is one call whose
            own counts say where it lies.
        uses: kind of fee -> how often it was used; whole: it is of attempts and not of calls inside them.
        calls: how many; told: class of a line -> how many of them have any of it.
        costs, amount, fees: class -> what it costs; the whole; what is charged by use. Null where not known.
        by_cell: crossed cell, or class for its text -> what it costs; null where only classes are known.
    """

    number: int
    provider: str | None
    model: str | None
    named: str | None
    tenant: str | None
    day: date
    at: datetime
    places: Mapping[str, Place]
    minute: datetime | None
    failed: bool
    superseded: bool
    service_tier: str | None
    batch: bool | None
    region: str | None
    counts: Mapping[str, int | None]
    cells: Mapping[str, int | None]
    totals: Mapping[str, int | None]
    total: int | None
    length: int | None
    uses: Mapping[str, int] = field(default_factory=dict)
    whole: bool = True
    calls: int = 1
    told: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, Decimal | None] = field(default_factory=dict)
    by_cell: Mapping[str, Decimal | None] | None = None
    amount: Decimal | None = None
    fees: Decimal | None = None
    currency: str | None = None
    price_id: str | None = None

    @property
    def empty(self) -> bool:
        """Whether it has no token at all."""
        return not any(self.totals.values()) and None not in self.totals.values()

    @property
    def split(self) -> bool:
        """Whether any of its tokens are of another modality than text."""
        return any(self.cells.values())

    def slots(self, wholes: Mapping[str, bool], *, apart: bool) -> Iterator[Slot]:
        """Its slots: by class where its calls tell them, else a direction as a whole where that is asked.

        Args:
            wholes: direction -> whether one that is not split may stand as its first class.
            apart: whether modalities of a class are slots of their own.
        """
        for total, classes in DIRECTIONS.items():
            if wholes[total] and self.totals[total] is not None and any(self.counts[name] is None for name in classes):
                yield Slot(total, classes[0], TEXT, self.totals[total], self._cost_of(total))
            else:
                for name in classes:
                    yield from self._of_class(name, apart=apart)

    def _of_class(self, name: str, *, apart: bool) -> Iterator[Slot]:
        tokens, cost = self.counts[name], self.costs.get(name)
        inside = [each for each in _CELLS[name] if self.cells[each[0]]] if apart else ()
        if not inside or tokens is None:
            yield Slot(name, name, TEXT, tokens, Decimal(0) if tokens == 0 else cost)
            return
        held = self.by_cell or {}
        for cell, modality in inside:
            tokens -= self.cells[cell] or 0
            yield Slot(cell, name, modality, self.cells[cell], held.get(cell))
        if tokens:
            yield Slot(name, name, TEXT, tokens, held.get(name))

    def _cost_of(self, total: str) -> Decimal | None:
        """What a direction costs that nobody split: the whole, without fees and without the other direction."""
        if self.amount is None:
            return None
        left = self.amount - (self.fees or Decimal(0))
        for other, classes in DIRECTIONS.items():
            for name in classes if other != total else ():
                cost = Decimal(0) if self.counts[name] == 0 else self.costs.get(name)
                if cost is None:
                    return None
                left -= cost
        return left
