"""`weighbridge validate`: the gate as an exit code, what is broken as a table or JSON, the page among the reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake

Run = Callable[..., Any]
DAY = "2026-01-15"


@pytest.fixture
def home(weighbridge: Run, tmp_path: Path) -> Path:
    """An installation with three recorded answers of one day."""
    return installed(weighbridge, tmp_path)


def installed(weighbridge: Run, folder: Path) -> Path:
    """Make it in a folder."""
    answers = [
        {
            "id": f"r_{n}",
            "provider": "openai",
            "api_flavor": "openai_chat",
            "model": "gpt-4o",
            "stream": False,
            "status": 200,
            "request": {"model": "gpt-4o", "messages": []},
            "response": {
                "id": f"chatcmpl-{n}",
                "created": int(datetime(2026, 1, 15, 10, tzinfo=UTC).timestamp()),
                "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10 + n, "completion_tokens": 5, "total_tokens": 15 + n},
            },
        }
        for n in range(3)
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    home = folder / "home"
    weighbridge("init", home)
    weighbridge("ingest", folder / "a.jsonl", "--config", home)
    assert Lake.open(home / "lake").rows("attempt") == 3
    return home


def change(home: Path, **columns: Any) -> None:
    """Change columns of the first attempt behind everybody's back."""
    lake = Lake.open(home / "lake")
    rows = lake.scan("attempt").sort("segment_row").collect()
    first = pl.col("segment_row") == 0
    rows = rows.with_columns(
        pl.when(first).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in columns.items()
    )
    lake.replace("attempt", rows, days=[date.fromisoformat(DAY)])


def test_clean_rows_open_the_gate(weighbridge: Run, home: Path, by_great_expectations: None) -> None:
    ran = weighbridge("validate", "--config", home)
    assert (ran.code, ran.err) == (0, "")
    assert "The gate is open." in ran.out
    page = home / "reports" / "data-quality.html"
    assert f"page: {page}" in ran.out
    assert "The gate is open: every rule holds that could be checked." in page.read_text(encoding="utf-8")


def test_a_critical_rule_that_is_broken_is_exit_3_with_the_reason_and_the_next_step(
    weighbridge: Run, home: Path, by_great_expectations: None
) -> None:
    change(home, queue_us=-1)
    ran = weighbridge("validate", "--config", home)
    assert ran.code == 3
    assert "The gate is shut:" in ran.out
    assert f"attempt.queue_us is at least 0: not so for 1 row on {DAY}" in ran.out
    assert "Next: weighbridge quarantine ls" in ran.out
    listed = weighbridge("findings", "ls", "--code", "value_below_minimum", "--json", "--config", home)
    (finding,) = listed.json
    assert (listed.code, finding["origin"], finding["severity"], finding["rows"]) == (1, "validate", "error", 1)


def test_a_warning_is_exit_1(weighbridge: Run, home: Path) -> None:
    change(home, drafted=3, accepted=1, rejected=1)
    ran = weighbridge("validate", "--config", home)
    assert (ran.code, "The gate is open." in ran.out) == (1, True)
    assert "identity.drafted" in ran.out


def test_an_acknowledged_finding_weighs_nothing(weighbridge: Run, home: Path) -> None:
    change(home, drafted=3, accepted=1, rejected=1)
    told = weighbridge("validate", "--json", "--config", home).json
    (warning,) = (each for each in told["violations"] if each["gravity"] == "warning")
    weighbridge("findings", "ack", warning["finding"][:8], "--config", home)
    assert weighbridge("validate", "--config", home).code == 0


def test_json_tells_all_of_it(weighbridge: Run, home: Path) -> None:
    change(home, queue_us=-1)
    ran = weighbridge("validate", "--json", "--page", home / "out" / "q.html", "--config", home)
    told = ran.json
    assert (ran.code, told["gate"], told["days"]) == (3, "shut", [DAY])
    assert told["why"] == [f"attempt.queue_us is at least 0: not so for 1 row on {DAY}"]
    assert told["page"] == str(home / "out" / "q.html")
    assert told["rows"]["attempt"] == 3
    (broken,) = (each for each in told["violations"] if each["gravity"] == "critical")
    assert {name: broken[name] for name in ("code", "table", "rule", "day", "rows", "held", "released", "state")} == {
        "code": "value_below_minimum",
        "table": "attempt",
        "rule": "minimum.queue_us",
        "day": DAY,
        "rows": 1,
        "held": 1,
        "released": 0,
        "state": "open",
    }
    assert {"table": "child", "what": "the table", "why": "it has no rows"} in told["unjudged"]


