"""Whether a cost that a log reports can be one: no token costs more than the dearest one of the price book.

    170,308,898 tokens for 919,291.81 is 5,397.79 per million; at 75 per million they cost 12,773.17 at the most

Such a cost is most likely in another unit of money (cents, billionths) than it is taken for. It is told, never mended.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from weighbridge.pipeline.price.row import PriceRow

IMPLAUSIBLE_PRICE = "implausible_price"
_MILLION = Decimal(10) ** 6


def highest_price(rows: Iterable[PriceRow]) -> Decimal | None:
    """The dearest token of a price book, per million; null where it has no price."""
    return highest_token_price(price for row in rows for price in row.prices.values())


def highest_token_price(prices: Iterable[Decimal]) -> Decimal | None:
    """The largest of these prices, null where there is none."""
    return max(prices, default=None)


def implausible(cost: Decimal, tokens: int | None, highest: Decimal) -> bool:
    """Whether these tokens cannot have cost so much, or have cost less than nothing.

    Args:
        cost: what was reported, in the currency of the book.
        tokens: all tokens of the report; of an unknown number nothing can be said.
        highest: price of the dearest token, per million.
    """
    return tokens is not None and not 0 <= cost <= tokens * highest / _MILLION
