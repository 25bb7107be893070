"""What was acknowledged survives SIGKILL; damage is never accepted silently. Samples; the full runs are benchmarks."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest

from weighbridge.capture.layout import COMMIT, SLOT

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """A benchmark as a module; benchmarks are scripts, not a package."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def killed(kills: int) -> None:
    tally = benchmark("capture_kills").kill(kills, 7, 4)
    assert tally.kills >= kills
    assert tally.acknowledged > 0
    assert (tally.lost, tally.doubled, tally.wrong, tally.falsely_complete) == (0, 0, 0, 0)


def damaged(damages: int) -> None:
    told = benchmark("capture_damage").damage(damages, 7)
    assert sum(told.values()) > 0.9 * damages
    assert [what for what in told if "silent" in what] == []
    assert any("refused" in what for what in told)
    assert any("counted" in what for what in told)


def test_every_acknowledged_attempt_is_read_back_once_after_a_kill() -> None:
    killed(12)


@pytest.mark.slow
def test_a_thousand_kills_lose_nothing() -> None:
    killed(1_000)


def test_no_damage_of_journals_and_segments_is_accepted_silently() -> None:
    damaged(400)


@pytest.mark.slow
def test_ten_thousand_damages_are_all_seen() -> None:
    damaged(10_000)


def test_a_store_that_fails_leaves_the_slot_uncommitted() -> None:
    """CPython's `pack_into` clears its target, then stores in order: the commit word last, and 0 after an error."""
    packer = struct.Struct(f"<2q{COMMIT - 16}xq")
    slot = bytearray(b"\xff" * SLOT)
    with pytest.raises(struct.error):
        packer.pack_into(slot, 0, 1, "text", 512)
    assert slot[COMMIT:] == bytes(8)
    with pytest.raises(struct.error):
        packer.pack_into(slot, 0, 1 << 63, 2, 512)
    assert slot[COMMIT:] == bytes(8)
    packer.pack_into(slot, 0, 1, 2, 512)
    assert int.from_bytes(slot[COMMIT:], "little") == 512
