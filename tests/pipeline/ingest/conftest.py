"""Small inputs for ingest: recorded answers, sealed segments, tables, and a lake to take them into."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.schemas.segment import write_segment
from weighbridge.schemas.tables import TABLES

DAY = date(2026, 1, 15)
MOMENT = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def take(key: bytes) -> Callable[..., IngestResult]:
    """Ingest with the test's key and day."""
    return partial(ingest, key=key, day=DAY)


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write lines (objects, or bytes as they are) as JSON Lines and return the path."""
    return partial(lines_in, tmp_path)


def lines_in(folder: Path, name: str, lines: Iterable[object]) -> Path:
    """Write lines as JSON Lines into a folder."""
    path = folder / name
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return path


PRICES = """
currency = "USD"
source = "made up for the tests"
provider = "{provider}"
[[rows]]
models = ["model-a", "gpt-4o", "claude-sonnet-4-5"]
prices = {{ input = "2.5", cache_read = "0.25", cache_write_5m = "3", cache_write_1h = "5", output = "10" }}
"""


@pytest.fixture
def amounts(tmp_path: Path) -> Callable[[Lake], list[Decimal | None]]:
    """What the readings of a lake cost, in the order of their records, at the prices above."""

    def price(lake: Lake) -> list[Decimal | None]:
        files = []
        for provider in ("openai", "anthropic"):
            files.append(tmp_path / f"prices-{provider}.toml")
            files[-1].write_text(PRICES.format(provider=provider), encoding="utf-8")
        readings = lake.scan("reading", columns=["attempt_hi", "attempt_lo", "day", "segment_row"]).collect()
        refresh_prices(lake, PriceBook.load(tuple(files)), readings["day"].unique().to_list())
        priced = lake.scan("priced_amount", columns=["attempt_hi", "attempt_lo", "amount"]).collect()
        return (
            readings.join(priced, on=["attempt_hi", "attempt_lo"], how="left").sort("segment_row")["amount"].to_list()
        )

    return price


def answer_of(number: int, **changes: object) -> dict[str, object]:
    """A recorded chat answer: 10 + number tokens in, 5 out."""
    usage = {"prompt_tokens": 10 + number, "completion_tokens": 5, "total_tokens": 15 + number}
    record: dict[str, object] = {
        "id": f"r_{number}",
        "provider": "openai",
        "api_flavor": "openai_chat",
        "model": "gpt-4o",
        "response_model": "gpt-4o-2024-08-06",
        "stream": False,
        "status": 200,
        "request": {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 64},
        "response": {
            "id": f"chatcmpl-{number}",
            "created": 1768473000 + number,  # 2026-01-15 10:30 UTC
            "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
            "usage": usage,
        },
    }
    return record | changes


@pytest.fixture
def answer() -> Callable[..., dict[str, object]]:
    return answer_of


def attempt_of(number: int, **changes: object) -> dict[str, object]:
    """A row of `attempt` as an agent writes it."""
    row: dict[str, object] = {
        "attempt_hi": 1000 + number,
        "attempt_lo": -5000 - number,
        "day": DAY,
        "source": "agent-1",
        "provider": "openai",
        "api": "openai_chat",
        "model_requested": "gpt-4o",
        "tenant": "unassigned",
        "task": "chat",
        "route": "unassigned",
        "status": "succeeded",
        "arrived_at": MOMENT,
        "output_computed": 5,
        "usage_expected": True,
        "revision": 0,
    }
    return row | changes


def report_of(number: int, tokens: int = 10, **changes: object) -> dict[str, object]:
    """A row of `usage_report` as an agent writes it: `tokens` in, 5 out."""
    row: dict[str, object] = {
        "attempt_hi": 1000 + number,
        "attempt_lo": -5000 - number,
        "day": DAY,
        "source": "api-log",
        "child": 0,
        "report": 0,
        "part": 0,
        "part_kind": "whole",
        "provider": "openai",
        "api": "openai_chat",
        "model": "gpt-4o",
        "ended": "complete",
        "leaf_shape": "usage.completion_tokens usage.prompt_tokens usage.total_tokens",
        "leaf_integers": [5, tokens, 5 + tokens],
        "revision": 0,
    }
    return row | changes


@pytest.fixture
def attempt() -> Callable[..., dict[str, object]]:
    return attempt_of


@pytest.fixture
def report() -> Callable[..., dict[str, object]]:
    return report_of


@pytest.fixture
def segment(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as a sealed segment: segment("name", attempt=[...], usage_report=[...])."""
    return partial(segment_in, tmp_path)


def segment_in(folder: Path, name: str, *, key_id: str | None = None, **tables: list[Mapping[str, object]]) -> Path:
    """Write rows as a sealed segment into the spool of a folder."""
    frames = {
        table: pa.Table.from_pylist(
            [dict(row) for row in rows],
            schema=pa.schema([f for f in TABLES[table].schema() if any(f.name in row for row in rows)]),
        )
        for table, rows in tables.items()
    }
    return write_segment(folder / "spool", name, frames, writer="agent-1", key_id=key_id)
