"""Session logs of Claude Code: lines of one answer are one call, its last counts stand, and nothing else is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.log_samples import message

from weighbridge.pipeline.ingest.importer import importers
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
PROMPT = {"type": "user", "message": {"role": "user", "content": "hello"}, "timestamp": "2026-01-15T10:30:00Z"}


def test_lines_of_one_answer_are_one_call_with_its_last_counts(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    """Three lines of one answer, two of another, one in a side chain: 159, 80 and 7 tokens out."""
    lines = [
        PROMPT,
        message(1, 9),
        message(1, 9),
        message(1, 159, "tool_use"),
        {"type": "summary", "summary": "a talk"},
        message(2, 80),
        message(2, 80),
        message(3, 7, isSidechain=True),
        message(4, 0, message={"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}),
    ]
    (file,) = take([jsonl("session.jsonl", lines)], lake).files
    assert (file.importer, file.rows_in, file.rows_out, file.rows_duplicate) == ("claude_code", 6, 3, 3)
    rows = lake.scan("reading").collect().sort("segment_row")
    assert rows["segment_row"].to_list() == [3, 6, 7]
    assert rows["output_total"].to_list() == [159, 80, 7]
    row = rows.row(0, named=True)
    assert (row["dialect"], row["verdict"], row["input_total"]) == ("anthropic_messages", "PROVED", 21_203)
    assert {name: row[name] for name in ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h")} == {
        "input_uncached": 3,
        "cache_read": 20_000,
        "cache_write_5m": 1200,
        "cache_write_1h": 0,
    }


def test_what_is_taken_of_a_line(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("session.jsonl", [message(1, 5, "end_turn")])], lake)
    row = lake.scan("attempt").collect().row(0, named=True)
    assert (row["provider"], row["api"], row["model_served"]) == (
        "anthropic",
        "anthropic_messages",
        "claude-sonnet-4-5-20250929",
    )
    assert (row["status"], row["finish_reason"], row["usage_expected"]) == ("succeeded", "stop", True)
    assert row["arrived_at"] == datetime(2026, 1, 15, 10, 30, 1, 123_000, UTC)
    ids = lake.scan("foreign_id").collect()
    assert dict(ids.select("kind", "value").rows()) == {"record_id": "msg_1/req_1", "provider_response_id": "msg_1"}


def test_a_smaller_output_after_a_greater_one_is_a_replay(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("session.jsonl", [message(1, 159), message(1, 9)])], lake)
    assert lake.scan("reading").collect()["output_total"].to_list() == [159]


def test_one_message_under_two_requests_is_two_calls(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("session.jsonl", [message(1, 9), message(1, 11, requestId="req_other")])], lake)
    assert sorted(lake.scan("reading").collect()["output_total"].to_list()) == [9, 11]


def test_lines_without_ids_are_calls_of_their_own(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    line = message(1, 9)
    del line["requestId"], line["message"]["id"]
    (file,) = take([jsonl("session.jsonl", [line, line])], lake).files
    assert (file.rows_out, file.rows_duplicate) == (2, 0)
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 2


def test_a_session_that_went_on_and_one_that_was_resumed_bring_only_what_is_new(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    begun = [message(1, 9), message(2, 20, "end_turn")]
    take([jsonl("a.jsonl", begun)], lake)
    went_on = take([jsonl("a2.jsonl", [*begun, message(1, 30, "end_turn"), message(3, 5)])], lake).files[0]
    resumed = take([jsonl("b.jsonl", [message(1, 30, "end_turn", sessionId="other")])], lake).files[0]
    assert (went_on.rows_in, went_on.rows_out, went_on.rows_duplicate) == (4, 2, 2)
    assert (resumed.rows_out, resumed.rows_duplicate) == (0, 1)
    rows = lake.scan("reading").collect().sort("output_total")
    assert rows.select("output_total", "report", "revision").rows() == [(5, 0, 0), (20, 0, 0), (30, 0, 1)]


def test_what_an_older_release_says_it_cost_is_kept_as_evidence(lake: Lake, take: Take, tmp_path: Path) -> None:
    line = json.dumps(message(1, 5)).replace('"type": "assistant"', '"type": "assistant", "costUSD": 0.0123450', 1)
    (tmp_path / "old.jsonl").write_text(line + "\n")
    take([tmp_path / "old.jsonl"], lake)
    report = lake.scan("usage_report").collect().row(0, named=True)
    assert dict(zip(report["leaf_shape"].split(" "), report["leaf_texts"], strict=True))["costUSD"] == "0.0123450"
    assert lake.scan("reading").collect()["flags"].to_list() == [[]]


def test_what_cannot_be_read_is_held_and_the_other_lines_of_its_answer_stand(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    lines = [message(1, 9), message(1, "x"), message(2, 2**63), message(3, 1, message={"usage": 7}), b'{"type": "ass']  # type: ignore[arg-type]
    (file,) = take([jsonl("session.jsonl", lines)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (5, 1, 4)
    held = lake.scan("quarantine").collect().sort("line")
    assert held.select("line", "reason", "path").rows() == [
        (1, "type", "usage.output_tokens"),
        (2, "range", "usage.output_tokens"),
        (3, "not_an_object", "usage"),
        (4, "not_json", ""),
    ]
    assert lake.scan("reading").select(pl.col("output_total").sum()).collect().item() == 9


def test_a_conversation_without_answers_is_no_session_and_a_damaged_file_says_so(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    assert not importers()["claude_code"].recognises(jsonl("p.jsonl", [PROMPT]))
    with pytest.raises(ContractError, match="it is no session log, or damaged"):
        take([jsonl("s.jsonl", [b"\xff\xfe"])], lake, importer="claude_code")
