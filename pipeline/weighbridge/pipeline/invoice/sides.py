"""What both sides of a cell say beside the sums: their lines, and calls of ours that are in no sum."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Charged:
    """Their side of a cell: sums of its lines, and what they say beside them."""

    tokens: int | None
    money: Decimal | None
    lines: int
    open: bool
    closed: bool
    segments: tuple[str, ...]
    tiers: tuple[str, ...] = ()
    issued_on: date | None = None
    off_list: Decimal | None = None


class Spoiled(NamedTuple):
    """Calls of a cell whose reports contradict themselves: they are in no sum.

    Attributes:
        calls: how many.
        tokens, money: more than this they cannot have, and cost at the dearest price; null where that is not known.
        currency: of the prices; null where they are in several.
        attempts, segments: some of them, and of their files.
    """

    calls: int
    tokens: int | None
    money: Decimal | None
    currency: str | None = None
    attempts: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
