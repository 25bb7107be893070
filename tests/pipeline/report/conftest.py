"""A small world whose every total is worked out by hand in the tests, and a lake in memory that holds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import empty, shaped
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.report import ReportFiles, write_report
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Confidence, Ended, Grade, Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.lattice import REPORTED_CLASSES
from weighbridge.schemas.tables import TABLES

FILE_A, FILE_B, FILE_C = "a" * 64, "b" * 64, "c" * 64
PRICE_USD, PRICE_EUR = "1" * 32, "2" * 32
TENANT_A, TENANT_B = "t_00000000000000aa", "t_00000000000000bb"
GPT, CLAUDE, GEMINI = "gpt-4.1-mini", "claude-sonnet-4-20250514", "gemini-2.5-pro"
QWEN = "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8-tensor-parallel-8-long-context-build"


class Stand:
    """A lake in memory: the same `scan` and `days`, rows as they were put."""

    def __init__(self) -> None:
        self.put: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table."""
        about = TABLES[table]
        rows = self.put[table]
        frame = shaped(table, pl.DataFrame(rows, infer_schema_length=None)) if rows else empty(table)
        if first is not None:
            frame = frame.filter(pl.col("day") >= first)
        if last is not None:
            frame = frame.filter(pl.col("day") <= last)
        return frame.lazy().select(list(columns or about.names))

    def days(self, table: str) -> list[date]:
        """The days a table has rows of."""
        return sorted({row["day"] for row in self.put[table]})


class World(Stand):
    """Rows of a small installation, put one attempt at a time."""

    def attempt(self, number: int, at: str, *, source: str = "gpu-1", **more: Any) -> None:
        """An attempt record; `at` is a UTC time, or a bare day for a record without a time."""
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC) if "T" in at else None
        self.put["attempt"].append(
            {
                **key_of(number),
                "day": moment.date() if moment else date.fromisoformat(at),
                "arrived_at": moment,
                "undated": moment is None,
                "source": source,
                "tenant": TENANT_A,
                "task": "chat",
                "route": "/v1/chat",
                "status": "succeeded",
                "revision": 0,
                "segment": FILE_A,
                **more,
            }
        )

    def reading(
        self, number: int, day: str, into: int | None, out: int | None, *, verdict: str = "PROVED", **more: Any
    ) -> None:
        """A reading; classes that are not given are zero, so the total is what the classes add up to."""
        split = {str(name): more.pop(str(name), 0) for name in REPORTED_CLASSES}
        self.put["reading"].append(
            {
                **key_of(number),
                "day": date.fromisoformat(day),
                "source": "gpu-1",
                "child": 0,
                "report": 0,
                "provider": "openai",
                "model": GPT,
                "verdict": verdict,
                **split,
                "input_total": into,
                "output_total": out,
                "total": None if into is None or out is None else into + out,
                "ended": str(Ended.COMPLETE),
                "flags": [],
                "revision": 0,
                "segment": FILE_A,
                **more,
            }
        )

    def price(self, number: int, day: str, amount: str | None, **more: Any) -> None:
        """What a reading costs; `amounts` maps classes to their part of it."""
        classes = {f"amount_{name}": Decimal(value) for name, value in more.pop("amounts", {}).items()}
        self.put["priced_amount"].append(
            {
                **key_of(number),
                "day": date.fromisoformat(day),
                "source": "gpu-1",
                "child": 0,
                "report": 0,
                "basis": "reported",
                "price_id": PRICE_USD if amount else None,
                "currency": "USD" if amount else None,
                "amount": None if amount is None else Decimal(amount),
                "status": "priced" if amount else "no_price",
                "revision": 0,
                **classes,
                **more,
            }
        )

    def compare(
        self,
        number: int,
        day: str,
        direction: str,
        observed: int | None,
        reported: int | None,
        causes: Mapping[str, int] | None = None,
        *,
        due: bool = True,
        **more: Any,
    ) -> None:
        """One comparison with its causes; a side that is missing stands for 0 where it was `due`."""
        known = due and not (observed is None and reported is None)
        gap = (reported or 0) - (observed or 0) if known else None
        explained = sum((causes or {}).values()) if known else None
        residual = None if gap is None or explained is None else gap - explained
        status = "NOT_COMPARED" if gap is None else "UNEXPLAINED" if residual else "EXPLAINED" if gap else "MATCHED"
        common = {**key_of(number), "day": date.fromisoformat(day), "direction": direction}
        self.put["reconciled"].append(
            {
                **common,
                "provider": "openai",
                "model": GPT,
                "tenant": TENANT_A,
                "task": "chat",
                "route": "/v1/chat",
                "grade": str(Grade.G1) if known else None,
                "observed": observed,
                "reported": reported,
                "gap": gap,
                "explained": explained,
                "residual": residual,
                "status": status,
                "reports": 1,
                **more,
            }
        )
        for cause, tokens in (causes or {}).items():
            self.put["gap_cause"].append(
                {**common, "cause": cause, "tokens": tokens, "confidence": str(Confidence.CERTAIN)}
            )

    def find(self, code: str, severity: Severity, subject: Mapping[str, str], **more: Any) -> str:
        """A finding of March, and its id."""
        finding = Finding(
            code=code,
            severity=severity,
            subject=subject,
            period=more.pop("period", "2026-03"),
            rows=more.pop("rows", 1),
            cure=more.pop("cure", f"Do something about {code}."),
            **more,
        )
        self.put["finding"].append(finding.row())
        return finding.finding_id

    def decide(self, finding_id: str, change: int, state: str, expires_on: date | None = None) -> None:
        """A change in the life of a finding."""
        self.put["finding_status"].append(
            {
                "finding_id": finding_id,
                "change": change,
                "state": state,
                "changed_at": datetime(2026, 4, 2, tzinfo=UTC),
                "changed_by": "finops",
                "reason": "CANARY-in-a-reason",
                "expires_on": expires_on,
            }
        )

    def file(self, segment: str, name: str, counts: tuple[int, int, int, int]) -> None:
        """A file: records in, stored, quarantined, held already."""
        self.put["segment"].append(
            {
                "segment": segment,
                "importer": "segment",
                "name": name,
                "bytes": 1000,
                "end": str(Ended.COMPLETE),
                **dict(zip(("rows_in", "rows_out", "rows_quarantined", "rows_duplicate"), counts, strict=True)),
                "schema_version": 1,
            }
        )

    def tariff(
        self,
        price_id: str,
        provider: str,
        model: str,
        token_class: str,
        per_million: str,
        currency: str,
        modality: str = "text",
    ) -> None:
        """One price of the book."""
        self.put["price"].append(
            {
                "price_id": price_id,
                "provider": provider,
                "match": "equals",
                "model": model,
                "valid_from": None,
                "token_class": token_class,
                "modality": modality,
                "per_million": Decimal(per_million),
                "currency": currency,
                "origin": "https://example.org/prices",
                "checked_on": date(2026, 2, 1),
            }
        )


