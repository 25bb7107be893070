"""Bedrock's invocation logs: the counts of log and recorded body agree, or make the report contradictory."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.pipeline.ingest.log_samples import invocation

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
FIGURES = ("verdict", "input_total", "output_total", "total", "input_uncached", "cache_read", "cache_write_unknown")


def stream() -> list[dict[str, object]]:
    """Events of InvokeModelWithResponseStream, as an Anthropic model sends them."""
    opening = {"input_tokens": 4, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 0, "output_tokens": 1}
    return [
        {"type": "message_start", "message": {"id": "msg_bdrk_1", "usage": opening}},
        {"type": "content_block_delta", "delta": {"text": "hello"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 38}},
    ]


def with_body(number: int, body: object, **changes: object) -> dict[str, object]:
    record = invocation(number, **changes)
    record["output"]["outputBodyJson"] = body
    return record


def test_the_counts_of_log_and_body_agree_and_prove_what_the_input_holds(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    """4 + 1,000 + 38 = 1,042: the cached tokens stand beside the input. Without a body the convention decides."""
    bare = with_body(2, {})
    bare["input"]["inputTokenCount"] = 2000  # type: ignore[index]
    llama = invocation(4, modelId="meta.llama3-1-8b-instruct-v1:0", operation="InvokeModel")
    llama["input"] = {"inputTokenCount": 15}
    llama["output"] = {
        "outputTokenCount": 12,
        "outputBodyJson": {"generation": "x", "prompt_token_count": 15, "generation_token_count": 12},
    }
    lines = [invocation(1), bare, with_body(3, stream(), operation="InvokeModelWithResponseStream"), llama]
    (file,) = take([jsonl("log.jsonl", lines)], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("bedrock_invocations", 4, 4)
    rows = lake.scan("reading").collect().sort("segment_row").select(FIGURES).rows()
    assert rows == [
        ("PROVED", 1004, 38, 1042, 4, 1000, 0),
        ("ASSUMED", 3000, 38, 3038, 2000, 1000, 0),
        ("PROVED", 1004, 38, 1042, 4, 1000, 0),
        ("PROVED", 15, 12, 27, 15, 0, 0),
    ]


def test_a_body_that_says_other_numbers_makes_the_report_contradictory(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    record = invocation(1)
    record["output"]["outputTokenCount"] = 40
    take([jsonl("log.jsonl", [record])], lake)
    row = lake.scan("reading").collect().row(0, named=True)
    assert (row["verdict"], row["flags"]) == ("CONTRADICTORY", ["fields_disagree"])
    report = lake.scan("usage_report").collect().row(0, named=True)
    leaves = dict(zip(report["leaf_shape"].split(" "), report["leaf_integers"], strict=True))
    assert (leaves["output.outputTokenCount"], leaves["output.outputBodyJson.usage.outputTokens"]) == (40, 38)


def test_what_is_taken_of_a_record(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-v1:0"
    take([jsonl("log.jsonl", [with_body(1, stream(), modelId=arn, operation="ConverseStream")])], lake)
    row = lake.scan("attempt").collect().row(0, named=True)
    assert {name: row[name] for name in ("provider", "model_requested", "stream", "max_tokens", "finish_reason")} == {
        "provider": "bedrock",
        "model_requested": "us.anthropic.claude-sonnet-4-v1:0",
        "stream": True,
        "max_tokens": 512,
        "finish_reason": "stop",
    }
    assert row["arrived_at"] == datetime(2026, 1, 15, 10, 30, 1, tzinfo=UTC)
    ids = dict(lake.scan("foreign_id").collect().select("kind", "value").rows())
    request = "ff4b6c63-5561-4431-93b8-06a817275901"
    assert ids == {"record_id": request, "client_request_id": request, "provider_response_id": "msg_bdrk_1"}


@pytest.mark.parametrize(
    ("error", "status"), [("ThrottlingException", "rejected"), ("InternalServerException", "failed")]
)
def test_calls_that_failed(lake: Lake, take: Take, jsonl: Jsonl, error: str, status: str) -> None:
    record = invocation(1, errorCode=error)
    del record["output"], record["input"]
    take([jsonl("log.jsonl", [record])], lake)
    row = lake.scan("attempt").collect().row(0, named=True)
    assert (row["status"], row["usage_expected"]) == (status, False)
    assert lake.rows("usage_report") == 0


def test_files_of_s3_and_exports_of_cloudwatch_hold_the_same_records(lake: Lake, take: Take, tmp_path: Path) -> None:
    lines = [json.dumps(invocation(at)) for at in (1, 2)]
    (tmp_path / "20260115T103000Z.json.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    events = {"events": [{"timestamp": 1, "message": line} for line in lines], "searchedLogStreams": []}
    (tmp_path / "cloudwatch.json").write_text(json.dumps(events))
    (tmp_path / "insights.jsonl").write_text("\n".join(json.dumps({"@message": line}) for line in lines))
    files = take(sorted(path for path in tmp_path.iterdir() if path.is_file()), lake).files
    assert [(file.importer, file.rows_out, file.rows_duplicate) for file in files] == [
        ("bedrock_invocations", 2, 0),
        ("bedrock_invocations", 0, 2),
        ("bedrock_invocations", 0, 2),
    ]


def test_what_cannot_be_read_goes_to_quarantine(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    wrong = invocation(2)
    wrong["input"]["inputTokenCount"] = "4"
    fraction = invocation(3)
    fraction["output"]["outputBodyJson"]["usage"]["outputTokens"] = 0.5
    lines = [invocation(1), wrong, fraction, {"schemaType": "Other"}, {"message": "{torn"}, b"{"]
    (file,) = take([jsonl("log.jsonl", lines)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (6, 1, 5)
    held = lake.scan("quarantine").collect().sort("line")
    assert held.select("reason", "path").rows() == [
        ("type", "input.inputTokenCount"),
        ("fraction", "output.outputBodyJson.usage.outputTokens"),
        ("missing_field", ""),
        ("not_json", ""),
        ("not_json", ""),
    ]


def test_a_file_that_holds_no_object_says_what_to_do(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    with pytest.raises(ContractError, match=r"no invocation log, or damaged\. Fetch it again from S3 or CloudWatch"):
        take([jsonl("log.jsonl", [b"\xff"])], lake, importer="bedrock_invocations")
