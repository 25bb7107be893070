"""`read` and `conformance`: no installation, no engine, every line accounted for, no text in a message."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]
CANARY = "zebra-canary"

GOOD = {
    "provider": "openai",
    "api": "chat",
    "model": "gpt-4o",
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 20},
    },
}
MISMATCH = {
    "provider": "openai",
    "api": "chat",
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9},
}
UNKNOWN = {"provider": "nobody", "api": "nothing", "usage": {"input_tokens": 4}}
TOO_LARGE = '{"provider": "openai", "api": "chat", "usage": {"prompt_tokens": 9223372036854775808}}'


def written(folder: Path, *lines: object) -> Path:
    path = folder / "records.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_one_report_is_read_into_disjoint_counts(weighbridge: Run, tmp_path: Path) -> None:
    ran = weighbridge("read", written(tmp_path, GOOD), "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["counts"] == {
        "input_uncached": 36,
        "cache_read": 64,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "cache_write_unknown": 0,
        "output_visible": 10,
        "reasoning": 20,
    }
    facts = {name: ran.json[name] for name in ("line", "verdict", "input_total", "output_total", "total", "flags")}
    assert facts == {
        "line": 1,
        "verdict": "PROVED",
        "input_total": 100,
        "output_total": 30,
        "total": 130,
        "flags": ["cached_off_grain"],  # this model caches in steps of 128
    }


def test_the_table_shows_calls_beside_the_answer_under_its_line(weighbridge: Run, tmp_path: Path) -> None:
    called = [
        {"type": "advisor_message", "model": "claude-b", "input_tokens": 30, "output_tokens": 4},
        {"type": "message", "input_tokens": 7, "output_tokens": 2},
    ]
    usage = {"input_tokens": 7, "output_tokens": 2, "iterations": called}
    ran = weighbridge(
        "read", written(tmp_path, {"provider": "anthropic", "api": "messages", "model": "claude-a", "usage": usage})
    )
    rows = [[cell.strip() for cell in line.split("│")] for line in ran.out.splitlines() if "│" in line]
    assert [(row[0], row[3]) for row in rows] == [("1", "claude-a"), ("1/1", "claude-b")]
    assert "30" in rows[1]


def test_the_table_shows_the_same_figures(weighbridge: Run, tmp_path: Path) -> None:
    ran = weighbridge("read", written(tmp_path, GOOD))
    head, row = (line.split("┃" if "┃" in line else "│") for line in (ran.out.splitlines()[0], ran.out.splitlines()[2]))
    shown = {name.strip(): cell.strip() for name, cell in zip(head, row, strict=True)}
    assert shown["input uncached"] == "36"
    assert (shown["cache read"], shown["reasoning"], shown["total"], shown["verdict"]) == ("64", "20", "130", "PROVED")
    assert ran.out.endswith("1 read, 0 unreadable lines, 0 contradictory\n")


def test_every_line_has_its_answer_and_its_number(weighbridge: Run, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, "", "{", MISMATCH, "[1]", UNKNOWN, '{"api": "a", "api": "b"}', TOO_LARGE)
    ran = weighbridge("read", path, "--json")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(item["line"], item.get("verdict") or item.get("error")) for item in told] == [
        (1, "PROVED"),
        (3, "is not JSON"),
        (4, "CONTRADICTORY"),
        (5, "is not a JSON object"),
        (6, "UNKNOWN"),
        (7, "names a key twice in one object"),
        (8, "UNKNOWN"),
    ]
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "weighbridge: line 3 is not JSON",
        "weighbridge: line 5 is not a JSON object",
        "weighbridge: line 7 names a key twice in one object",
    ]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([GOOD], 0),
        ([UNKNOWN], 0),
        ([GOOD, "{"], 1),
        ([GOOD, MISMATCH], 1),
        ([TOO_LARGE], 1),
        (["{"], 2),
        ([], 2),
        ([""], 2),
        (["\x00\x01"], 2),
    ],
)
def test_exit_codes(weighbridge: Run, tmp_path: Path, lines: list[object], code: int) -> None:
    assert weighbridge("read", written(tmp_path, *lines)).code == code


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 10_000,
        '{"provider":"openai","api":"chat","usage":{"prompt_tokens":' + "9" * 10_000 + "}}",
        '{"provider":"openai","api":"chat","usage":{"prompt_tokens":1e999999999}}',
        '{"provider":"openai","api":"chat","usage":{"prompt_tokens":NaN}}',
        '{"provider":"openai","api":"chat","usage":{"cost":1e999999999999999999999}}',
        '{"provider":"openai","api":"chat","usage":"\\ud800"}',
        '{"provider":"\\u001b[31m","api":"chat","usage":{"prompt_tokens":-1}}',
        '{"provider":[],"api":{},"model":3,"events":"x"}',
        '{"provider":"anthropic","api":"messages","events":[1,null,{"type":3}]}',
    ],
    ids=range(11),
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_hostile_line_neither_crashes_nor_stops_the_others(
    weighbridge: Run, tmp_path: Path, line: str, form: list[str]
) -> None:
    ran = weighbridge("read", written(tmp_path, line, GOOD), *form)
    assert ran.code in {0, 1}, ran.err
    assert "PROVED" in ran.out
    assert "\x1b" not in ran.out
    assert "crashed" not in ran.err


def test_no_text_of_an_answer_is_printed(weighbridge: Run, tmp_path: Path) -> None:
    body = {"choices": [{"message": {"content": CANARY}}], "usage": {CANARY: CANARY, "prompt_tokens": CANARY}}
    records = [
        {"provider": "openai", "api": "chat", "response": body},
        {"provider": "anthropic", "api": "messages", "events": [{"type": "message_start", "message": body}]},
        '{"' + CANARY + '": ',
    ]
    for form in ([], ["--json"], ["--log-level", "debug"]):
        ran = weighbridge("read", written(tmp_path, *records), *form)
        assert CANARY not in ran.out + ran.err


def test_records_can_be_piped_in_and_compressed(weighbridge: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weighbridge.cli.main", "read", "-", "--json"]
    done = subprocess.run(command, input=json.dumps(GOOD), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["total"] == 130
    packed = tmp_path / "records.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert weighbridge("read", packed, "--json").json["total"] == 130


def test_a_missing_file_is_one_line(weighbridge: Run, tmp_path: Path) -> None:
    ran = weighbridge("read", tmp_path / "none.jsonl")
    assert ran.code == 2
    assert ran.err == f"weighbridge: No such file or directory: {tmp_path / 'none.jsonl'}; check the path\n"


def test_reading_loads_no_engine(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    code = f"""
import sys
from weighbridge.cli.main import run
try:
    run(["read", {str(path)!r}])
