"""`invoice` and `allocate`: from a bill to its causes, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.bill_samples import as_json, cost, costs, focus

Run = Callable[..., Any]
TWELFTH = 1_775_001_600 + 11 * 86_400
PRICES = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["gpt-4o-2024-08-06"]
[rows.prices]
input = "2.5"
output = "10"
"""
ALLOCATION = """
[[rules]]
team = "search"
provider = "openai"
"""


@pytest.fixture
def home(weighbridge: Run, tmp_path: Path) -> Path:
    """An installation with one call of 12 April 2026: 1,000 tokens in, 100 out, 0.0035 dollars."""
    folder = tmp_path / "home"
    weighbridge("init", folder)
    (folder / "own.toml").write_text(PRICES, encoding="utf-8")
    (folder / "allocation.toml").write_text(ALLOCATION, encoding="utf-8")
    settings = 'prices = ["own.toml"]\nallocation = "allocation.toml"\n'
    (folder / "weighbridge.toml").write_text(settings, encoding="utf-8")
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    record = {
        "id": "r_1",
        "provider": "openai",
        "api_flavor": "openai_chat",
        "model": "gpt-4o",
        "response_model": "gpt-4o-2024-08-06",
        "status": 200,
        "response": {"usage": usage, "choices": [{"finish_reason": "stop"}]},
    }
    calls = tmp_path / "calls.jsonl"
    calls.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert weighbridge("ingest", calls, "--day", "2026-04-12", "--config", folder).code == 0
    return folder


def bill(tmp_path: Path, *results: dict[str, object]) -> Path:
    path = tmp_path / f"bill{len(list(tmp_path.glob('bill*')))}.json"
    path.write_text(as_json(costs(*results, start=TWELFTH)), encoding="utf-8")
    return path


def test_a_bill_that_is_right_is_clean_and_one_that_is_not_is_a_finding(
    weighbridge: Run, home: Path, tmp_path: Path
) -> None:
    at = ("--config", home)
    told = bill(tmp_path, cost("0.0025"), cost("0.001", line_item="gpt-4o-2024-08-06, output"))
    assert weighbridge("invoice", "import", told, *at).code == 0
    right = weighbridge("invoice", "reconcile", "--json", *at)
    assert (right.code, right.json["statuses"]) == (0, {"MATCHED": 2})
    assert weighbridge("invoice", "show", "--json", *at).json == []
    wrong = bill(tmp_path, cost("0.0026"), cost("0.001", line_item="gpt-4o-2024-08-06, output"))
    weighbridge("invoice", "import", wrong, *at)
    ran = weighbridge("invoice", "reconcile", "--month", "2026-04", "--json", *at)
    assert (ran.code, ran.json["statuses"]) == (1, {"MATCHED": 1, "UNEXPLAINED": 1})
    shown = weighbridge("invoice", "show", "--json", *at)
    assert shown.code == 1
    assert [(cell["gap"], cell["residual"]) for cell in shown.json] == [("0.0001", "0.0001")]
    assert "UNEXPLAINED" in weighbridge("invoice", "show", "--all", *at).out
    assert weighbridge("findings", "ls", "--code", "invoice_unexplained", *at).code == 1
    (accrual,) = weighbridge("invoice", "accrual", "--json", *at).json
    assert (accrual["expected"], accrual["invoiced"], accrual["accrued"]) == ("0.0035", "0.0036", "0")


def test_a_bill_that_cannot_be_read_is_told(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    told = bill(tmp_path, cost("1"), {"object": "organization.costs.result", "amount": {"value": "much"}})
    assert weighbridge("invoice", "import", told, "--config", home).code == 1


def test_a_bill_without_lines_is_told_every_time(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    """A page without results, a table with nothing but names, a file of no bytes: nothing came of them."""
    page, table, nothing = bill(tmp_path), tmp_path / "focus.csv", tmp_path / "none.csv"
    table.write_text(focus(), encoding="utf-8")
    nothing.touch()
    for _ in range(2):
        for file in (page, table, nothing):
            ran = weighbridge("invoice", "import", file, "--config", home)
            assert (ran.code, f"without any line: {file.name}" in ran.out) == (1, True)
    ran = weighbridge("invoice", "import", page, bill(tmp_path, cost("1")), "--json", "--config", home)
    assert (ran.code, ran.json["without_lines"]) == (1, [page.name])


def test_the_bill_of_another_organization_is_no_revision(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    """Two organizations without a name: the second one is refused, and with a name both count."""
    at, whose = ("--config", home), {"project_id": None}
    output = {**whose, "line_item": "gpt-4o-2024-08-06, output"}
    one = bill(tmp_path, cost("0.0025", **whose), cost("0.001", **output))
    other = bill(tmp_path, cost("7.1", **whose), cost("0.0005", **output))
    assert weighbridge("invoice", "import", one, *at).code == 0
    refused = weighbridge("invoice", "import", other, *at)
    assert refused.code == 2
    assert "--account NAME" in refused.err
    assert weighbridge("invoice", "import", other, "--account", "second", *at).code == 0
    assert weighbridge("invoice", "import", one, other, *at).code == 0
    weighbridge("invoice", "reconcile", *at)
    (accrual,) = weighbridge("invoice", "accrual", "--json", *at).json
    assert accrual["invoiced"] == "7.104"


def test_a_month_goes_to_its_teams(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("allocate", "--month", "2026-04", "--json", "--config", home)
    assert ran.code == 0
    assert [(row["team"], row["tokens"], row["amount"]) for row in ran.json] == [("search", 1100, "0.0035")]
    (home / "weighbridge.toml").write_text('prices = ["own.toml"]\n', encoding="utf-8")
    refused = weighbridge("allocate", "--month", "2026-04", "--config", home)
    assert refused.code == 2
    assert "allocation" in refused.err
