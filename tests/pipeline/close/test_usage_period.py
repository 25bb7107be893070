"""Sums of a provider's own pages in a close: their rows are in the pack, verified, and go with their tenant."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl
from tests.pipeline.close.conftest import FILE_A, NOW, TENANT_A, TENANT_B, Office

from weighbridge.pipeline.close.forget import forget
from weighbridge.pipeline.close.verify import verify


def told(cell: int, tenant: str, day: date, **more: Any) -> dict[str, Any]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    row = {
        "cell_hi": cell,
        "cell_lo": -cell,
        "day": day,
        "source": "usage-pages",
        "provider": "openai",
        "api": "openai_usage_completions",
        "period_start": start,
        "period_end": start.replace(day=day.day + 1),
        "tenant": tenant,
        "provisional": False,
        "verdict": "PROVED",
        "input_total": 100,
        "output_total": 5,
        "total": 105,
        "leaf_shape": "result.input_tokens result.output_tokens",
        "leaf_integers": [100, 5],
        "leaf_texts": [None, None],
        "segment": FILE_A,
        "segment_row": cell,
        "revision": 0,
    }
    return row | more


def test_a_close_holds_the_pages_of_its_month_and_its_files(office: Office) -> None:
    office.both(1, "2026-03-02T10:00:00", segment="c" * 64)
    office.file(FILE_A)
    office.file("c" * 64)
    office.add("usage_period", told(1, TENANT_A, date(2026, 3, 2)))
    office.add("usage_period", told(2, TENANT_B, date(2026, 3, 30)))
    office.add("usage_period", told(3, TENANT_A, date(2026, 4, 1)))
    office.weigh()
    assert office.close().closed
    held = pl.concat([pl.read_parquet(path) for path in sorted((office.pack() / "rows/usage_period").iterdir())])
    assert held["cell_hi"].sort().to_list() == [1, 2]
    assert set(pl.read_parquet(office.pack() / "rows/segment/all.parquet")["segment"]) == {FILE_A, "c" * 64}
    assert verify(office.pack()).sound


def test_they_go_from_a_pack_with_their_tenant(office: Office) -> None:
    office.both(1, "2026-03-02T10:00:00")
    office.file(FILE_A)
    office.add("usage_period", told(1, TENANT_A, date(2026, 3, 2)))
    office.add("usage_period", told(2, TENANT_B, date(2026, 3, 2)))
    office.weigh()
    office.close()
    nobody = pl.DataFrame(schema={"attempt_hi": pl.Int64, "attempt_lo": pl.Int64})
    options: dict[str, Any] = {"tenant": TENANT_B, "counts": True, "rule": "request", "by": "officer", "now": NOW}
    forget(office.packs, office.lake, attempts=nobody, **options)
    found = verify(office.pack())
    assert found.sound
    held = [pl.read_parquet(path) for path in sorted((office.pack() / "rows/usage_period").glob("*.parquet"))]
    assert pl.concat(held)["tenant"].to_list() == [TENANT_A]
