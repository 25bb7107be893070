"""Bills and usage pages, held against our own priced usage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

import polars as pl

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.run.bills import books_of, weigh_bills
from weighbridge.pipeline.run.forgotten import settled_months
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import touches

_TOLD = ("invoice_line", "invoice_detail", "currency_rate", "usage_period")
_OURS = ("attempt", "reading", "priced_amount")
# A month stays provisional for some time after it; until then every day may make it final.
_SETTLES = timedelta(days=62)


def invoice_marks(home: Home, today: date) -> dict[str, str]:
    """Months in which anything was charged or counted, marked by both sides, by what was agreed, and by open days."""
    lake = home.lake()
    months = _months(home)
    if not months:
        return {}
    theirs = [f"{table} {lake.version(table)}" for table in _TOLD]
    agreed = [
        file.read_bytes()
        for path in home.settings.contracts
        for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])
        if file.is_file()
    ]
    days = marks_by_day(lake, _OURS)
    out = {}
    for month in months:
        about = [f"{day} {mark}" for day, mark in days.items() if touches(month, day)]
        begun = date.fromisoformat(f"{month}-01")
        still = [str(today)] if today - begun < _SETTLES else []
        out[month] = hashed([*theirs, *agreed, *about, *still])
    return out


def _months(home: Home) -> list[str]:
    """The billing months anything is told of, and those that were compared before."""
    lake = home.lake()
    told = pl.col("period_start").dt.strftime("%Y-%m").alias("month")
    found = {
        month
        for table in ("invoice_line", "usage_period")
        for month in lake.scan(table, columns=["period_start"]).select(told).unique().collect()["month"]
    }
    compared = lake.scan("invoice_gap", columns=["period"]).unique().collect()["period"]
    zones = {contract.zone for contract in books_of(home).contracts.values()} - {Contract("").zone}
    if zones and found:
        # By the clock of another zone the first hours of a month may be of the one before, and its last of the next.
        found |= {near for month in found for near in _beside(month)}
    return sorted({*found, *compared})


def _beside(month: str) -> tuple[str, str]:
    first = date.fromisoformat(f"{month}-01")
    return f"{first - timedelta(days=1):%Y-%m}", f"{first + timedelta(days=32):%Y-%m}"


def _invoice(home: Home, months: Sequence[str], today: date) -> Work:
    now = datetime.combine(today, time(), UTC)
    done = [weigh_bills(home, now, month) for month in months]
    counts = {"cells": sum(sum(each.statuses.values()) for each in done)}
    return Work({"months": len(months), **counts, "findings": sum(len(each.findings) for each in done)})


# Of a month that retention took from, calls are missing that bills still charge: what was found of it stays.
STEP = Step("invoice", invoice_marks, _invoice, rests=settled_months)
