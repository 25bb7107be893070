"""The order of rows inside a data file: checked when the file is written, and told in its footer.

A join that is told its rows are sorted does not look again: on rows that are not, it loses matches in silence. So a
file says in its own footer how its first key column goes, because whoever wrote it looked. A reader plans by that, and
looks at the rows themselves before it relies on it: a file may be another writer's.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import polars as pl

from weighbridge.schemas.table import Table

MARK = "weighbridge.order"


class Order(StrEnum):
    """How the first key column of a file goes from row to row."""

    STRICT = "strict"  # each value is above the one before: no value twice
    RISING = "rising"  # none is below the one before
    NONE = "none"


def mark(about: Table, rows: pl.DataFrame) -> dict[str, str]:
    """What the footer of a file with these rows says; nothing where the table has no whole number to sort by."""
    lead = about.key[0]
    if lead not in rows.columns or rows[lead].dtype != pl.Int64 or rows[lead].null_count():
        return {}
    return {MARK: f"{lead} {order_of(rows[lead])}"}


def order_of(values: pl.Series) -> Order:
    """How whole numbers go from one to the next; nulls among them are no order."""
    if values.null_count():
        return Order.NONE
    held = values.to_numpy()
    if bool(np.all(held[1:] > held[:-1])):
        return Order.STRICT
    return Order.RISING if bool(np.all(held[1:] >= held[:-1])) else Order.NONE