def key_of(number: int) -> dict[str, int]:
    """The key of the attempt called `number`."""
    return {"attempt_hi": 0x0195_0000_0000_7000 + number, "attempt_lo": -number}


def rich() -> World:
    """Nine attempts in March 2026 and one on the last evening of February; see the tests for their sums."""
    world = World()
    _matched(world)
    _faulty(world)
    _one_sided(world)
    _surroundings(world)
    return world


def _matched(world: World) -> None:
    world.attempt(1, "2026-03-01T00:30:00", input_computed=100, output_computed=50, provider="openai", model_served=GPT)
    world.reading(1, "2026-03-01", 100, 50, input_uncached=60, cache_read=40, output_visible=30, reasoning=20)
    parts = {"input_uncached": "0.00006", "cache_read": "0.00001", "output_visible": "0.00012", "reasoning": "0.00008"}
    world.price(1, "2026-03-01", "0.00027", amounts=parts)
    world.compare(1, "2026-03-01", "input", 100, 100)
    world.compare(1, "2026-03-01", "output", 50, 50)
    for number, at, into, out, amount in (
        (7, "2026-03-31T23:30:00", 10, 5, "0.00003"),  # 1 April in Berlin
        (8, "2026-02-28T23:30:00", 7, 3, "0.00002"),  # 1 March in Berlin
    ):
        world.attempt(number, at, input_computed=into, output_computed=out, provider="openai", model_served=GPT)
        world.reading(number, at[:10], into, out, input_uncached=into, output_visible=out)
        world.price(number, at[:10], amount, amounts={"input_uncached": amount})
        world.compare(number, at[:10], "input", into, into)
        world.compare(number, at[:10], "output", out, out)


