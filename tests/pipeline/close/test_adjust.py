"""What comes late for a closed month is booked in the open one, once, and says what it is about."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.close.conftest import FILE_B, GPT, MINI, TENANT_A, TENANT_B, Office, book, contents, key_of

from weighbridge.pipeline.close.adjust import Adjusted, _tokens, adjust
from weighbridge.pipeline.close.side import UNTOLD, with_untold
from weighbridge.pipeline.close.usage_figures import CLASSES
from weighbridge.pipeline.close.verify import verify
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.repriced import write_repriced
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.receipt import receipt_id


def booked(office: Office, **options: Any) -> Adjusted:
    return adjust(office.lake, packs=office.packs, **options)


def lines(office: Office) -> list[tuple[Any, ...]]:
    """reason, tenant, task, model, tokens, amount of every adjustment, in order of these."""
    rows = office.lake.scan("adjustment").collect().to_dicts()
    names = ("reason", "tenant", "task", "model", "tokens", "amount")
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


def test_without_a_close_there_is_nothing_to_correct(filled_once: Office) -> None:
    assert booked(filled_once) == Adjusted(None, (), 0, ())


def test_a_month_nothing_came_for_has_no_adjustments(closed: Office) -> None:
    assert booked(closed) == Adjusted("2026-04", ("2026-03",), 0, ())
    assert closed.lake.rows("adjustment") == 0


def test_late_reports_are_booked_in_the_open_month(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00", 1000, 100, segment=FILE_B)
    closed.both(61, "2026-03-09T10:00:00", 10, 1, tenant=TENANT_B, task="batch", segment=FILE_B)
    before = contents(closed.pack())
    closed.read()
    done = booked(closed)
    assert (done.period, done.booked) == ("2026-04", 2)
    assert lines(closed) == [
        ("late_data", TENANT_A, "chat", GPT, 1100, Decimal("0.0028")),
        ("late_data", TENANT_B, "batch", GPT, 11, Decimal("0.000028")),
    ]
    (row, _) = closed.lake.scan("adjustment").collect().to_dicts()
    assert (row["period"], row["corrects"], row["rows"], row["segments"]) == ("2026-04", "2026-03", 1, [FILE_B])
    (finding,) = done.findings
    assert (finding.code, finding.period, finding.rows, finding.difference) == ("late_data", "2026-04", 2, 1111)
    assert finding.subject == {"closed": "2026-03", "currency": "USD"}
    assert (finding.amount, finding.currency) == (None, None), "it is booked; nothing of it was charged wrongly"
    assert contents(closed.pack()) == before


def test_running_it_again_books_nothing(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00")
    closed.read()
    booked(closed)
    rows, findings = closed.lake.digest("adjustment"), closed.lake.digest("finding")
    assert booked(closed).booked == 0
    assert (closed.lake.digest("adjustment"), closed.lake.digest("finding")) == (rows, findings)


def test_reports_that_claim_more_than_a_column_holds_are_booked_whole_and_once(closed: Office) -> None:
    """The reader of today takes no such count for one; whatever wrote these readings did."""
    half, day = 2**62, date(2026, 3, 9)
    for number in (60, 61, 62):
        closed.report(number, "2026-03-09T10:00:00")
    closed.read()
    readings = closed.lake.scan("reading", first=day, last=day).collect()
    claims = [pl.lit(half).alias(f"{side}_total") for side in ("input", "output")]
    closed.lake.replace("reading", readings.with_columns(claims), days=[day])
    booked(closed)
    tokens = [each for *_, each, _ in lines(closed)]
    assert sum(tokens) == 6 * half
    assert max(map(abs, tokens)) < 2**63
    assert booked(closed).booked == 0


def test_the_two_directions_of_a_report_are_added_without_overflow() -> None:
    sides = dict.fromkeys(("input_total", "output_total"), 2**62)
    reports = pl.DataFrame([dict.fromkeys(CLASSES, 0) | sides])
    assert reports.select(_tokens("")).to_series().to_list() == [2**63]
    assert with_untold(reports)[UNTOLD].to_list() == [2**63]


def test_only_what_is_new_since_the_last_time_is_booked(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00")
    closed.read()
    booked(closed)
    closed.both(61, "2026-03-10T10:00:00", 7, 3)
    closed.read()
    assert booked(closed).booked == 1
    assert [tokens for *_, tokens, _ in lines(closed)] == [10, 120]


def test_a_corrected_price_is_the_new_amount_less_the_old_one(closed: Office) -> None:
    closed.prices = book(gpt="3")
    closed.read()
    booked(closed)
    # Of tenant A in March, at gpt: 1 (100 uncached), 2 (60 uncached, 40 read at a tenth), 7 (71). Nobody's: 5 (30).
    of_a = (Decimal(100 + 60 + 71) + Decimal(40) / 10) / 10**6
    assert lines(closed) == [
        ("price_correction", TENANT_A, "chat", GPT, 0, of_a),
        ("price_correction", TENANT_B, "batch", GPT, 0, Decimal("0.0003")),
        ("price_correction", "unassigned", "unassigned", GPT, 0, Decimal("0.00003")),
    ]


def test_a_price_that_is_put_back_is_booked_back(closed: Office) -> None:
    for prices in (book(gpt="3"), book(), book(gpt="3"), book()):
        closed.prices = prices
        closed.read()
        booked(closed)
    amounts = closed.lake.scan("adjustment").collect()
    assert amounts.height == 4 * 3
    assert amounts["adjustment_id"].n_unique() == 12
    assert amounts["amount"].sum() == 0
    assert booked(closed).booked == 0


def test_a_revised_report_is_the_difference_of_its_counts(closed: Office) -> None:
    closed.report(1, "2026-03-02T10:00:00", 100, 25, revision=1, segment=FILE_B)
    closed.read()
    booked(closed)
    assert lines(closed) == [("report_correction", TENANT_A, "chat", GPT, 5, Decimal("0.00004"))]


def test_a_report_whose_attempt_comes_late_moves_to_its_tenant(closed: Office) -> None:
    closed.attempt(5, "2026-03-15T13:00:00", input_computed=30, output_computed=5, tenant=TENANT_B, task="batch")
    closed.read()
    booked(closed)
    assert lines(closed) == [
        ("attribution", TENANT_B, "batch", GPT, 35, Decimal("0.0001")),
        ("attribution", "unassigned", "unassigned", GPT, -35, Decimal("-0.0001")),
    ]


def test_a_report_that_moves_to_another_day_of_the_month_is_no_late_one(closed: Office) -> None:
    # Revised a day later: the key is the same, the day is not.
    closed.report(1, "2026-03-03T10:00:00", 100, 21, revision=1)
    closed.read()
    booked(closed)
    assert lines(closed) == [("report_correction", TENANT_A, "chat", GPT, 1, Decimal("0.000008"))]


def test_an_unknown_amount_stays_unknown_until_it_has_a_price(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00", model="strange-1")
    closed.read()
    booked(closed)
    assert lines(closed) == [("late_data", TENANT_A, "chat", "strange-1", 120, None)]


def test_rows_that_are_gone_are_an_error_unless_a_receipt_speaks_of_them(closed: Office) -> None:
    day = date(2026, 3, 20)
    for table in ("usage_report", "reading", "priced_amount"):
        closed.lake.replace(table, pl.DataFrame(schema=closed.lake.scan(table).collect_schema()), days=[day])
    done = booked(closed)
    assert done.booked == 0
    (finding,) = done.findings
    assert (finding.code, str(finding.severity), finding.period) == ("closed_rows_missing", "error", "2026-03")
    assert (finding.rows, finding.first_day, finding.last_day) == (1, day, day)
    row = {
        "rule": "retention.billing", "scope": "days=30; due_to=2026-03-20", "table_name": "reading", "first_day": day,
        "last_day": day, "rows": 1, "digest_before": None, "method": "deleted", "key_ids": [], "table_version": 3,
        "erased_by": "privacy", "erased_at": datetime(2026, 6, 1, tzinfo=UTC),
    }  # fmt: skip
    closed.add("receipt", {"receipt_id": receipt_id(row), **row})
    assert booked(closed).findings == ()
    assert "closed_rows_missing" not in closed.lake.scan("finding").collect()["code"]


def test_adjustments_stand_in_the_close_of_the_month_they_were_booked_in(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00", 1000, 100)
    closed.weigh()
    booked(closed)
    assert closed.close("2026-04", now=datetime(2026, 5, 20, tzinfo=UTC)).closed
    held = pl.read_parquet(closed.pack("2026-04") / "rows/adjustment/all.parquet")
    assert held["tokens"].to_list() == [1100]
    later = booked(closed)
    assert (later.period, later.booked) == ("2026-05", 0)


def test_it_can_be_told_which_months_and_where_to(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00")
    closed.read()
    assert booked(closed, months=["2026-01"]) == Adjusted("2026-04", (), 0, ())
    assert booked(closed, period="2026-07").period == "2026-07"
    with pytest.raises(ConfigError, match="2026-03 is closed itself"):
        booked(closed, period="2026-03")


def test_a_kill_between_booking_and_telling_changes_nothing_in_the_end(
    closed: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed.both(60, "2026-03-09T10:00:00", model=MINI)
    closed.read()
    other = closed.copy(tmp_path / "other")
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace", _killed)
        with pytest.raises(KeyboardInterrupt):
            booked(closed)
    booked(closed)
    booked(other)
    assert closed.lake.digests() == other.lake.digests()


def _killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_rows_of_other_months_are_nobodys_correction(closed: Office) -> None:
    closed.both(60, "2026-04-09T10:00:00")
    closed.attempt(61, "2026-02-09T10:00:00")
    closed.read()
    assert booked(closed).booked == 0
    assert key_of(60) != key_of(61)


def test_a_book_that_changes_after_the_close_changes_nothing_of_it_and_is_a_finding(closed: Office) -> None:
    """What was closed stays, to the byte; what the new prices would make of it stands beside it, exactly."""
    pack, kept = contents(closed.pack()), closed.lake.scan("close").collect()
    amounts = closed.lake.scan("priced_amount").collect().sort("attempt_lo", "report", "revision")
    found = write_repriced(closed.lake, "2026-03", closed.prices, book(gpt="3"))
    # In March at gpt, uncached: 100 + 60 + 300 + 30 and, revised, 71; 40 read at a tenth: a millionth of a dollar
    # more for each of the first.
    (finding,) = found
    assert (finding.code, finding.period, finding.rows) == ("price_changed", "2026-03", 5)
    assert (finding.amount, finding.currency) == (Decimal("0.000565"), "USD")
    written = closed.lake.scan("finding").filter(pl.col("code") == "price_changed").collect()
    assert written["amount"].to_list() == [Decimal("0.000565")]
    assert contents(closed.pack()) == pack
    assert closed.lake.scan("close").collect().equals(kept)
    assert closed.lake.scan("priced_amount").collect().sort("attempt_lo", "report", "revision").equals(amounts)
    assert verify(closed.pack()).sound
    # Priced again for real, the month in the lake is another one; the close still is what it was.
    closed.prices = book(gpt="3")
    closed.read()
    booked(closed)
    assert sum(line[-1] for line in lines(closed)) == Decimal("0.000565")
    assert contents(closed.pack()) == pack
