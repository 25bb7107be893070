"""Cells as they are shown: of a month those that lie in any part of it, with their days by the billing zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, span_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import LineKind, Status

_NAMED = ("cause", "amount", "confidence", "why", "alternatives")
# No billing zone is further from UTC than this.
_NEAR = timedelta(days=1)


def cells_shown(
    lake: Records, contracts: Mapping[str, Contract], month: str | None, provider: str | None, *, every: bool
) -> list[dict[str, Any]]:
    """Rows of `invoice_gap` with `day` and `causes`, those with the largest gaps first.

    Args:
        lake: with bills compared.
        contracts: provider -> what was agreed, for its billing zone.
        month: `YYYY-MM`: its own cells, and those of use of another month that reach into it; all where null.
        provider: of this one alone; all where null.
        every: cells that match and have no cause, too.
    """
    cells = lake.scan("invoice_gap").collect()
    cells = cells if provider is None else cells.filter(pl.col("provider") == provider)
    held: dict[str, list[dict[str, Any]]] = {}
    for cause in lake.scan("invoice_cause").collect().sort("cell", "cause").iter_rows(named=True):
        held.setdefault(cause["cell"], []).append({name: cause[name] for name in _NAMED})
    rows = []
    for cell in _near(cells, month).iter_rows(named=True):
        zone = (contracts.get(cell["provider"]) or Contract(cell["provider"])).zone
        causes = held.get(cell["cell"], [])
        # What two causes add and take away is no match, though the sums are the same.
        if _in(cell, month, zone) and (every or causes or cell["status"] != Status.MATCHED):
            rows.append({**cell, "day": _day(cell, zone), "causes": causes})
    return sorted(rows, key=lambda cell: (cell["unit"] == "tokens", -abs(cell["gap"] or 0), cell["cell"]))


def _near(cells: pl.DataFrame, month: str | None) -> pl.DataFrame:
    if month is None:
        return cells
    begin, end = span_of(month, "UTC")
    reaches = (pl.col("period_start") < end + _NEAR) & (pl.col("period_end") > begin - _NEAR)
    return cells.filter((pl.col("period") == month) | reaches)


def _in(cell: Mapping[str, Any], month: str | None, zone: str) -> bool:
    """Whether a cell is of a month, or one of use that reaches into it."""
    if month is None or cell["period"] == month:
        return True
    begin, end = span_of(month, zone)
    return bool(cell["kind"] == LineKind.TOKENS and cell["period_start"] < end and cell["period_end"] > begin)


def _day(cell: Mapping[str, Any], zone: str) -> str:
    """The day of a cell, or its first and last one."""
    first = day_of(cell["period_start"], zone)
    last = last_day_of(cell["period_start"], cell["period_end"], zone)
    return str(first) if first == last else f"{first}..{last}"
