"""One call that several records tell: the same file twice, two sources, tries of one request, exports that overlap."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.log_samples import SECOND, chat, export, invocation, message, span

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Row = Callable[..., dict[str, object]]
SPEND = {
    "request_id": "chatcmpl-1",
    "litellm_call_id": "call-1",
    "call_type": "acompletion",
    "spend": 0.00105,
    "prompt_tokens": 11,
    "completion_tokens": 5,
    "total_tokens": 16,
    "startTime": "2026-01-15T10:30:00.000Z",
    "endTime": "2026-01-15T10:30:01.000Z",
    "model": "gpt-4o",
    "custom_llm_provider": "openai",
    "status": "success",
    "metadata": {},
}
SPAN = export(span(1, chat(11, 5, response__id="chatcmpl-1")))


def attempts(lake: Lake) -> int:
    return lake.scan("attempt").select("attempt_hi", "attempt_lo").unique().collect().height


@pytest.mark.parametrize(
    "order", [("spans", "spend", "answers"), ("spend", "answers", "spans"), ("answers", "spans", "spend")]
)
def test_one_call_that_three_sources_know_by_its_answer_is_one_attempt(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row, order: tuple[str, ...]
) -> None:
    """A gateway's log, a span and the recorded answer share the id of the answer, in whatever order they come."""
    paths = {
        "spans": jsonl("spans.jsonl", [SPAN]),
        "spend": jsonl("spend.jsonl", [SPEND]),
        "answers": jsonl("answers.jsonl", [answer(1)]),
    }
    for name in order:
        take([paths[name]], lake)
    assert attempts(lake) == 1
    rows = lake.scan("reading").collect().sort("source")
    assert rows.select("source", "input_total", "output_total").rows() == [
        ("litellm", 11, 5),
        ("otel-spans", 11, 5),
        ("recorded-answers", 11, 5),
    ]


def test_a_span_and_a_log_of_bedrock_meet_in_the_id_the_client_knows(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    request = str(invocation(1)["requestId"])
    told = chat(1004, 38) | {"gen_ai.provider.name": "aws.bedrock", "aws.request_id": request}
    take([jsonl("log.jsonl", [invocation(1)])], lake)
    take([jsonl("spans.jsonl", [export(span(1, told))])], lake)
    assert attempts(lake) == 1
    assert lake.scan("reading").collect()["total"].to_list() == [1042, 1042]


def test_two_calls_of_one_source_under_one_answer_id_stay_two_and_no_other_source_is_matched(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    calls = [span(1, chat(11, 5, response__id="chatcmpl-1"), traceId="a" * 32)]
    calls.append(span(2, chat(30, 7, response__id="chatcmpl-1"), traceId="b" * 32))
    take([jsonl("spans.jsonl", [export(*calls)])], lake)
    take([jsonl("spend.jsonl", [SPEND])], lake)
    assert attempts(lake) == 3


def test_the_same_file_twice_changes_nothing_and_a_copy_with_more_in_it_brings_the_rest(
    lake: Lake, take: Take, jsonl: Jsonl, tmp_path: Path
) -> None:
    spans = [SPAN, export(span(2, chat(3, 4)), traceless())]
    sessions = [message(1, 9), message(1, 20)]
    paths = [jsonl("spans.jsonl", spans), jsonl("session.jsonl", sessions), jsonl("log.jsonl", [invocation(1)])]
    take(paths, lake)
    before = lake.digests()
    copies = [Path(shutil.copy(path, tmp_path / f"copy-{path.name}")) for path in paths]
    assert all(file.skipped for file in take(copies, lake).files)
    assert lake.digests() == before
    more = [
        jsonl("spans2.jsonl", [*spans, export(span(3, chat(5, 6)))]),
        jsonl("session2.jsonl", [*sessions, message(2, 1)]),
        jsonl("log2.jsonl", [invocation(1), invocation(2)]),
    ]
    files = take(more, lake).files
    assert [(file.rows_in, file.rows_out, file.rows_duplicate) for file in files] == [(3, 1, 2), (3, 1, 2), (2, 1, 1)]
    assert lake.scan("usage_report").select(pl.col("report", "revision").max()).collect().row(0) == (0, 0)


def traceless() -> dict[str, object]:
    return span(9, {"http.request.method": "GET"}, startTimeUnixNano=str(SECOND * 10**9)) | {"traceId": ""}


def test_tries_of_one_request_are_attempts_of_it(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    """Two that failed and one that succeeded: three attempts, one request, usage once."""
    failed = {"response": {"error": {"type": "x"}}, "request_id": "req-1"}
    tries = [
        answer(1, id="att-1", status=500, **failed),
        answer(2, id="att-2", status=429, **failed),
        answer(3, id="att-3", request_id="req-1"),
    ]
    take([jsonl("answers.jsonl", tries)], lake)
    rows = lake.scan("attempt").collect()
    assert rows.select("request_hi", "request_lo").unique().height == 1
    assert rows["request_lo"].null_count() == 0
    assert sorted(rows["status"].to_list()) == ["failed", "rejected", "succeeded"]
    assert lake.scan("reading").collect()["total"].to_list() == [18]


def test_attempts_that_name_no_request_have_none(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    take([jsonl("answers.jsonl", [answer(1)])], lake)
    assert lake.scan("attempt").collect()["request_lo"].to_list() == [None]
