"""The public functions as a user's code calls them: checked by the type checker, never run."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import assert_type

import polars as pl

from weighbridge.pipeline import UsageReading, read_usage, read_usage_batch, read_usage_file
from weighbridge.pipeline.close.adjust import Adjusted, adjust
from weighbridge.pipeline.close.close import CloseResult, close_month
from weighbridge.pipeline.close.closed import ClosedMonth, closed_figures
from weighbridge.pipeline.close.diff import MonthDifference, diff
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.side import Side
from weighbridge.pipeline.close.verification import Verification
from weighbridge.pipeline.close.verify import verify
from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.reconcile.life.status import waive
from weighbridge.pipeline.reconcile.reconcile import ReconcileResult, reconcile
from weighbridge.pipeline.report.report import ReportFiles, write_report
from weighbridge.pipeline.settings import Settings, load
from weighbridge.schemas.enumerations import Verdict

reading = read_usage({"provider": "openai", "api": "chat", "usage": {"prompt_tokens": 3}})
assert_type(reading, UsageReading)
assert_type(read_usage_batch([{"provider": "openai"}]), pl.DataFrame)
assert_type(next(read_usage_file("records.jsonl", threads=1)), pl.DataFrame)
assert_type(reading.verdict, Verdict)
assert_type(reading.total, int | None)
assert_type(reading.counts, dict[str, int | None])

lake = Lake.create(Path("lake"))
assert_type(ingest([Path("a.jsonl")], lake, key=bytes(32), day=date(2026, 1, 1)), IngestResult)
assert_type(PriceBook.load().find("openai", "gpt-4o", date(2026, 1, 1)), PriceRow | None)
assert_type(reconcile(lake, month="2026-01"), ReconcileResult)
assert_type(write_report(lake, month="2026-01", out=Path("reports")), ReportFiles)
assert_type(waive(lake, "0" * 8, by="me", reason="known", expires=date(2026, 2, 1), now=datetime.now(UTC)), str)
assert_type(load(Path("weighbridge.toml")), Settings)
assert_type(
    close_month(
        lake,
        period="2026-01",
        packs=Path("closes"),
        book=PriceBook.load(),
        key=bytes(32),
        by="me",
        now=datetime.now(UTC),
        gate=True,
    ),
    CloseResult,
)
assert_type(verify(Path("closes/2026-01"), root="0" * 64), Verification)
assert_type(diff(Side.of_pack(Pack(Path("a"))), Side.of_lake(lake, "2026-01", PriceBook.load())), MonthDifference)
assert_type(adjust(lake, packs=Path("closes")), Adjusted)
assert_type(closed_figures(lake, Path("closes"), "2026-01"), ClosedMonth | None)
