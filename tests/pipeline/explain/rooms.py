"""What other rooms leave in a lake: a window of an engine, a cell of bills, a cell of an audit, a part of a cost."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.pipeline.reconcile.conftest import DAY, World

SERVER = "t_00000000000000bb"
CELL_ID = "c" * 32
SINCE, UNTIL = datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(2026, 3, 2, 11, tzinfo=UTC)
SCRAPES = "b" * 64
BILL = "d" * 64
_OF_WINDOW = {
    "day": DAY,
    "source": "scrape",
    "engine": "vllm",
    "model": "m-1",
    "instance": SERVER,
    "counter": "prompt_tokens",
    "since": SINCE,
    "until": UNTIL,
}
WINDOW = f"engine/scrape/vllm/m-1/{SERVER}/prompt_tokens/-/2026-03-02T11:00:00.000000Z"
AUDIT = "audit/2026-03/hidden_reasoning/openai/openai_chat/m-1/-/-/-/G4"
ALLOCATED = "allocated/2026-03/invoiced/usage/search/direct/openai/USD"
_PERIOD = {"period_start": datetime(2026, 3, 1, tzinfo=UTC), "period_end": datetime(2026, 4, 1, tzinfo=UTC)}


def rooms(world: World) -> None:
    """Put their rows into a world whose attempts are of the second of March, of one model and provider."""
    engine(world)
    bill(world)
    audit(world)
    changed(world)


def engine(world: World) -> None:
    """A server counted 3,000 prompt tokens in an hour in which attempts had 2,700; a health check made 100 of them."""
    counts = {"counted": 3000, "attempted": 2700, "gap": 300, "explained": 100, "residual": 200, "attempts": 2}
    rest = {"unit": "tokens", "status": "UNEXPLAINED", "across": 0, "unknown": 0, "reset": False}
    world.add("engine_gap", {**_OF_WINDOW, **counts, **rest}, {**_OF_WINDOW, **counts, **rest, "instance": None})
    world.add("engine_gap_cause", {**_OF_WINDOW, "cause": "health_checks", "tokens": 100, "confidence": "certain"})
    names = {name: _OF_WINDOW[name] for name in ("day", "source", "engine", "model", "instance", "counter")}
    about = {**names, "series": "e" * 32, "metric": "vllm:prompt_tokens_total", "unit": "tokens", "undated": False}
    for place, (when, value) in enumerate(((SINCE, 500), (SINCE.replace(minute=30), 900), (UNTIL, 3500))):
        key = {"cell_hi": 1, "cell_lo": place, "scraped_at": when, "segment_row": place, "flags": []}
        world.add("engine_counter", {**about, **key, "value": value, "revision": 0, "segment": SCRAPES})


def bill(world: World) -> None:
    """A bill of March charges 13 for what cost 10: 1 is a fee, 2 nobody explains. Two teams bear 9 and 4 of it."""
    cell: dict[str, Any] = {
        "cell": CELL_ID, "period": "2026-03", "against": "invoice", "unit": "USD", "provider": "openai", **_PERIOD,
        "model": "m-1", "attempts": 2, "lines": 1, "status": "UNEXPLAINED", "segments": [BILL], "kind": "tokens",
        "expected": Decimal(10), "charged": Decimal(13), "gap": Decimal(3), "residual": Decimal(2),
    }  # fmt: skip
    other = {**cell, "cell": "f" * 32, "model": None, "status": "MATCHED", "kind": "tax", "segments": [BILL]}
    world.add("invoice_gap", cell, {**other, "expected": None, "gap": None, "residual": None})
    cause = {"cell": CELL_ID, "period": "2026-03", "unit": "USD", "confidence": "probable"}
    world.add("invoice_cause", {**cause, "cause": "tool_fee", "amount": Decimal(1)})
    line = {
        "invoice_id": "inv-2", "line_id": "charged-1", "provider": "openai", "category": "Usage", **_PERIOD,
        "kind": "tokens", "model": "m-1", "amount": Decimal(12), "currency": "USD", "segment": BILL, "segment_row": 8,
    }  # fmt: skip
    world.add("invoice_line", {**line, "revision": 0}, {**line, "revision": 1, "amount": Decimal(13)})
    world.add("invoice_line", {**line, "line_id": "charged-2", "model": "m-2", "revision": 0})
    part = {"period": "2026-03", "basis": "invoiced", "pool": "usage", "provider": "openai", "currency": "USD"}
    direct = {**part, "allocated_as": "direct", "tokens": 1800, "rows": 1}
    world.add("allocated", {**direct, "team": "search", "amount": Decimal(9)})
    world.add("allocated", {**direct, "team": "chat", "amount": Decimal(4), "tokens": 900})


def audit(world: World) -> None:
    """A cell of hidden reasoning in which nothing was found, judged on the third of March."""
    row = {
        "measure": "hidden_reasoning", "provider": "openai", "api": "openai_chat", "model": "m-1", "grade": "G4",
        "pinned": 1, "incomplete": 0, "broken": 4, "gap": 12, "observed": 5000, "calibrated": 400, "alpha": 0.01,
        "over": 1.5, "under": 0.25, "rate_lower": -0.01, "rate_upper": 0.02, "slope": 0.001, "state": [],
    }  # fmt: skip
    world.add(
        "audit_cell", {**row, "day": DAY, "rows": 50}, {**row, "day": date(2026, 3, 3), "rows": 90, "verdict": "clean"}
    )
    learnt = {name: row[name] for name in ("measure", "provider", "api", "model", "grade")}
    days = {"first_day": date(2026, 1, 1), "last_day": date(2026, 1, 31), "rows": 400}
    over = [0.1, 0.2, 0.3, 0.04]
    world.add("audit_tolerance", {**learnt, **days, "over": over, "under": over, "steepest": 0.03, "flattest": -0.03})


def changed(world: World) -> None:
    """A price of this provider became another, and one of another provider, too."""
    about = {"at": datetime(2026, 3, 5, tzinfo=UTC), "by": "ann", "kind": "prices", "file": "prices/own.toml"}
    world.add(
        "change",
        {**about, "number": 0, "key": "openai equals m-1", "before": None, "after": "input 3"},
        {**about, "number": 1, "key": "openai equals m-1", "before": "input 3", "after": "input 2", "by": "bob"},
        {**about, "number": 2, "key": "openai-eu equals m-1", "before": "input 9", "after": "input 8"},
    )
