"""Sums that cannot overflow, or be rounded, in silence.

What would not fit stops with what to do, before anything is added up. A column of money holds 38 digits and the usual
context of Python's decimals only 28, so a sum of millions in a small currency would lose its last digits: work on bills
is done in a context that holds them all.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import wraps
from typing import ParamSpec, TypeVar

import polars as pl

from weighbridge.pipeline.invoice.rates import WIDE
from weighbridge.schemas.errors import ContractError

Asked = ParamSpec("Asked")
Given = TypeVar("Given")

LARGEST_TOKENS = 2**63
LARGEST_MONEY = Decimal(10) ** 20


def exactly(work: Callable[Asked, Given]) -> Callable[Asked, Given]:
    """The same work, with sums and differences of money that keep every digit a column may have."""

    @wraps(work)
    def wide(*args: Asked.args, **named: Asked.kwargs) -> Given:
        with localcontext(WIDE):
            return work(*args, **named)

    return wide


def guarded(rows: pl.DataFrame, tokens: str, money: str) -> pl.DataFrame:
    """The rows themselves, if no sum of any of them can leave the range of the lake.

    Raises:
        ContractError: it could; names the column, the bound and the next step.
    """
    for name, largest in ((tokens, LARGEST_TOKENS), (money, LARGEST_MONEY)):
        most = rows[name].abs().max() if rows.height else None
        if most is None or int(Decimal(str(most))) * rows.height < largest:
            continue
        exact = sum((abs(Decimal(str(value))) for value in rows[name].drop_nulls()), start=Decimal(0))
        if exact >= largest:
            shown = "2**63 tokens" if name == tokens else "10**20 in money"
            raise ContractError(
                f"the sum of {name} reaches {shown}, which no column of the lake holds. A count, a price or a line in "
                "a wrong unit is the usual reason: look for the largest with `weighbridge report`, take its file out "
                "with a mapping that is right, and reconcile again; nothing was written."
            )
    return rows
