"""The table of shares in the documentation is what the recorded answers give."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "reading_shares.py"


@pytest.fixture(scope="module")
def script() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("reading_shares", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.real
def test_the_documented_shares_are_those_of_the_recorded_answers(script: Any, shared_real: Path) -> None:
    found = script.shares(shared_real / "api_responses_all.jsonl.gz")
    assert sum(counts.total() for counts in found.values()) == 3057
    page = (ROOT / "docs" / "reading-usage.md").read_text(encoding="utf-8")
    assert script.table(found) in page.split(script.BEGIN)[1].split(script.END)[0]


def test_a_share_is_of_the_answers_that_have_counts(script: Any) -> None:
    rows = script.table({"a": Counter(PROVED=3, ASSUMED=1, UNKNOWN=4), "b": Counter(UNKNOWN=2)}).splitlines()
    assert rows[2:] == [
        "| a | 8 | 3 | 1 |  | 4 | 75.0% |",
        "| b | 2 |  |  |  | 2 |  |",
        "| **all** | 10 | 3 | 1 |  | 6 | 75.0% |",
    ]
