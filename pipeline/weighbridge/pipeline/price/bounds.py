"""Amounts that no column of money holds stop with what to do: a column has 20 digits before the point.

Summed in groups, such a column would wrap without a word; so what is summed is looked at before.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact

import polars as pl

from weighbridge.schemas.errors import SumError

LARGEST_COUNT = 2**63 - 1
LARGEST_MONEY = Decimal(10) ** 20
# Wide enough for every product and sum here; should one ever not fit, it raises instead of rounding.
EXACT = Context(prec=60, traps=[Inexact])
# Whole sums are looked at as floats, which are less than this part off.
_ROUGH = float(LARGEST_MONEY) * (1 - 1e-6)


def counted(count: int, what: str) -> int:
    """The count itself.

    Raises:
        SumError: no column of counts holds it.
    """
    if count > LARGEST_COUNT:
        raise _beyond(what, f"{count} uses", "2**63")
    return count


def within(amount: Decimal, what: str) -> Decimal:
    """The amount itself.

    Raises:
        SumError: no column of money holds it.
    """
    if abs(amount) >= LARGEST_MONEY:
        raise _beyond(what, f"{amount:f}", "10**20")
    return amount


def summable(rows: pl.DataFrame, columns: Sequence[str], what: str) -> pl.DataFrame:
    """The rows themselves, of which every sum fits.

    Raises:
        SumError: the sizes of one of these columns add up to what no column of money holds.
    """
    for name in columns:
        rough = rows[name].cast(pl.Float64).abs().sum()
        if rough >= _ROUGH:
            raise _beyond(what, f"{name} of {rough:.3e}", "10**20")
    return rows


def _beyond(what: str, found: str, limit: str) -> SumError:
    return SumError(
        f"{what} come to {found}, and the lake holds no amount of {limit} or more. A count or a price in a wrong unit "
        "is the usual reason: look for the largest fee_counts of the table `reading`, or fee and price in your price "
        "files (`weighbridge prices ls`), mend it and run again; nothing was written."
    )
