"""The public functions as a user's code calls them: checked by the type checker, never run."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import assert_type

from weighbridge.pipeline import UsageReading, read_usage
from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.reconcile.reconcile import ReconcileResult, reconcile
from weighbridge.pipeline.reconcile.status import waive
from weighbridge.pipeline.report.report import ReportFiles, write_report
from weighbridge.pipeline.settings import Settings, load
from weighbridge.schemas.enumerations import Verdict

reading = read_usage({"provider": "openai", "api": "chat", "usage": {"prompt_tokens": 3}})
assert_type(reading, UsageReading)
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
