"""Answers for people to judge, blinded: who reads them cannot tell which is which, nor in what order they were made.

The side an answer stands on, the order of items and their numbers follow from the key of the installation. So there is
no list that could be looked into, and verdicts are read back wherever the key is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from weighbridge.schemas.identity import keyed_key

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of one pair: texts, in the content domain only."""

    pair: str
    prompt: str = field(repr=False)
    off: str = field(repr=False)
    on: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a sheet. It names neither the pair nor the strategy."""

    item: str
    prompt: str = field(repr=False)
    a: str = field(repr=False)
    b: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair went.

    Attributes:
        item: its number on the sheet.
        on_is_a: whether the strategy's answer stands on the side A.
    """

    item: str
    on_is_a: bool


def place(key: bytes, run: str, strategy: str, pair: str) -> Place:
    """Where a pair stands on the sheet of a strategy.

    Args:
        key: of the installation.
        run: what tells this run from others.
        strategy, pair: whose answer it is.
    """
    digest = keyed_key(key, "weighbridge blinded", run, strategy, pair).to_hex()
    return Place(digest[:_DIGITS], int(digest[-1], 16) % 2 == 0)


def blinded(key: bytes, run: str, strategy: str, shown: Iterable[Shown]) -> list[Item]:
    """The items of a sheet, in the order of their numbers. Equal answers are left out: there is nothing to judge."""
    items = []
    for each in shown:
        if each.off == each.on:
            continue
        where = place(key, run, strategy, each.pair)
        first, second = (each.on, each.off) if where.on_is_a else (each.off, each.on)
        items.append(Item(where.item, each.prompt, first, second))
    return sorted(items, key=lambda item: item.item)
