"""Helicone requests. Constructed after Helicone's sources of 2025 to 2026: no export of a real account was at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.ingest.gateway_samples import Row, request

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]


def attempts(lake: Lake) -> list[Row]:
    return lake.scan("attempt").collect().sort("segment_row").rows(named=True)


def readings(lake: Lake) -> list[Row]:
    return lake.scan("reading").collect().sort("segment_row").rows(named=True)


def leaves(lake: Lake) -> dict[str, object]:
    row = lake.scan("usage_report").collect().sort("segment_row").rows(named=True)[0]
    texts = row["leaf_texts"] or [None] * len(row["leaf_integers"])
    numbers = zip(row["leaf_shape"].split(" "), row["leaf_integers"], texts, strict=True)
    return {path: text if number is None else number for path, number, text in numbers}


def test_a_request_becomes_a_call_with_its_counts_and_its_cost(
    lake: Lake, take: Take, jsonl: Jsonl, amounts: Callable[[Lake], list[Decimal | None]]
) -> None:
    (file,) = take([jsonl("h.jsonl", [request(1)])], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("helicone", 1, 1)
    (attempt,) = attempts(lake)
    assert (attempt["provider"], attempt["model_served"], attempt["status"], attempt["http_status"]) == (
        "openai",
        "model-a",
        "succeeded",
        200,
    )
    assert (attempt["first_token_us"], attempt["total_us"]) == (120_000, 900_000)
    (reading,) = readings(lake)
    assert (reading["input_uncached"], reading["cache_read"], reading["input_total"]) == (200, 1800, 2000)
    # More was read than the prompt has, so the reads stand beside it.
    assert (reading["output_total"], reading["verdict"]) == (50, "PROVED")
    assert leaves(lake)["request_response.cost"] == "0.00145"
    # 200 x 2.5 + 1,800 x 0.25 + 50 x 10, per million.
    assert amounts(lake) == [Decimal("0.00145")]


def test_rows_of_the_table_itself_count_billionths_of_a_dollar(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    row = request(1, cost=1450000, organization_id="canary-org", latency=900, status=200)
    for name in ("delay_ms", "response_status"):
        del row[name]
    take([jsonl("h.jsonl", [row])], lake)
    assert leaves(lake)["request_response.cost_billionths"] == 1450000
    assert "request_response.cost" not in leaves(lake)
    assert attempts(lake)[0]["total_us"] == 900_000


def test_minus_one_is_not_counted_and_zeros_alone_are_nothing(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    counts = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_read_tokens")
    rows = [
        request(1, prompt_tokens=-1, completion_tokens=-1, total_tokens=-2, prompt_cache_read_tokens=0),
        request(2, **dict.fromkeys(counts, 0), response_status=500),
        request(3, prompt_tokens=-5),
    ]
    take([jsonl("h.jsonl", rows)], lake)
    assert [row["status"] for row in attempts(lake)] == ["succeeded", "failed", "succeeded"]
    (negative,) = readings(lake)
    assert (negative["verdict"], negative["flags"]) == ("CONTRADICTORY", ["negative_count"])


def test_an_answer_of_helicones_own_cache_is_no_call_of_a_provider(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    none = "00000000-0000-0000-0000-000000000000"
    rows = [request(1, cache_reference_id="00000000-0000-4000-9000-000000000009"), request(2, cache_reference_id=none)]
    take([jsonl("h.jsonl", rows)], lake)
    assert [row["provider"] for row in attempts(lake)] == ["helicone", "openai"]
    assert len(readings(lake)) == 1


def test_the_csv_of_the_export_tool_leaves_the_cache_out_so_the_input_is_unknown(
    tmp_path: Path, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    path = tmp_path / "output.csv"
    row = request(1)
    path.write_text(
        "response_id,response_created_at,response_status,request_created_at,request_body,request_properties,"
        "request_user_id,model,prompt_tokens,completion_tokens,latency,cost\n"
        f'"{row["response_id"]}","2026-01-15T10:30:02.000Z","200","2026-01-15T10:30:01.000Z",'
        '"{""messages"":""a canary""}","{}","a canary","model-a","200","50","900","0.00145"\n'
    )
    (file,) = take([path], lake, provider="openai").files
    assert (file.importer, file.rows_out) == ("helicone", 1)
    (reading,) = readings(lake)
    assert (reading["input_total"], reading["output_total"]) == (None, 50)
    assert leaves(lake)["request_response.cost"] == "0.00145"
    # The same request in another export is the same attempt.
    take([jsonl("h.jsonl", [row])], lake)
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 1


def test_pages_of_the_api_and_repeated_rows(tmp_path: Path, lake: Lake, take: Take, jsonl: Jsonl) -> None:
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": [request(1), request(1), request(2)], "error": None}))
    (file,) = take([page], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    (again,) = take([jsonl("h.jsonl", [request(2), request(1)])], lake).files
    assert (again.rows_out, again.rows_duplicate) == (0, 2)


def test_a_recorder_that_knows_the_response_meets_the_row_in_one_attempt(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Callable[..., Row]
) -> None:
    take([jsonl("r.jsonl", [answer(1)])], lake)
    take([jsonl("h.jsonl", [request(1)])], lake)
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 1


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"prompt_tokens": "a canary"}, "type", "request_response.prompt_tokens"),
        ({"completion_tokens": 2**64}, "range", "request_response.completion_tokens"),
        ({"prompt_cache_read_tokens": 0.5}, "fraction", "request_response.prompt_cache_read_tokens"),
        ({"request_created_at": "a canary"}, "bad_time", "attempt.arrived_at"),
    ],
)
def test_what_cannot_be_read_is_told_and_leaves_the_rest(
    changes: Row, reason: str, path: str, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    (file,) = take([jsonl("h.jsonl", [request(1, **changes), request(2)])], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == (reason, path, 0)
