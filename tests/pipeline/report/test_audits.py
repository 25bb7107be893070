"""The sheet of audits: the last that was said of each cell of the period, the worst first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.audits import audits
from weighbridge.pipeline.report.view import View


def audited(day: str, model: str, verdict: str | None, gap: int = 0, **more: Any) -> dict[str, Any]:
    """A row of `audit_cell`."""
    return {
        "day": date.fromisoformat(day),
        "measure": "output",
        "provider": "openai",
        "api": "openai_chat",
        "model": model,
        "grade": "G3",
        "rows": 500,
        "pinned": 0,
        "incomplete": 2,
        "broken": 9,
        "gap": gap,
        "observed": 9_000,
        "rate_lower": 0.0002,
        "rate_upper": 0.005,
        "verdict": verdict,
        **more,
    }


def test_the_last_verdict_of_a_cell_counts_and_the_worst_comes_first(march: Callable[..., View]) -> None:
    world = World()
    world.put["audit_cell"] += [
        audited("2026-03-01", "m-1", "suspected", 7),
        audited("2026-03-02", "m-1", "accused", 643, cause="constant_factor"),
        audited("2026-03-01", "m-2", "clean", -3),
        audited("2026-03-02", "m-3", None),
        audited("2026-02-28", "m-4", "accused", 1),
    ]
    sheet = audits(march(world))
    assert [(row[0], row[4], row[5], row[7]) for row in sheet.rows] == [
        ("m-1", "accused", "constant_factor", 643),
        ("m-2", "clean", "", -3),
    ]
    assert sheet.rows[0][8:10] == (Decimal("0.0002"), Decimal("0.0050"))
    assert "consistent" in sheet.note
