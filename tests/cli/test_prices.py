"""`prices diff` and `prices import`: two books side by side, what one makes of a month, and another open book."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
BOOK = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["gpt-4o-2024-08-06"]
prices = {{ input = "{input}", output = "10" }}
{more}
"""


def book(folder: Path, name: str, per_million: str, more: str = "") -> Path:
    path = folder / name
    path.write_text(BOOK.format(input=per_million, more=more), encoding="utf-8")
    return path


@pytest.fixture
def home(weighbridge: Run, tmp_path: Path) -> Path:
    """An installation with one call of 12 April 2026: 1,000 tokens in, 100 out."""
    folder = tmp_path / "home"
    weighbridge("init", folder)
    record = {
        "id": "r_1",
        "provider": "openai",
        "api_flavor": "openai_chat",
        "model": "gpt-4o",
        "response_model": "gpt-4o-2024-08-06",
        "status": 200,
        "response": {
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            "choices": [{"finish_reason": "stop"}],
        },
    }
    calls = tmp_path / "calls.jsonl"
    calls.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert weighbridge("ingest", calls, "--day", "2026-04-12", "--config", folder).code == 0
    return folder


def test_two_books_are_told_apart_price_by_price(weighbridge: Run, tmp_path: Path) -> None:
    old = book(tmp_path, "old.toml", "2.5")
    new = book(tmp_path, "new.toml", "2", 'fees = { web_search = "10" }')
    ran = weighbridge("prices", "diff", old, new, "--json")
    assert ran.code == 1
    told = [(d["change"], d["item"], d["before"], d["after"], d["percent"]) for d in ran.json["differences"]]
    assert told == [
        ("added", "fee web_search", None, "10", None),
        ("changed", "input_uncached", "2.5", "2", "-20"),
    ]
    assert ran.json["findings"] == []
    shown = weighbridge("prices", "diff", old, new)
    assert (shown.code, "2 differences" in shown.out) == (1, True)
    same = weighbridge("prices", "diff", old, old)
    assert (same.code, "0 differences" in same.out) == (0, True)


def test_a_file_of_one_model_is_compared_with_that_model_alone(weighbridge: Run, tmp_path: Path) -> None:
    """All others of the shipped book are one count for each provider, and rows only where they are asked for."""
    own = book(tmp_path, "own.toml", "2")
    told = weighbridge("prices", "diff", "shipped", own, "--json").json
    assert {(each["provider"], each["model"]) for each in told["differences"]} == {("openai", "gpt-4o-2024-08-06")}
    counts = {each["provider"]: (each["change"], each["models"]) for each in told["only_one_has"]}
    assert counts["anthropic"][0] == counts["openai"][0] == "removed"
    assert counts["openai"][1] > 20
    shown = weighbridge("prices", "diff", "shipped", own)
    assert f"only A (shipped) has {counts['openai'][1]} models of openai: --all\n" in shown.out
    turned = weighbridge("prices", "diff", own, "shipped")
    assert f"only B (shipped) has {counts['openai'][1]} models of openai: --all\n" in turned.out
    every = weighbridge("prices", "diff", "shipped", own, "--all", "--json").json
    assert len({each["model"] for each in every["differences"] if each["provider"] == "openai"}) > 20


