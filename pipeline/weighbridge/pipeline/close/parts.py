"""The parts a difference is made of, while they are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from weighbridge.pipeline.close.side import Line, Money, Side, Sums, less, plus

NAMES = ("prices", "traffic", "mix", "rules", "data")


@dataclass(slots=True)
class Parts:
    """Name of a part -> its amounts by currency, and its tokens by class.

    Attributes:
        models: what prices alone changed, by provider, model and currency.
        notes: what the parts leave open.
    """

    money: dict[str, Money] = field(default_factory=lambda: {name: {} for name in NAMES})
    tokens: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in NAMES})
    models: dict[Line, Decimal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_money(self, part: str, amounts: Mapping[str, Decimal]) -> None:
        """Add amounts to a part."""
        self.money[part] = plus(self.money[part], amounts)

    def add_tokens(self, part: str, counts: Mapping[str, int], sign: int = 1) -> None:
        """Add tokens to a part."""
        for name, count in counts.items():
            self.tokens[part][name] = self.tokens[part].get(name, 0) + sign * count

    def add_erased(self, side: Side, rows: Sums, sign: int) -> None:
        """What the figures of a close hold beyond the rows it still has was erased: only its sum is known."""
        beyond = less(side.amounts(), rows.money)
        held = side.tokens()
        self.add_money("data", beyond if sign > 0 else less({}, beyond))
        self.add_tokens("data", {name: held[name] - rows.classes[name] for name in held}, sign)
        if any(beyond.values()) or any(held[name] != rows.classes[name] for name in held):
            self.notes.append(f"rows were erased from {side.name}: their amounts and tokens stand under data")
