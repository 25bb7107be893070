"""The fuzzing of readings, on few inputs; and that it would notice a count from nowhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline import read_usage
from weighbridge.schemas.enumerations import Verdict

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz_readings.py"


def loaded() -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("fuzz_readings", FUZZ)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz = loaded()


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**62))
def test_no_record_makes_the_reader_raise_or_make_counts_up(seed: int) -> None:
    assert fuzz.check(seed)[2] == []


def test_some_records_are_proved_and_some_are_none() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZ), "--inputs", "2000", "--seed", "7"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("2,000 inputs", "PROVED", "ASSUMED", "CONTRADICTORY", "UNKNOWN", "no record", "; 0 wrong"):
        assert word in done.stdout


RECORD = {
    "provider": "openai",
    "api": "chat",
    "usage": {"prompt_tokens": 5**3, "completion_tokens": 5**2, "total_tokens": 150},
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"total": 5**4}, ["total is not made of counts of the record"]),
        ({"total": -25}, ["total is no count"]),
        ({"counts": {"cache_read": 1}}, ["cache_read is not made of counts of the record"]),
        ({"verdict": Verdict.UNKNOWN}, ["a reading that is UNKNOWN has counts"]),
        ({"leaves": ()}, ["counts without any leaf"]),
    ],
)
def test_a_count_from_nowhere_is_noticed(change: dict[str, Any], told: list[str]) -> None:
    reading = read_usage(RECORD)
    counts = {**reading.counts, **change.get("counts", {})}
    assert list(fuzz.faults(RECORD, replace(reading, **{**change, "counts": counts}))) == told


@pytest.mark.parametrize(("count", "powers"), [(0, set()), (1, {0}), (5**7, {7}), (5**7 - 5**2, {2, 7}), (10, {1})])
def test_a_count_is_told_apart_into_powers_of_five(count: int, powers: set[int]) -> None:
    assert fuzz.powers_of(count) == powers
