"""The price keys of a row, and the cells of the token lattice that each of them prices.

`input = "2.5"` is the price of a million uncached input tokens of text. A modality has a key of its own (`audio_in`),
or is named in the row's `modalities` where the provider charges it like text. Nothing falls back from one class to
another: a class that has tokens and no price is reported as unpriced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal

from weighbridge.schemas.enumerations import Modality, TokenClass
from weighbridge.schemas.lattice import CROSSED_CLASSES, SPLIT_MODALITIES, Cell

PriceKey = tuple[TokenClass, Modality]

# An amount is tokens x price / 10**6 in 18 decimal places, so a price of at most 12 places is never rounded; and
# below this limit no count below 2**63 leaves the 20 digits before the point.
PLACES = 12
HIGHEST = Decimal(100_000)
_DECIMAL = re.compile(rf"[0-9]{{1,6}}(\.[0-9]{{1,{PLACES}}})?")

_PLAIN: dict[str, tuple[PriceKey, ...]] = {
    "input": ((TokenClass.INPUT_UNCACHED, Modality.TEXT),),
    "output": ((TokenClass.OUTPUT_VISIBLE, Modality.TEXT), (TokenClass.REASONING, Modality.TEXT)),
    "reasoning": ((TokenClass.REASONING, Modality.TEXT),),
    "cache_read": ((TokenClass.CACHE_READ, Modality.TEXT),),
    "cache_write_5m": ((TokenClass.CACHE_WRITE_5M, Modality.TEXT),),
    "cache_write_1h": ((TokenClass.CACHE_WRITE_1H, Modality.TEXT),),
    "cache_write_unknown": ((TokenClass.CACHE_WRITE_UNKNOWN, Modality.TEXT),),
}
_SPLIT: dict[str, tuple[PriceKey, ...]] = {
    name: ((token_class, modality),)
    for modality in SPLIT_MODALITIES
    for name, token_class in (
        (f"{modality}_in", TokenClass.INPUT_UNCACHED),
        (f"{modality}_out", TokenClass.OUTPUT_VISIBLE),
        (f"cache_read_{modality}", TokenClass.CACHE_READ),
    )
}
KEYS: dict[str, tuple[PriceKey, ...]] = {**_PLAIN, **_SPLIT}


def price(text: object) -> Decimal:
    """A price per million as it is written: the digits, without trailing zeros.

    Raises:
        TypeError: it is written as a number.
        ValueError: it is no plain decimal, has too many places or is out of range. Both messages say what to write.
    """
    if isinstance(text, (float, int)):
        raise TypeError(
            f"is a {type(text).__name__}; a price is a decimal in quotes, because a binary number cannot hold every "
            "price exactly"
        )
    if isinstance(text, str) and text.startswith("-"):
        raise ValueError("is below zero; what a provider gives back is a credit, a line of an invoice and no price")
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError(
            f'is no plain decimal such as "2.5" with at most 6 digits before the point and {PLACES} after it'
        )
    value = Decimal(text)
    if value >= HIGHEST:
        raise ValueError(f"is not below {HIGHEST}; the unit is one million tokens")
    return plain(value)


def plain(value: Decimal) -> Decimal:
    """The same number without trailing zeros and without an exponent."""
    return Decimal(format(value.normalize(), "f"))


def digits(value: Decimal) -> str:
    """A price as plain digits, the same for equal prices."""
    return format(value.normalize(), "f")


def expand(prices: Mapping[str, Decimal], modalities: Collection[Modality] = ()) -> dict[PriceKey, Decimal]:
    """The price of each cell, from prices by key.

    Args:
        prices: key of `KEYS` -> price per million.
        modalities: charged like text, where the row has no price of their own for them.
    """
    out = {cell: prices[name] for name in sorted(prices, key=_generality) for cell in KEYS[name]}
    for token_class in CROSSED_CLASSES:
        plain = out.get((token_class, Modality.TEXT))
        for modality in modalities:
            if plain is not None:
                out.setdefault((token_class, modality), plain)
    return out


def expand_above(
    prices: Mapping[str, Decimal], modalities: Collection[Modality], base: Mapping[PriceKey, Decimal]
) -> dict[PriceKey, Decimal]:
    """The price of each cell above a threshold. What has a price of its own below keeps it, unless it is named here.

    Args:
        prices: key of `KEYS` -> price per million, above the threshold.
        modalities: charged like text.
        base: the prices below it.
    """
    named = {KEYS[name][0] for name in prices}
    return {
        cell: value
        for cell, value in expand(prices, modalities).items()
        if cell in named or base.get(cell) == base.get(_like(cell)) or cell not in base
    }


def _like(cell: PriceKey) -> PriceKey:
    """The cell whose price one takes that has none of its own."""
    token_class, modality = cell
    if modality is not Modality.TEXT:
        return token_class, Modality.TEXT
    return (TokenClass.OUTPUT_VISIBLE, Modality.TEXT) if token_class is TokenClass.REASONING else cell


def _generality(name: str) -> tuple[bool, str]:
    # `output` first, so that `reasoning` has the last word on its cell.
    return name != "output", name


def cell_name(key: PriceKey) -> str:
    """The name of a priced cell, as the `reading` table calls it."""
    return Cell(*key).name
