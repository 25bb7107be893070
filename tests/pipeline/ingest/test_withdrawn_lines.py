"""A line that vanishes from a later export: withdrawn where the files are said to be whole, and never in silence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.pipeline.ingest.bill_samples import focus, focus_row

from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN, Withdrawn, withdraw
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.invoice.findings import findings_of
from weighbridge.pipeline.invoice.reconcile import Books, months_compared
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.validate.validate import validate

Take = Callable[..., IngestResult]
LATER = datetime(2027, 7, 1, tzinfo=UTC)


def export(folder: Path, name: str, *rows: str) -> Path:
    path = folder / name
    path.write_text(focus(*rows), encoding="utf-8")
    return path


def states(lake: Lake) -> list[tuple[Decimal, bool]]:
    """Amount of each line, by its last revision, and whether it is withdrawn."""
    rows = lake.scan("invoice_line").sort("revision").collect()
    last = rows.unique(["provider", "invoice_id", "line_id"], keep="last").sort("amount")
    return [(paid, WITHDRAWN in (notes or ())) for paid, notes in last.select("amount", "notes").iter_rows()]


def test_a_line_that_vanished_is_withdrawn_once_and_comes_back(
    lake: Lake, take: Take, tmp_path: Path, key: bytes
) -> None:
    one, two = focus_row("1", SkuId="a"), focus_row("2", SkuId="b")
    first = export(tmp_path, "first.csv", one, two)
    later = export(tmp_path, "later.csv", one)
    about: dict[str, Any] = {"key": key, "day": date(2026, 5, 1)}
    take([first], lake)
    assert withdraw(lake, [first], **about) == Withdrawn(0, 0, whole=True)
    take([later], lake)
    assert states(lake) == [(Decimal(1), False), (Decimal(2), False)]
    assert withdraw(lake, [later], **about) == Withdrawn(1, 0, whole=True)
    assert withdraw(lake, [later], **about) == Withdrawn(0, 0, whole=True)
    assert states(lake) == [(Decimal(1), False), (Decimal(2), True)]
    results = months_compared(lake, Books({}, PriceBook([])), LATER)
    (told,) = [f for each in results for f in findings_of(each) if f.code == WITHDRAWN]
    assert (told.amount, told.rows) == (Decimal(2), 1)
    assert sum(cell.charged.money or 0 for each in results for cell in each.cells) == 1
    again = export(tmp_path, "again.csv", two, one)
    take([again], lake)
    assert withdraw(lake, [again], **about).gone == 0
    assert states(lake) == [(Decimal(1), False), (Decimal(2), False)]
    assert lake.scan("invoice_line").collect().height >= 4
    assert validate(lake, today=date(2026, 5, 2), tables=["invoice_line", "segment"]).violations == ()


def test_nothing_is_withdrawn_where_a_line_could_not_be_read(
    lake: Lake, take: Take, tmp_path: Path, key: bytes
) -> None:
    one, two = focus_row("1", SkuId="a"), focus_row("2", SkuId="b")
    take([export(tmp_path, "first.csv", one, two)], lake)
    later = export(tmp_path, "later.csv", one, focus_row("lots", SkuId="b"))
    take([later], lake)
    assert withdraw(lake, [later], key=key, day=date(2026, 5, 1)) == Withdrawn(0, 0, whole=False)
    assert states(lake) == [(Decimal(1), False), (Decimal(2), False)]


def test_lines_of_other_invoices_stay(lake: Lake, take: Take, tmp_path: Path, key: bytes) -> None:
    take([export(tmp_path, "a.csv", focus_row("1", BillingAccountId="a"))], lake)
    other = export(tmp_path, "b.csv", focus_row("2", BillingAccountId="b"))
    take([other], lake)
    assert withdraw(lake, [other], key=key, day=date(2026, 5, 1)) == Withdrawn(0, 0, whole=True)