def _faulty(world: World) -> None:
    world.attempt(2, "2026-03-01T12:00:00", input_computed=200, output_computed=80, provider="openai", model_served=GPT)
    for report in (0, 1):
        world.reading(2, "2026-03-01", 200, 80, input_uncached=200, output_visible=80, report=report)
        world.price(2, "2026-03-01", "0.00062", report=report, amounts={"input_uncached": "0.00062"})
    world.compare(2, "2026-03-01", "input", 200, 400, {"duplicate_report": 200})
    world.compare(2, "2026-03-01", "output", 80, 160, {"duplicate_report": 80})

    claude: dict[str, Any] = {"provider": "anthropic", "model": CLAUDE}
    world.attempt(
        3, "2026-03-02T08:00:00", task="摘要与翻译", tenant=TENANT_B, input_recounted=310, output_recounted=120
    )
    split: dict[str, Any] = {
        "input_uncached": 100,
        "cache_read": 150,
        "cache_write_5m": 50,
        "output_visible": 100,
        "reasoning": 20,
    }
    world.reading(3, "2026-03-02", 300, 120, **split, **claude)
    world.price(3, "2026-03-02", "0.0045", amounts={"input_uncached": "0.0020", "output_visible": "0.0025"})
    world.compare(3, "2026-03-02", "input", 310, 300, {"special_tokens": -10}, grade="G3", **claude)
    world.compare(3, "2026-03-02", "output", 120, 120, grade="G3", **claude)

    qwen: dict[str, Any] = {"provider": "vllm", "model": QWEN}
    for number, at in ((4, "2026-03-02T09:00:00"), (5, "2026-03-05T09:00:00")):
        counts: dict[str, Any] = {"input_computed": 1000, "output_computed": 400, "attended": 1_500_000}
        world.attempt(number, at, provider="vllm", model_served=QWEN, task="batch", usage_expected=True, **counts)
    world.compare(4, "2026-03-02", "input", 1000, None, {"usage_missing": -1000}, **qwen)
    world.compare(4, "2026-03-02", "output", 400, None, {"usage_missing": -400}, **qwen)
    world.reading(5, "2026-03-05", 990, 400, input_uncached=990, output_visible=400, **qwen)
    world.price(5, "2026-03-05", None)
    world.compare(5, "2026-03-05", "input", 1000, 990, {}, **qwen)
    world.compare(5, "2026-03-05", "output", 400, 400, **qwen)


def _one_sided(world: World) -> None:
    gemini: dict[str, Any] = {"provider": "google", "model": GEMINI}
    split = {"input_uncached": None, "cache_read": 100, "output_visible": 60, "reasoning": 40}
    world.reading(6, "2026-03-05", 500, 100, verdict="ASSUMED", input_uncached_audio=30, **split, **gemini)
    money = {"currency": "EUR", "price_id": PRICE_EUR, "amounts": {"input_uncached": "0.004", "reasoning": "0.006"}}
    world.price(6, "2026-03-05", "0.01", **money)
    for direction, reported in (("input", 500), ("output", 100)):
        world.compare(6, "2026-03-05", direction, None, reported, due=False, **gemini)
        world.compare(9, "2026-03-10", direction, None, None, due=False)
    world.attempt(9, "2026-03-10", status="rejected", http_status=429, task="unassigned")
    world.attempt(10, "2026-03-10T10:00:00", input_computed=48, output_computed=20, model_served=GPT)
    world.reading(10, "2026-03-10", 50, 20, verdict="CONTRADICTORY", flags=["total_mismatch"], segment=FILE_B)
    world.price(10, "2026-03-10", None, status="contradictory")
    world.compare(10, "2026-03-10", "input", 48, None, due=False)
    world.compare(10, "2026-03-10", "output", 20, None, due=False)


