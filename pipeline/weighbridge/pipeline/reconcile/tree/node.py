"""A tree of labelled values: what `explain` gives, for a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

Value = str | int | float | bool | Decimal | date | None


@dataclass(frozen=True, slots=True)
class Node:
    """One line of an explanation and what lies behind it.

    Attributes:
        label: what it is.
        value: an id, a count, an amount, a word of the product's own; null where the children say it all.
        children: what it is made of.
    """

    label: str
    value: Value = None
    children: tuple[Node, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain JSON values: amounts as decimal text, days as ISO text; empty `children` are left out."""
        shown = format(self.value, "f") if isinstance(self.value, Decimal) else self.value
        shown = shown.isoformat() if isinstance(shown, date) else shown
        out: dict[str, Any] = {"label": self.label, "value": shown}
        if self.children:
            out["children"] = [child.to_dict() for child in self.children]
        return out


def leaves(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Node, ...]:
    """A node for each named value of a row that is known."""
    return tuple(Node(name, row[name]) for name in names if row[name] is not None)
