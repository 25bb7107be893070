"""What audits, engines and bills say, in a close: of its month alone, with what it rests on, and verified."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
from tests.pipeline.close.conftest import FILE_A, Office
from tests.pipeline.retention.world import row

from weighbridge.pipeline.close.verify import verify

MARCH, APRIL = date(2026, 3, 2), date(2026, 4, 2)


def held(office: Office, table: str) -> pl.DataFrame:
    """Rows of a table in the pack of March."""
    files = sorted((office.pack() / "rows" / table).glob("*.parquet"))
    return pl.concat([pl.read_parquet(path) for path in files]) if files else pl.DataFrame()


def test_a_close_holds_the_audits_engines_and_bills_of_its_month(office: Office) -> None:
    """A tolerance that an earlier month taught, and a change of last year, belong to it: verdicts rest on them."""
    office.file(FILE_A)
    office.both(1, "2026-03-02T10:00:00")
    for day in (MARCH, APRIL):
        period = f"{day:%Y-%m}"
        office.add("audit_cell", row("audit_cell", day, gap=day.month, verdict="clean"))
        office.add("engine_gap", row("engine_gap", day))
        office.add("comparison", row("comparison", day))
        office.add(
            "recommendation",
            row(
                "recommendation",
                day,
                change=day.month,
                changed_at=datetime(2026, day.month, 2, tzinfo=UTC),
                reason="because",
            ),
        )
        office.add("engine_gap_cause", row("engine_gap_cause", day))
        office.add("invoice_gap", row("invoice_gap", day, period=period))
        office.add("invoice_cause", row("invoice_cause", day, period=period))
        office.add("allocated", row("allocated", day, period=period, amount=Decimal(day.month)))
        begin = datetime(2026, day.month, 1, tzinfo=UTC)
        end = datetime(2026, day.month + 1, 1, tzinfo=UTC)
        bill = row("invoice_detail", day, invoice_id=period, billing_start=begin, billing_end=end)
        office.add("invoice_detail", bill)
    learnt = date(2025, 12, 3)
    office.add("audit_tolerance", row("audit_tolerance", learnt, first_day=learnt, last_day=learnt))
    office.add("change", row("change", learnt, number=0, at=datetime(2025, 12, 3, tzinfo=UTC)))
    for day in (MARCH, APRIL, learnt):
        office.add("currency_rate", row("currency_rate", day, rate_day=day))
    office.weigh()
    assert office.close().closed
    assert held(office, "audit_cell")["gap"].to_list() == [3]
    assert held(office, "engine_gap")["day"].to_list() == [MARCH]
    assert held(office, "comparison")["day"].to_list() == [MARCH]
    assert held(office, "recommendation").select("change", "reason").rows() == [(3, None)]
    assert held(office, "engine_gap_cause")["day"].to_list() == [MARCH]
    assert held(office, "invoice_gap")["period"].to_list() == ["2026-03"]
    assert held(office, "invoice_cause")["period"].to_list() == ["2026-03"]
    assert held(office, "allocated")["amount"].to_list() == [Decimal(3)]
    assert held(office, "invoice_detail")["invoice_id"].to_list() == ["2026-03"]
    assert held(office, "audit_tolerance")["last_day"].to_list() == [learnt]
    assert held(office, "change")["number"].to_list() == [0]
    assert sorted(held(office, "currency_rate")["rate_day"]) == [MARCH, APRIL]
    assert verify(office.pack()).sound
