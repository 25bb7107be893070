"""`weighbridge engine`: counters of a server beside its attempts, from files to a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.engine_samples import BEGAN, finished, http_call

Run = Callable[..., Any]


def scrape(folder: Path, second: int, prompt: int, generated: int, requests: int) -> None:
    """A scrape so many seconds after the calls begin; finished requests have at most 14 and 12 tokens."""
    lines = [
        f"# scraped_at: 2026-01-15T10:30:{second:02d}Z",
        f'vllm:prompt_tokens_total{{model_name="m"}} {prompt}',
        f'vllm:generation_tokens_total{{model_name="m"}} {generated}',
        f'vllm:request_prompt_tokens_sum{{model_name="m"}} {min(prompt, 14)}',
        f'vllm:request_generation_tokens_sum{{model_name="m"}} {min(generated, 12)}',
        f'vllm:request_success_total{{model_name="m",finished_reason="length"}} {requests}',
    ]
    (folder / f"server-{second}.prom").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def home(weighbridge: Run, tmp_path: Path) -> Path:
    """Two calls that finished with 7 + 6 tokens, and one that was aborted after 4 tokens of a prompt of 900."""
    assert BEGAN == 1_768_473_000.0
    weighbridge("init", tmp_path / "home")
    files = tmp_path / "files"
    files.mkdir()
    gone = http_call(3, aborted=True)
    gone["response"] = {"status": None, "headers": None, "body": None, "events": None}
    calls = [http_call(1), http_call(2), gone]
    (files / "calls.jsonl").write_text("\n".join(map(json.dumps, calls)) + "\n", encoding="utf-8")
    (files / "finished.jsonl").write_text("\n".join(json.dumps(finished(n)) for n in (1, 2)) + "\n", encoding="utf-8")
    scrape(files, 0, 0, 0, 0)
    scrape(files, 9, 914, 16, 2)
    ran = weighbridge("ingest", files, "--provider", "vllm", "--model", "m", "--config", tmp_path / "home")
    assert ran.code == 0
    return tmp_path / "home"


def test_counters_are_told_beside_attempts_with_their_causes(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("engine", "--config", home, "--json")
    assert ran.code == 0  # a notice is no warning
    totals = {row["counter"]: row for row in ran.json["totals"]}
    names = ("counted", "attempted", "gap", "explained", "residual")
    assert [totals["prompt_tokens"][name] for name in names] == [914, 14, 900, 900, 0]
    assert [totals["generation_tokens"][name] for name in names] == [16, 12, 4, 4, 0]
    causes = {(row["cause"], row["counter"]): (row["tokens"], row["confidence"]) for row in ran.json["causes"]}
    assert causes == {
        ("aborted", "prompt_tokens"): (900, "certain"),
        ("aborted", "generation_tokens"): (4, "certain"),
    }
    assert (ran.json["shares"], ran.json["windows"]) == (1, [])
    again = weighbridge("engine", "--config", home, "--windows", "--json")
    assert [row["counter"] for row in again.json["windows"]] == [
        "generation_tokens",
        "prompt_tokens",
        "requests_finished",
    ]


def test_reconcile_compares_what_counters_leave_to_an_aborted_call(weighbridge: Run, home: Path) -> None:
    found = weighbridge("reconcile", "--config", home, "--json")
    codes = {finding["code"] for finding in found.json["findings"]}
    assert "aborted" in codes
    listed = weighbridge("findings", "ls", "--code", "engine_aborted", "--config", home, "--json")
    assert {row["difference"] for row in listed.json} == {900, 4}


def test_it_is_told_in_words(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("engine", "--config", home, "--windows")
    assert "1 attempt of which counters tell what nothing else does" in ran.out
    assert "prompt_tokens" in ran.out


def test_without_scrapes_it_says_what_is_needed(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "fresh")
    ran = weighbridge("engine", "--config", tmp_path / "fresh")
    assert ran.code == 0
    assert "Nothing was scraped" in ran.out


def test_a_month_without_scrapes_is_told_from_an_installation_without_any(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "fresh")
    ran = weighbridge("engine", "--month", "2026-02", "--config", tmp_path / "fresh")
    assert ran.code == 0
    assert "Nothing was scraped in 2026-02" in ran.out


def test_a_month_that_is_none_is_refused(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "fresh")
    ran = weighbridge("engine", "--month", "2026-13", "--config", tmp_path / "fresh")
    assert ran.code == 2
