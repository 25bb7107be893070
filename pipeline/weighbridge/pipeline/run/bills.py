"""Bills of one installation: its contracts, its prices and its key, for whoever reconciles or allocates them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.ingest.charges.withdrawn import Withdrawn, withdraw
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.invoice.accrual import Accrual, accruals
from weighbridge.pipeline.invoice.contract import Contract, load_contracts
from weighbridge.pipeline.invoice.reconcile import Books, InvoiceResult, reconcile_invoices
from weighbridge.pipeline.invoice.show import cells_shown
from weighbridge.pipeline.invoice.teams.allocate import Allocated, allocate
from weighbridge.pipeline.invoice.teams.allocation import load_allocation
from weighbridge.pipeline.invoice.zones_of_bills import zoned
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import Intake
from weighbridge.schemas.errors import ConfigError


def books_of(home: Home) -> Books:
    """What bills are held against here.

    Raises:
        ConfigError: a contract or a price file cannot be used as written.
    """
    return Books(agreed_with(home), PriceBook.load(home.settings.prices), home.key)


def agreed_with(home: Home) -> dict[str, Contract]:
    """Provider -> its contract; where that names no zone, the zone its bills were read in.

    Raises:
        ConfigError: a contract cannot be used as written.
    """
    return zoned(load_contracts(home.settings.contracts), home.lake())


def without_lines(home: Home, result: IngestResult) -> list[str]:
    """Names of the files of a call that hold no record at all, taken in now or before."""
    held = home.lake().scan("segment", columns=["segment", "rows_in"]).filter(pl.col("rows_in") == 0).collect()
    empty = set(held["segment"])
    return [file.name for file in result.files if file.segment in empty]


def missing_withdrawn(home: Home, paths: Sequence[Path], intake: Intake) -> Withdrawn:
    """Withdraw the lines that files which hold their invoices whole no longer have."""
    return withdraw(
        home.lake(),
        paths,
        key=home.key,
        day=intake.day,
        provider=intake.provider,
        mapping=intake.mapping,
        account=intake.account,
    )


def weigh_bills(home: Home, now: datetime, month: str | None = None) -> InvoiceResult:
    """Hold bills and usage pages against our own priced usage; of one month, or of all."""
    return reconcile_invoices(home.lake(), books_of(home), now, month=month)


def accrued(home: Home) -> list[Accrual]:
    """What was used and stands on no bill yet."""
    return accruals(home.lake(), agreed_with(home))


def bear(home: Home, month: str) -> Allocated:
    """Allocate a month to teams, by the file of the settings.

    Raises:
        ConfigError: the settings name no file, or it cannot be used as written.
    """
    if home.settings.allocation is None:
        raise ConfigError(
            'nothing says which team bears what: name a file with allocation = "allocation.toml" in the settings '
            "(docs/invoices.md has its format)"
        )
    allocation = load_allocation(home.settings.allocation)
    return allocate(home.lake(), allocation, month, home.key, agreed_with(home))


def cells_of(home: Home, month: str | None, provider: str | None, *, every: bool) -> list[dict[str, Any]]:
    """Cells of bills with their days and causes, the largest gaps first; cells that match only if `every`."""
    return cells_shown(home.lake(), agreed_with(home), month, provider, every=every)
