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
_TOO_LARGE = (
    "the sum of {name} reaches {bound}, which no column of the lake holds. A count, a price or a line in "
    "a wrong unit is the usual reason: look for the largest with `weighbridge report`, take its file out "
    "with a mapping that is right, and reconcile again; nothing was written."
)


def exactly(work: Callable[Asked, Given]) -> Callable[Asked, Given]:
    """The same work, with sums and differences of money that keep every digit a column may have."""

    @wraps(work)
    def wide(*args: Asked.args, **named: Asked.kwargs) -> Given:
        with localcontext(WIDE):
            return work(*args, **named)

    return wide


def guarded(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows themselves, if no sum of a column of tokens can leave the range of the lake.

    Raises:
        ContractError: it could; names the column, the bound and the next step.
    """
    most = rows[name].abs().max() if rows.height else None
    if most is not None and int(str(most)) * rows.height >= LARGEST_TOKENS:
        countable(sum(abs(int(value)) for value in rows[name].drop_nulls()), name)
    return rows


def countable(tokens: int, name: str = "tokens") -> int:
    """A sum of tokens itself, if the lake holds it.

    Raises:
        ContractError: it does not.
    """
    if abs(tokens) >= LARGEST_TOKENS:
        raise ContractError(_TOO_LARGE.format(name=name, bound="2**63 tokens"))
    return tokens


def payable(money: Decimal, name: str = "money") -> Decimal:
    """A sum of money itself, if the lake holds it.

    Raises:
        ContractError: it does not.
    """
    if abs(money) >= LARGEST_MONEY:
        raise ContractError(_TOO_LARGE.format(name=name, bound="10**20 in money"))
    return money
