"""`read` takes what the importer of recorded answers takes, and says so where a line has no `api`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline import read_usage
from weighbridge.pipeline.ingest.answers import calls
from weighbridge.pipeline.ingest.reading import NO_API, read_parts

Run = Callable[..., Any]
USAGE = {"input_tokens": 5, "output_tokens": 2}
RECORDED = {"provider": "anthropic", "api_flavor": "anthropic_messages", "model": "claude-a"}
STREAM = [{"type": "message_start", "message": {"usage": USAGE}}, {"type": "message_delta", "usage": USAGE}]
FIGURES = [
    "provider", "api", "model", "verdict", "reason", "input_total", "output_total", "total", "ended",
]  # fmt: skip


def written(folder: Path, *lines: object) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("answer", [{"usage": USAGE}, {"response": {"usage": USAGE}}, {"response": STREAM}])
def test_a_recorded_answer_is_read_like_a_record(answer: dict[str, Any]) -> None:
    plain = read_usage({"provider": "anthropic", "api": "anthropic_messages", "model": "claude-b", **answer})
    recorded = read_usage(RECORDED | {"response_model": "claude-b", "stream": False, "status": 200} | answer)
    assert recorded == plain
    assert (recorded.input_total, recorded.output_total, recorded.model) == (5, 2, "claude-b")


def test_what_cannot_be_one_reading_is_not_guessed() -> None:
    two = read_usage(RECORDED | {"api": "openai_chat", "usage": USAGE})
    several = read_usage(RECORDED | {"calls_in_record": 2, "response": STREAM * 2})
    assert (two.total, several.total, two.flags, several.flags) == (None, None, ("unreadable",), ("unreadable",))
    assert "api_flavor" in two.reason
    assert "weighbridge ingest" in several.reason
    assert read_usage({"provider": "anthropic", "usage": USAGE}).reason == NO_API


@pytest.mark.real
def test_real_answers_are_read_as_ingest_reads_them_and_written_alike(
    weighbridge: Run, tmp_path: Path, shared_real: Path
) -> None:
    path = shared_real / "api_responses_small.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    out = tmp_path / "readings.parquet"
    assert weighbridge("read", path, "--out", out).code == 1
    rows = pl.read_parquet(out).filter(child=0).to_dicts()
    agreed = 0
    for record, row in zip(records, rows, strict=True):
        alone = read_usage(record)
        assert [row[name] or "" for name in FIGURES] == [getattr(alone, name) or "" for name in FIGURES], record["id"]
        if record.get("calls_in_record", 1) > 1:
            continue
        (call,) = calls(record, b"", provider=None, model=None)
        if call.parts:
            taken = read_parts(call.attempt["provider"], call.attempt["api"], call.model, call.parts)  # type: ignore[arg-type]
            assert (alone.counts, alone.verdict) == (taken.counts, taken.verdict), record["id"]
            agreed += taken.total is not None
    assert agreed > 300


def test_a_file_without_any_api_is_refused_with_the_cure(weighbridge: Run, tmp_path: Path) -> None:
    bare, out = {"provider": "anthropic", "usage": USAGE}, tmp_path / "readings.parquet"
    for more in ([], ["--json"], ["--out", out]):
        ran = weighbridge("read", written(tmp_path, bare, bare), *more)
        assert ran.code == 2
        assert "no line has an `api`" in ran.err
        one = weighbridge("read", written(tmp_path, bare, RECORDED | {"usage": USAGE}), *more)
        assert (one.code, one.err) == (0, "")
    mixed = written(tmp_path, "{", bare, "", RECORDED | {"response": STREAM})
    assert weighbridge("read", mixed, "--out", out).code == 1
    rows = pl.read_parquet(out).select("record", "error", "verdict").rows()
    assert rows == [(0, "not_json", None), (1, None, "UNKNOWN"), (3, None, "PROVED")]


def test_where_readings_go_is_checked_first(weighbridge: Run, tmp_path: Path) -> None:
    path = written(tmp_path, RECORDED | {"usage": USAGE})
    for out, said in (("r.csv", "has to end with .parquet: r.parquet"), ("none/r.parquet", "does not exist")):
        ran = weighbridge("read", path, "--out", tmp_path / out)
        assert (ran.code, said in ran.err) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["answers.jsonl"]


def test_many_unreadable_lines_are_counted(weighbridge: Run, tmp_path: Path) -> None:
    ran = weighbridge("read", written(tmp_path, *["no json"] * 30))
    assert ran.err.count("is not JSON") == 10
    assert "and 20 more lines" in ran.err
    assert "30 unreadable lines" in ran.out
