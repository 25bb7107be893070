"""A month is not closed while amounts of it are provisional."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.pipeline.reconcile.conftest import DAY, World

from weighbridge.pipeline.close.gates import still_open
from weighbridge.pipeline.reconcile.reconcile import reconcile


def test_provisional_amounts_shut_the_gate_until_they_are_final(tmp_path: Path) -> None:
    """Two directions of one attempt wait until 4 March; the refusal says from which day on they do not."""
    world = World(tmp_path)
    world.attempt(1, input_computed=100, output_computed=10)
    lake = world.lake()
    reconcile(lake, as_of=DAY)
    (refusal,) = still_open(lake, "2026-03")
    assert refusal.code == "provisional"
    assert refusal.why == "2 amounts of 2026-03 are provisional until 2026-03-04"
    assert "--as-of 2026-03-05" in refusal.cure
    assert list(still_open(lake, "2026-02")) == []
    reconcile(lake, as_of=DAY + timedelta(days=3))
    assert list(still_open(lake, "2026-03")) == []
