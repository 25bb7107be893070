"""HTTP calls as their client recorded them: usage as of any answer, and what only the client knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.engine_samples import BEGAN, finished, http_call

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Row = dict[str, Any]
Take = Callable[..., IngestResult]


@pytest.fixture
def taken(jsonl: Callable[..., Path], lake: Lake, take: Take) -> Callable[..., list[Row]]:
    """The attempts of some calls, in the order they began."""

    def read(*records: Row) -> list[Row]:
        take([jsonl("calls.jsonl", records)], lake, provider="vllm")
        return lake.scan("attempt").collect().sort("arrived_at").to_dicts()

    return read


def test_a_call_is_told_with_its_times_its_answer_and_how_many_ids_came(taken: Callable[..., Any], lake: Lake) -> None:
    (row,) = taken(http_call(1))
    assert row["arrived_at"] == datetime.fromtimestamp(BEGAN + 1, UTC)
    names = ("provider", "api", "status", "max_tokens", "total_us", "output_delivered", "usage_expected")
    assert [row[name] for name in names] == ["vllm", "openai_completions", "succeeded", 6, 80_500, 6, True]
    (reading,) = lake.scan("reading").collect().to_dicts()
    assert (reading["input_total"], reading["output_total"], reading["verdict"]) == (7, 6, "PROVED")


@pytest.mark.parametrize(("provider", "framework"), [("vllm", "vllm"), ("openai", None), (None, None)])
def test_what_computed_is_told_only_by_a_provider_that_is_a_framework(
    provider: str | None, framework: str | None, jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    """Whose API a client speaks is not what answers it."""
    take([jsonl("calls.jsonl", [http_call(1)])], lake, provider=provider)
    (row,) = lake.scan("attempt").collect().to_dicts()
    assert (row["provider"], row["framework"]) == (provider, framework)


def test_who_went_away_is_told_and_whether_usage_would_have_come_is_not(taken: Callable[..., Any]) -> None:
    gone = http_call(1, aborted=True)
    gone["response"] = {"status": None, "headers": None, "body": None, "events": None}
    (row,) = taken(gone)
    assert (row["status"], row["usage_expected"], row["http_status"]) == ("aborted", None, None)


def test_two_calls_under_one_id_are_two(taken: Callable[..., Any], lake: Lake) -> None:
    """The answers have one id as well; when each began tells them apart."""
    first, second = http_call(1), http_call(2)
    second["request"]["headers"] = first["request"]["headers"]
    second["response"]["body"]["id"] = first["response"]["body"]["id"]
    assert len(taken(first, second)) == 2
    assert lake.scan("alias").collect().filter(kind="client_request_id").height == 2


def test_client_and_engine_meet_in_one_attempt(
    taken: Callable[..., Any], jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    """By the id of the answer, and where there is none by that of the client."""
    failed = http_call(2)
    failed["response"] = {"status": 400, "headers": {}, "body": {"error": {"message": "no"}}, "events": None}
    taken(http_call(1), failed)
    take([jsonl("finished.jsonl", [finished(1), finished(2)])], lake, model="m")
    rows = lake.scan("attempt").collect()
    assert rows.height == 4
    assert rows.select("attempt_hi", "attempt_lo").unique().height == 2


def test_choices_become_children(taken: Callable[..., Any], lake: Lake) -> None:
    call = http_call(1)
    choices = call["response"]["body"]["choices"]
    call["response"]["body"]["choices"] = [{**choices[0], "index": index} for index in range(3)]
    (row,) = taken(call)
    assert row["output_delivered"] == 18
    assert lake.scan("child").collect()["kind"].to_list() == ["choice"] * 3


@pytest.mark.parametrize(("asked", "scored"), [({"echo": True, "logprobs": 1}, True), ({"prompt_logprobs": 0}, True),
                                               ({"echo": True}, False), ({"logprobs": 3}, False)])  # fmt: skip
def test_prompts_that_are_scored_are_told(asked: Row, scored: bool, taken: Callable[..., Any]) -> None:
    call = http_call(1)
    call["request"]["body"] |= asked
    assert taken(call)[0]["prompt_scored"] is scored


def test_other_paths_are_no_records(jsonl: Callable[..., Path], lake: Lake, take: Take) -> None:
    tokenize = http_call(1)
    tokenize["request"]["path"] = "/tokenize"
    (file,) = take([jsonl("calls.jsonl", [tokenize, http_call(2)])], lake).files
    assert (file.rows_in, file.rows_out) == (1, 1)


def test_a_time_that_cannot_be_read_sends_the_call_to_quarantine(
    jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    (file,) = take([jsonl("calls.jsonl", [http_call(1, t_start_unix="noon"), http_call(2)])], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
