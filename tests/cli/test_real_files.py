"""Real recordings and a real trace, taken from the command line to the figures of the report."""

from __future__ import annotations

import csv
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

OWN_PRICE = """
format = 1
provider = "azure-trace"
currency = "USD"
source = "a price of our own"
checked_on = 2026-11-01
[[rows]]
models = ["unnamed"]
prices = { input = "2.5", output = "10" }
"""


@pytest.mark.real
def test_a_trace_is_priced_at_our_own_price_and_reported(weighbridge: Run, tmp_path: Path, shared_real: Path) -> None:
    trace, home = shared_real / "traces" / "azure2023_code.csv", tmp_path / "home"
    with trace.open(newline="") as file:
        rows = list(csv.DictReader(file))
    read, written = (sum(int(row[name]) for row in rows) for name in ("ContextTokens", "GeneratedTokens"))
    weighbridge("init", home)
    (home / "own.toml").write_text(OWN_PRICE)
    (home / "weighbridge.toml").write_text('prices = ["own.toml"]\n')
    taken = weighbridge("ingest", trace, "--config", home, "--json")
    assert (taken.code, taken.json["files"][0]["rows_out"], taken.json["priced"]) == (0, len(rows), len(rows))
    assert weighbridge("reconcile", "--config", home).code == 0
    (files,) = weighbridge("report", "--month", "2023-11", "--config", home, "--json").json
    with (Path(files["csv"]) / "by_model.csv").open(newline="") as file:
        (total,) = csv.DictReader(file)
    assert (int(total["attempts"]), int(total["input_tokens"]), int(total["output_tokens"])) == (
        len(rows),
        read,
        written,
    )
    assert Decimal(total["amount_usd"]) == (read * Decimal("2.5") + written * 10) / 10**6


@pytest.mark.real
def test_recorded_answers_are_all_accounted_for(weighbridge: Run, tmp_path: Path, shared_real: Path) -> None:
    answers = shared_real / "api_responses_small.jsonl"
    lines = sum(1 for line in answers.read_bytes().split(b"\n") if line.strip())
    weighbridge("init", tmp_path / "home")
    taken = weighbridge("ingest", answers, "--day", "20261101", "--config", tmp_path / "home", "--json")
    (file,) = taken.json["files"]
    assert file["rows_in"] == lines == file["rows_out"] + file["rows_quarantined"]
    assert taken.code == (1 if file["rows_quarantined"] else 0)
    again = weighbridge("ingest", answers, "--config", tmp_path / "home", "--json")
    assert again.json["files"][0]["skipped"] is True


@pytest.mark.real
def test_every_case_of_a_public_bug_report_passes(weighbridge: Run, shared_real: Path) -> None:
    ran = weighbridge("conformance", shared_real / "bug_cases.jsonl", "--json")
    assert ran.code == 0
    assert ran.json["outcomes"] == {"PASS": 58}