def test_some_tables_and_days(weighbridge: Run, home: Path) -> None:
    change(home, queue_us=-1)

    def run(*options: str) -> Any:
        return weighbridge("validate", *options, "--json", "--config", home)

    assert list(run("--table", "usage_report", "--table", "alias").json["rows"]) == ["usage_report", "alias"]
    assert run("--month", "2026-01").code == 3
    assert run("--month", "2026-02").json["days"][:1] != [DAY]
    assert run("--since", "2026-01-16").code == 0
    assert run("--until", "2026-01-14").code == 0
    looked = run("--since", "20260114", "--until", "2026-01-16")
    assert (looked.code, looked.json["days"]) == (3, ["2026-01-14", DAY, "2026-01-16"])


def test_a_table_that_does_not_exist_is_wrong_usage(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("validate", "--table", "atempt", "--config", home)
    assert ran.code == 2
    assert "there is no table 'atempt'; known are" in ran.err


def test_a_range_that_ends_before_it_begins_is_wrong_usage(weighbridge: Run, home: Path) -> None:
    """No day lies in it, and a gate that is open for no day would say that all is well."""
    ran = weighbridge("validate", "--since", "2026-01-16", "--until", "2026-01-14", "--config", home)
    assert ran.code == 2
    assert "--until 2026-01-14 is before --since 2026-01-16" in " ".join(ran.err.replace("│", " ").split())


def test_a_damaged_lake_is_an_error_with_the_next_step(weighbridge: Run, home: Path) -> None:
    for path in (home / "lake").rglob("attempt/**/*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    ran = weighbridge("validate", "--config", home)
    assert (ran.code, ran.out) == (2, "")
    assert "Run `weighbridge doctor`" in ran.err
    assert "crashed" not in ran.err


def test_a_page_that_cannot_be_written_is_named(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("validate", "--page", home / "reports", "--config", home)
    assert ran.code == 2
    assert "directory" in ran.err.lower()
    assert list(home.glob(".*.draft")) == []


def test_an_empty_lake_has_an_open_gate(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "new")
    for options in ([], ["--month", "2026-01"]):
        assert weighbridge("validate", *options, "--config", tmp_path / "new").code == 0
    assert "There was nothing to check." in (tmp_path / "new" / "reports" / "data-quality.html").read_text()


def test_the_simulated_quarter_keeps_its_contract(weighbridge: Run, weighed: Path, tmp_path: Path) -> None:
    """Readings, prices, comparisons and findings among it."""
    ran = weighbridge("validate", "--json", "--page", tmp_path / "q.html", "--config", weighed)
    told = ran.json
    assert told["gate"] == "open"
    assert [each for each in told["violations"] if each["gravity"] == "critical"] == []
    assert {"attempt", "usage_report", "reading", "priced_amount", "reconciled", "finding"} <= set(told["rows"])


def test_a_code_of_validation_is_one_that_findings_can_have(weighbridge: Run, home: Path) -> None:
    assert weighbridge("findings", "ls", "--code", "rows_missing", "--config", home).code == 0
    ran = weighbridge("findings", "ls", "--code", "rows_mising", "--config", home)
    assert (ran.code, "did you mean rows_missing?" in ran.err) == (2, True)


def test_a_run_over_some_days_leaves_the_page_of_everything(weighbridge: Run, home: Path) -> None:
    reports = home / "reports"
    assert weighbridge("validate", "--json", "--config", home).json["whole"] is True
    whole = (reports / "data-quality.html").read_bytes()
    ran = weighbridge("validate", "--since", DAY, "--until", DAY, "--table", "attempt", "--config", home)
    page = reports / f"data-quality-{DAY}-attempt.html"
    assert f"page: {page}" in ran.out
    assert f"Looked at: only 1 UTC day ({DAY})" in ran.out
    text = page.read_text(encoding="utf-8")
    assert "<h1>Data quality of a part of the lake</h1>" in text
    assert "Of the whole lake 0 records are in quarantine." in text
    assert (reports / "data-quality.html").read_bytes() == whole
    assert b"of a part" not in whole