except SystemExit as end:
    assert end.code in (0, None)
assert not {{"polars", "deltalake", "pyarrow", "prefect", "great_expectations"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)


def test_output_cut_by_its_reader_is_no_crash(tmp_path: Path) -> None:
    path = written(tmp_path, *[GOOD] * 3000)
    command = f"{sys.executable} -m weighbridge.cli.main read {path} --json | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert json.loads(done.stdout)["line"] == 1


def case(**expect: object) -> dict[str, object]:
    return {"id": "C1", "kind": "usage", "input": {**GOOD}, "expect": expect}


def test_conformance_of_the_product_s_own_cases(weighbridge: Run) -> None:
    ran = weighbridge("conformance", "--json")
    assert ran.code == 0
    assert ran.json["outcomes"] == {"PASS": len(ran.json["cases"])}
    assert len(ran.json["cases"]) >= 30


def test_conformance_shows_the_difference(weighbridge: Run, tmp_path: Path) -> None:
    path = written(tmp_path, case(counts={"cache_read": 64}), case(counts={"cache_read": 63}) | {"id": "C2"})
    ran = weighbridge("conformance", path, "--json")
    assert ran.code == 1
    assert [(item["id"], item["outcome"]) for item in ran.json["cases"]] == [("C1", "PASS"), ("C2", "FAIL")]
    assert "64" in ran.json["cases"][1]["differences"][0]
    table = weighbridge("conformance", path)
    assert (table.code, table.out.splitlines()[-1]) == (1, "1 FAIL, 1 PASS")


def test_what_conformance_cannot_run_is_no_failure(weighbridge: Run, tmp_path: Path) -> None:
    path = written(tmp_path, case(verdict="PROVED") | {"kind": "other"})
    ran = weighbridge("conformance", path, "--json")
    assert (ran.code, ran.json["outcomes"]) == (0, {"UNSUPPORTED": 1})
    assert ran.json["cases"][0]["missing"]


@pytest.mark.parametrize(("lines", "code"), [([], 2), (["{", "text"], 2), (["{", {"id": "C1"}], 1)])
def test_a_file_without_a_sound_case(weighbridge: Run, tmp_path: Path, lines: list[object], code: int) -> None:
    assert weighbridge("conformance", written(tmp_path, *lines)).code == code


def test_readings_are_written_as_parquet(weighbridge: Run, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, *[GOOD] * 9, UNKNOWN)
    out = tmp_path / "readings.parquet"
    ran = weighbridge("read", path, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"records": 11, "readings": 11, "verdicts": {"PROVED": 10, "UNKNOWN": 1}, "errors": {}}
    rows = pl.read_parquet(out)
    assert rows["record"].to_list() == list(range(11))
    assert rows["cache_read"].to_list() == [*[64] * 10, None]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["readings.parquet", "records.jsonl"]


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        ([GOOD, MISMATCH], 1, ""),
        ([GOOD, TOO_LARGE], 1, ""),
        ([GOOD, "{", f'{{"{CANARY}": 1'], 1, "2 lines: is not JSON"),
        (["[]"], 2, "1 line: is not a JSON object"),
        ([], 2, "no record could be read"),
    ],
)
def test_writing_parquet_ends_as_reading_does(
    weighbridge: Run, tmp_path: Path, lines: list[object], code: int, said: str
) -> None:
    path = written(tmp_path, *lines)
    ran = weighbridge("read", path, "--out", tmp_path / "readings.parquet")
    assert (ran.code, weighbridge("read", path, "--json").code) == (code, code)
    assert said in ran.err
    assert CANARY not in ran.err + ran.out
    assert pl.read_parquet(tmp_path / "readings.parquet").height == len(lines)
