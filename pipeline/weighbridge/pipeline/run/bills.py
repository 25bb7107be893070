"""Bills of one installation: its contracts, its prices and its key, for whoever reconciles or allocates them."""

from __future__ import annotations

from datetime import datetime

from weighbridge.pipeline.invoice.accrual import Accrual, accruals
from weighbridge.pipeline.invoice.contract import load_contracts
from weighbridge.pipeline.invoice.reconcile import Books, InvoiceResult, reconcile_invoices
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.run.home import Home


def books_of(home: Home) -> Books:
    """What bills are held against here.

    Raises:
        ConfigError: a contract or a price file cannot be used as written.
    """
    settings = home.settings
    return Books(load_contracts(settings.contracts), PriceBook.load(settings.prices), home.key)


def weigh_bills(home: Home, now: datetime, month: str | None = None) -> InvoiceResult:
    """Hold bills and usage pages against our own priced usage; of one month, or of all."""
    return reconcile_invoices(home.lake(), books_of(home), now, month=month)


def accrued(home: Home, now: datetime) -> list[Accrual]:
    """What was used and stands on no bill yet."""
    return accruals(home.lake(), load_contracts(home.settings.contracts), now)