def test_what_another_book_makes_of_a_month_is_a_finding_of_it(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    """1,000 tokens at 2 instead of 2.5 a million are 0.0005 less."""
    old, new = book(tmp_path, "old.toml", "2.5"), book(tmp_path, "new.toml", "2")
    ran = weighbridge("prices", "diff", old, new, "--lake", "2026-04", "--config", home, "--json")
    assert ran.code == 1
    (found,) = ran.json["findings"]
    assert (found["code"], found["provider"], found["rows"]) == ("price_changed", "openai", 1)
    assert float(found["amount"]) == -0.0005
    listed = weighbridge("findings", "ls", "--config", home, "--json")
    assert [each["code"] for each in listed.json if each["code"].startswith("price_")] == ["price_changed"]
    # The same book twice: nothing is different, and the finding of before is gone.
    again = weighbridge("prices", "diff", old, old, "--lake", "2026-04", "--config", home, "--json")
    assert (again.code, again.json) == (0, {"differences": [], "only_one_has": [], "findings": []})


def test_a_price_that_the_other_book_lacks_is_missing(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    old = book(tmp_path, "old.toml", "2.5")
    other = book(tmp_path, "other.toml", "2.5")
    other.write_text(other.read_text(encoding="utf-8").replace("gpt-4o-2024-08-06", "gpt-5"), encoding="utf-8")
    asked = ("prices", "diff", old, other, "--lake", "2026-04", "--config", home)
    every = weighbridge(*asked, "--all", "--json")
    assert [(each["code"], each["amount"]) for each in every.json["findings"]] == [("price_missing", None)]
    # A file of another model says nothing of this one, and takes back what a comparison of all said.
    few = weighbridge(*asked, "--json")
    assert (few.code, few.json["findings"]) == (0, [])
    listed = weighbridge("findings", "ls", "--config", home, "--json")
    assert [each["code"] for each in listed.json if each["code"].startswith("price_")] == []


def test_a_model_that_a_file_names_but_does_not_price_on_the_day_is_missing(
    weighbridge: Run, home: Path, tmp_path: Path
) -> None:
    old, new = book(tmp_path, "old.toml", "2.5"), book(tmp_path, "new.toml", "2.5", "valid_from = 2026-05-01")
    ran = weighbridge("prices", "diff", old, new, "--lake", "2026-04", "--config", home)
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "price_missing: openai, gpt-4o-2024-08-06, 1 report")


def test_the_book_in_force_says_of_every_model_whether_it_has_a_price(
    weighbridge: Run, home: Path, tmp_path: Path
) -> None:
    """A model of our own that only the file prices: the shipped book lacks it, and is whole."""
    old = book(tmp_path, "old.toml", "2.5")
    old.write_text(old.read_text(encoding="utf-8").replace("gpt-4o-2024-08-06", "of-our-own"), encoding="utf-8")
    calls = tmp_path / "calls.jsonl"
    calls.write_text(calls.read_text(encoding="utf-8").replace("gpt-4o-2024-08-06", "of-our-own"), encoding="utf-8")
    weighbridge("ingest", calls, "--day", "2026-04-13", "--config", home)
    for whole in ("book", "shipped"):
        ran = weighbridge("prices", "diff", old, whole, "--lake", "2026-04", "--config", home, "--json")
        assert [(each["code"], each["model"]) for each in ran.json["findings"]] == [("price_missing", "of-our-own")]


def test_an_amount_is_shown_without_the_zeros_of_its_column(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    old, new = book(tmp_path, "old.toml", "2.5"), book(tmp_path, "new.toml", "2")
    ran = weighbridge("prices", "diff", old, new, "--lake", "2026-04", "--config", home)
    assert ran.out.splitlines()[-1] == "price_changed: openai, gpt-4o-2024-08-06, 1 report, -0.0005 USD"


def test_the_book_in_force_is_that_of_the_installation(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    shipped = weighbridge("prices", "diff", "shipped", "book", "--config", home)
    assert (shipped.code, "0 differences" in shipped.out) == (0, True)
    (home / "weighbridge.toml").write_text('prices = ["own.toml"]\n', encoding="utf-8")
    book(home, "own.toml", "2")
    ran = weighbridge("prices", "diff", "shipped", "book", "--config", home, "--json")
    assert {(each["provider"], each["model"]) for each in ran.json["differences"]} == {("openai", "gpt-4o-2024-08-06")}
    assert weighbridge("prices", "diff", "2026-05-01", "2026-05-01", "--config", home).code == 0


def test_a_model_without_a_price_any_more_is_a_difference_between_two_days(weighbridge: Run, home: Path) -> None:
    (home / "weighbridge.toml").write_text('prices = ["own.toml"]\n', encoding="utf-8")
    book(home, "own.toml", "2", 'valid_to = 2026-05-01\n[[rows]]\nmodels = ["made-up"]\nprices = { input = "1" }')
    own = home / "own.toml"
    own.write_text(own.read_text(encoding="utf-8").replace("gpt-4o-2024-08-06", "retired-model"), encoding="utf-8")
    ran = weighbridge("prices", "diff", "2026-04-30", "2026-05-01", "--config", home, "--json")
    told = [(each["change"], each["model"]) for each in ran.json["differences"]]
    assert (ran.code, told) == (1, [("removed", "retired-model")])


def test_what_is_no_month_and_no_book_is_refused(weighbridge: Run, tmp_path: Path) -> None:
    old = book(tmp_path, "old.toml", "2.5")
    month = weighbridge("prices", "diff", old, old, "--lake", "april")
    assert (month.code, "write it as YYYY-MM" in month.err) == (2, True)
    nowhere = weighbridge("prices", "diff", old, tmp_path / "nowhere.toml")
    assert (nowhere.code, "nowhere.toml: cannot be read" in nowhere.err) == (2, True)


def test_another_open_book_is_taken_over_and_what_is_left_out_is_listed(weighbridge: Run, tmp_path: Path) -> None:
    source = tmp_path / "model_prices.json"
    entry = {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06}
    models = {
        "gpt-a": {**entry, "output_cost_per_token": 1e-05},
        "gpt-b": {**entry, "output_cost_per_second": 0.1},
    }
    source.write_text(json.dumps(models), encoding="utf-8")
    ran = weighbridge("prices", "import", "litellm", source, "--out", tmp_path / "prices", "--json")
    assert ran.code == 1
    assert ["output_cost_per_second" in each["what"] for each in ran.json["left_out"]] == [True]
    written = tmp_path / "prices" / "openai.toml"
    assert written.exists()
    same = weighbridge("prices", "diff", written, written)
    assert same.code == 0
    nobody = weighbridge("prices", "import", "litellm", source, "--provider", "acme")
    assert (nobody.code, "has no prices of acme" in nobody.err) == (2, True)
