"""The whole road on recorded answers: what the report says is what the lake holds, added up the slow way."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.sampling import some

from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.report.report import ReportFiles, write_report

pytestmark = pytest.mark.real
RECORDED = "api_responses_small.jsonl"
TOLD = ("attempt", "reading")
TURN = date(2026, 1, 1)


@pytest.fixture
def recorded(shared_real: Path, tmp_path: Path) -> Path:
    """Recorded answers: a sample of them in a default run."""
    lines = (shared_real / RECORDED).read_bytes().splitlines(keepends=True)
    (tmp_path / RECORDED).write_bytes(b"".join(some(lines, 120)))
    return tmp_path / RECORDED


@pytest.fixture
def lake(recorded: Path, tmp_path: Path, key: bytes) -> Lake:
    """The recorded answers, taken in, priced and reconciled."""
    lake = Lake.create(tmp_path / "lake")
    ingest([recorded], lake, key=key, day=date(2026, 5, 4))
    refresh_prices(lake, PriceBook.load(), lake.days("reading"))
    reconcile(lake)
    return lake


def table(files: ReportFiles, name: str) -> list[dict[str, str]]:
    """A CSV file as rows."""
    with files.tables[name].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slow_sum(values: Iterable[int | None]) -> int:
    """The sum of what is known."""
    return sum(value for value in values if value is not None)


def test_the_report_on_recorded_answers_adds_up(lake: Lake, tmp_path: Path, recorded: Path) -> None:
    whole = write_report(lake, out=tmp_path)
    readings = [row for row in lake.scan("reading").collect().to_dicts() if row["verdict"] in {"PROVED", "ASSUMED"}]
    reported = next(row for row in table(whole, "totals") if row["measure"] == "reported")
    known = {(row["attempt_hi"], row["attempt_lo"]) for name in TOLD for row in lake.scan(name).collect().to_dicts()}
    assert int(reported["attempts"]) == len(known)
    assert len(known) >= len(recorded.read_bytes().splitlines())  # a record may hold several answers
    assert int(reported["input"]) == slow_sum(row["input_total"] for row in readings) > 0
    assert int(reported["output"]) == slow_sum(row["output_total"] for row in readings) > 0

    money: dict[str, Decimal] = defaultdict(Decimal)
    for row in lake.scan("priced_amount").collect().to_dicts():
        if row["status"] == "priced":
            money[row["currency"]] += row["amount"]
    assert {row["currency"]: Decimal(row["amount"]) for row in table(whole, "amounts")} == money
    assert {row["outcome"] for row in table(whole, "checks")} <= {"holds", "not possible"}

    before = write_report(lake, last=TURN - timedelta(days=1), out=tmp_path)
    after = write_report(lake, first=TURN, out=tmp_path)
    for column in ("attempts", "tokens", "attempts_without_price"):
        sums = [slow_sum(int(row[column] or 0) for row in table(files, "by_model")) for files in (whole, before, after)]
        assert sums[0] == sums[1] + sums[2], column
        assert min(sums[1:]) > 0, column