def _engines(world: World) -> None:
    """An engine that counted 30 tokens more than its attempts: 25 of aborted ones, and 5 that nothing explains."""
    window = {
        "day": date(2026, 3, 2), "source": "engine-metrics", "engine": "vllm", "model": GPT,
        "counter": "generation_tokens", "since": datetime(2026, 3, 2, 8, tzinfo=UTC),
        "until": datetime(2026, 3, 2, 9, tzinfo=UTC),
    }  # fmt: skip
    sums = {"counted": 130, "attempted": 100, "gap": 30, "explained": 25, "residual": 5}
    told = {"status": "UNEXPLAINED", "confidence": "none", "attempts": 2, "across": 0, "unknown": 1, "reset": False}
    world.put["engine_gap"].append({**window, "unit": "tokens", **sums, **told})
    world.put["engine_gap_cause"].append({**window, "cause": "aborted", "tokens": 25, "confidence": "certain"})


def _surroundings(world: World) -> None:
    twice = {"provider": "openai", "model": GPT}
    _engines(world)
    world.find(
        "duplicate_report", Severity.ERROR, twice, expected=280, observed=560, difference=280,
        amount=Decimal("0.00062"), currency="USD", cause="duplicate_report", cure="Ask the provider to credit it.",
        evidence=("0" * 32,), first_day=date(2026, 3, 1), last_day=date(2026, 3, 1),
    )  # fmt: skip
    world.find("usage_missing", Severity.WARNING, {"provider": "vllm", "model": QWEN}, expected=1400, difference=-1400)
    world.find("unexplained_gap", Severity.ERROR, {"model": QWEN}, expected=1000, observed=990, difference=-10)
    world.find(
        "late_credit", Severity.WARNING, {"provider": "google"}, amount=Decimal("-1.5"), currency="EUR", unit="rows"
    )
    waived = world.find("price_unknown", Severity.NOTICE, {"model": QWEN}, rows=1, unit="reports")
    world.decide(waived, 0, "acknowledged")
    world.decide(waived, 1, "waived", date(2026, 12, 31))
    over = world.find("verdict_assumed", Severity.NOTICE, {"provider": "google"}, unit="reports")
    world.decide(over, 0, "waived", date(2026, 3, 15))
    world.find("key_changed", Severity.INFO, {"source": "gpu-1"}, period="all", unit="rows")
    world.find("april_only", Severity.ERROR, {"source": "gpu-1"}, period="2026-04", unit="rows")
    for day, line, path in (
        (date(2026, 3, 4), 0, "usage.input_total"),
        (date(2026, 3, 4), 0, "usage.output_total"),  # the same record
        (date(2026, 3, 4), 1, "usage.input_total"),
        (date(2026, 4, 1), 2, "usage.input_total"),
    ):
        world.put["quarantine"].append(
            {
                "segment": FILE_C,
                "line": line,
                "path": path,
                "day": day,
                "source": "import",
                "importer": "mapped",
                "reason": "fraction",
            }
        )
    world.put["gap"].append(
        {"day": date(2026, 3, 6), "source": "gpu-1", "reason": "buffer_full", "attempts": 5, "tokens": None}
    )
    world.file(FILE_A, "gpu-1-000001.segment", (12, 12, 0, 0))
    world.file(FILE_B, "答案 <b>.jsonl", (4, 1, 0, 3))
    world.file(FILE_C, "import.csv", (5, 1, 3, 0))  # one record is not accounted for
    world.file("d" * 64, "of-another-month.jsonl", (9, 9, 0, 0))
    world.tariff(PRICE_USD, "openai", GPT, "input_uncached", "0.4", "USD")
    world.tariff(PRICE_USD, "openai", GPT, "output_visible", "1.6", "USD")
    world.tariff(PRICE_USD, "openai", GPT, "input_uncached", "10", "USD", modality="audio")
    world.tariff(PRICE_EUR, "google", "gemini", "input_uncached", "1.25", "EUR")
    world.tariff("3" * 32, "openai", "not-used", "input_uncached", "9", "USD")


@pytest.fixture
def world() -> World:
    """The rich world."""
    return rich()


@pytest.fixture
def bare() -> World:
    """A lake without a row."""
    return World()


@pytest.fixture
def march() -> Callable[..., View]:
    """A view of March 2026 on a lake."""

    def view(lake: Stand, zone: str = "UTC") -> View:
        return View(lake, period_of(month="2026-03", first=None, last=None, zone=zone, held=[]))

    return view


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., ReportFiles]:
    """The report of March 2026 on a lake."""

    def write(lake: Stand, **more: Any) -> ReportFiles:
        return write_report(lake, month="2026-03", out=more.pop("out", tmp_path / "reports"), **more)

    return write
