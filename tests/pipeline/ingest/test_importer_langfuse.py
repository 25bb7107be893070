"""Langfuse observations. Constructed after langfuse 4.16.0; the recorded ones are read where they are beside us."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.gateway_samples import Row, observation

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Amounts = Callable[[Lake], list[Decimal | None]]


def readings(lake: Lake) -> list[dict[str, object]]:
    frame = lake.scan("reading").collect().sort("segment_row", "attempt_hi")
    return frame.select("input_total", "output_total", "cache_read", "reasoning", "verdict").rows(named=True)


def leaves(lake: Lake) -> dict[str, object]:
    (row,) = lake.scan("usage_report").collect().rows(named=True)
    texts = row["leaf_texts"] or [None] * len(row["leaf_integers"])
    return {
        path: text if number is None else number
        for path, number, text in zip(row["leaf_shape"].split(" "), row["leaf_integers"], texts, strict=True)
    }


def test_a_generation_becomes_a_call_with_its_counts_its_cost_and_no_text(
    lake: Lake, take: Take, jsonl: Jsonl, amounts: Amounts
) -> None:
    details = {"input": 200, "input_cached_tokens": 1800, "output": 50, "output_reasoning_tokens": 14, "total": 2064}
    (file,) = take([jsonl("o.jsonl", [observation(1, usageDetails=details)])], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("langfuse", 1, 1)
    (attempt,) = lake.scan("attempt").collect().rows(named=True)
    assert (attempt["provider"], attempt["model_served"], attempt["status"]) == ("openai", "model-a", "succeeded")
    assert (attempt["arrived_at"], attempt["total_us"]) == (datetime(2026, 1, 15, 10, 30, 1, 250000, UTC), 60_000_000)
    assert (attempt["temperature"], attempt["max_tokens"], attempt["usage_expected"]) == (0.5, 64, None)
    assert readings(lake) == [
        {"input_total": 2000, "output_total": 64, "cache_read": 1800, "reasoning": 14, "verdict": "ASSUMED"}
    ]
    assert leaves(lake) == {
        "costDetails.input": "0.0005",
        "costDetails.output": "0.0005",
        "costDetails.total": "0.001",
        "usageDetails.input": 200,
        "usageDetails.input_cached_tokens": 1800,
        "usageDetails.output": 50,
        "usageDetails.output_reasoning_tokens": 14,
        "usageDetails.summed_total": 2064,
    }
    # 200 x 2.5 + 1,800 x 0.25 + 64 x 10, per million: what the log says it cost does not enter.
    assert amounts(lake) == [Decimal("0.00159")]


def test_a_total_that_is_no_sum_of_all_types_proves_what_contains_what(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    inside = {"input": 6, "output": 2055, "completion_details.reasoning": 1104, "total": 2061}
    beside = {"input": 2000, "input_cache_read": 1800, "output": 50, "total": 2050}
    rows = [observation(1, usageDetails=inside), observation(2, usageDetails=beside)]
    take([jsonl("o.jsonl", rows)], lake)
    first, second = readings(lake)
    assert (first["output_total"], first["reasoning"], first["verdict"]) == (2055, 1104, "PROVED")
    assert (second["input_total"], second["cache_read"], second["verdict"]) == (2000, 1800, "PROVED")


def test_of_nested_generations_the_innermost_counts_and_the_others_are_duplicates(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    outer = observation(1, type="AGENT", usageDetails={"input": 400, "output": 100, "total": 500})
    parts = [observation(n, parentObservationId=outer["id"]) for n in (2, 3)]
    span = observation(4, type="SPAN", usageDetails={}, parentObservationId=outer["id"])
    (file,) = take([jsonl("o.jsonl", [outer, span, *parts])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    assert [row["input_total"] for row in readings(lake)] == [200, 200]


def test_older_releases_have_three_counts_and_a_unit(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    usage = {"input": 7, "output": 3, "total": 10, "unit": "TOKENS"}
    none: Row = {"usageDetails": None, "costDetails": None}
    rows = [
        observation(1, **none, usage=usage),
        observation(2, **none, promptTokens=8, completionTokens=2, totalTokens=10, calculatedTotalCost=0.5),
        observation(3, **none, usage=usage | {"unit": "CHARACTERS"}),
        observation(4, **none, usage={"input": 0, "output": 0, "total": 0, "unit": None}),
    ]
    take([jsonl("o.jsonl", rows)], lake)
    assert [row["input_total"] for row in readings(lake)] == [7, 8]
    assert lake.rows("attempt") == 4


def test_what_langfuse_counted_itself_is_no_report(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("o.jsonl", [observation(1, providedUsageDetails={})])], lake)
    assert (lake.rows("attempt"), lake.rows("usage_report")) == (1, 0)


def test_a_failed_generation_is_an_attempt_that_owes_no_usage(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("o.jsonl", [observation(1, level="ERROR", usageDetails={})])], lake)
    (attempt,) = lake.scan("attempt").collect().rows(named=True)
    assert (attempt["status"], attempt["usage_expected"]) == ("failed", False)


def test_unknown_types_are_kept_under_a_hash(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("o.jsonl", [observation(1, usageDetails={"input": 5, "a canary": 3, "output": 1})])], lake)
    shown = leaves(lake)
    assert {number for path, number in shown.items() if path.startswith("usage.h_")} == {3}
    assert "unmapped_leaves" in lake.scan("reading").collect()["flags"].to_list()[0]


def test_json_documents_jsonl_csv_and_blob_exports_give_the_same_calls(
    tmp_path: Path, take: Take, jsonl: Jsonl
) -> None:
    rows = [observation(1), observation(2)]
    lines = jsonl("o.jsonl", rows)
    document = tmp_path / "o.json"
    document.write_text(json.dumps({"data": rows, "meta": {"page": 1}}))
    table = tmp_path / "o.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(rows[0])
        writer.writerows([v if isinstance(v, str) else json.dumps(v) if v else "" for v in r.values()] for r in rows)
    names = {"traceId": "trace_id", "parentObservationId": "parent_observation_id", "startTime": "start_time"}
    names |= {"endTime": "end_time", "usageDetails": "usage_details", "costDetails": "cost_details"}
    names |= {"model": "provided_model_name", "modelParameters": "model_parameters"}
    blob = jsonl("b.jsonl", [{names.get(name, name): value for name, value in row.items()} for row in rows])
    digests = []
    for path in (lines, document, table, blob):
        lake = Lake.create(tmp_path / f"lake-{path.name}")
        (told,) = take([path], lake).files
        assert (told.importer, told.rows_out) == ("langfuse", 2), path.name
        report = lake.scan("usage_report").drop("segment", "segment_row").collect()
        attempt = lake.scan("attempt").drop("segment", "segment_row").collect()
        digests.append((report.sort("attempt_hi"), attempt.sort("attempt_hi")))
    assert all(one.equals(digests[0][0]) and two.equals(digests[0][1]) for one, two in digests)


def test_overlapping_pages_and_the_same_rows_again_change_nothing(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    (file,) = take([jsonl("a.jsonl", [observation(1), observation(1), observation(2)])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    (again,) = take([jsonl("b.jsonl", [observation(2), observation(1)])], lake).files
    assert (again.rows_out, again.rows_duplicate) == (0, 2)
    assert lake.scan("usage_report").collect()["report"].to_list() == [0, 0]


def test_a_later_state_of_an_observation_is_its_next_revision(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("a.jsonl", [observation(1)])], lake)
    take([jsonl("b.jsonl", [observation(1, usageDetails={"input": 201, "output": 50, "total": 251})])], lake)
    assert [row["input_total"] for row in readings(lake)] == [201]


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"usageDetails": {"input": "a canary", "output": 1}}, "type", "usageDetails.input"),
        ({"usageDetails": {"input": True}}, "type", "usageDetails.input"),
        ({"usageDetails": {"input": [3, 4]}}, "type", "usageDetails.input"),
        ({"usageDetails": {"input": 1.5}}, "fraction", "usageDetails.input"),
        ({"usageDetails": {"input": 2**63}}, "range", "usageDetails.input"),
        ({"usageDetails": [1, 2]}, "not_an_object", "usageDetails"),
        ({"startTime": "a canary"}, "bad_time", "attempt.arrived_at"),
    ],
)
def test_what_cannot_be_read_is_told_and_leaves_the_rest(
    changes: Row, reason: str, path: str, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    (file,) = take([jsonl("o.jsonl", [observation(1, **changes), observation(2)])], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == (reason, path, 0)


def test_one_span_that_two_sources_know_is_one_attempt(
    lake: Lake, take: Take, jsonl: Jsonl, segment: Callable[..., Path], attempt: Callable[..., Row]
) -> None:
    known = {
        "attempt_hi": 1001,
        "attempt_lo": -5001,
        "day": attempt(1)["day"],
        "source": "agent-1",
        "kind": "span_id",
        "value": f"{1:016x}",
    }
    take([segment("s", attempt=[attempt(1)], foreign_id=[known])], lake)
    take([jsonl("o.jsonl", [observation(1)])], lake)
    report = lake.scan("usage_report").filter(pl.col("source") == "langfuse").collect()
    assert report.select("attempt_hi", "attempt_lo").rows() == [(1001, -5001)]


@pytest.mark.real
def test_the_recorded_observations_count_each_call_once(lake: Lake, take: Take, shared_real: Path) -> None:
    """Of 20 traces, twice in the recording: what parents restate is counted once, and 18 lines are no observations."""
    (file,) = take([shared_real / "spans" / "langfuse_framework_observations.jsonl"], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate, file.rows_quarantined) == (130, 43, 69, 18)
    frame = lake.scan("reading").collect()
    traces = lake.scan("foreign_id").filter(pl.col("kind") == "trace_id").collect()
    sums = traces.join(frame, on=["attempt_hi", "attempt_lo"]).group_by("value").agg(pl.col("total").sum())["total"]
    assert {1071, 761, 399, 147} <= set(sums)
    assert not {3839, 1427, 623, 204} & set(sums)
    # One answer of Gemini hides its thoughts in the total alone: 3 + 5 and more in the sum.
    assert frame.filter(pl.col("verdict") == "CONTRADICTORY").height == 1
    assert frame.filter(pl.col("verdict") == "PROVED").height == frame.height - 1


@pytest.mark.parametrize(
    ("asked", "tier"), [("flex", "flex"), ("standard_only", "default"), ("a canary", None), (7, None), (None, None)]
)
def test_the_tier_that_was_asked_for_is_one_that_is_known(
    asked: object, tier: str | None, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    take([jsonl("o.jsonl", [observation(1, modelParameters={"service_tier": asked})])], lake)
    assert lake.scan("attempt").collect()["tier_requested"].to_list() == [tier]
