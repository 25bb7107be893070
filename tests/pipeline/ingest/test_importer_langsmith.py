"""LangSmith runs. Constructed after the schemas of langsmith 0.11.1: no export of a real project was at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.ingest.gateway_samples import USAGE, Row, run, run_id

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]


def told(**outputs: object) -> Row:
    return {"outputs": outputs}


def attempts(lake: Lake) -> list[Row]:
    return lake.scan("attempt").collect().sort("segment_row").rows(named=True)


def readings(lake: Lake) -> list[Row]:
    return lake.scan("reading").collect().sort("segment_row").rows(named=True)


def test_a_run_of_a_model_becomes_a_call_with_its_counts_and_its_cost(
    lake: Lake, take: Take, jsonl: Jsonl, amounts: Callable[[Lake], list[Decimal | None]]
) -> None:
    (file,) = take([jsonl("r.jsonl", [run(1)])], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("langsmith", 1, 1)
    (attempt,) = attempts(lake)
    assert (attempt["provider"], attempt["model_served"], attempt["status"]) == ("openai", "model-a", "succeeded")
    assert attempt["arrived_at"] == datetime(2026, 1, 15, 10, 30, 1, 500000, UTC)
    assert (attempt["first_token_us"], attempt["total_us"], attempt["temperature"]) == (100_000, 400_000, 0.2)
    (reading,) = readings(lake)
    assert (reading["input_uncached"], reading["cache_read"], reading["input_total"]) == (200, 1800, 2000)
    assert (reading["output_total"], reading["reasoning"], reading["verdict"]) == (64, 14, "ASSUMED")
    (report,) = lake.scan("usage_report").collect().rows(named=True)
    assert "usage_metadata.total_cost" in report["leaf_shape"]
    # 200 x 2.5 + 1,800 x 0.25 + 64 x 10, per million.
    assert amounts(lake) == [Decimal("0.00159")]


def test_a_chain_that_sums_up_its_runs_and_a_model_around_a_model_are_no_calls(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    chain = run(1, run_type="chain", outputs={}, prompt_tokens=4000, completion_tokens=128, total_tokens=4128)
    outer = run(2, parent_run_id=run_id(1))
    inner = [run(number, parent_run_id=run_id(2)) for number in (3, 4)]
    tool = run(5, run_type="tool", outputs={}, parent_run_id=run_id(1))
    (file,) = take([jsonl("r.jsonl", [chain, outer, *inner, tool])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    assert [row["input_total"] for row in readings(lake)] == [2000, 2000]


def test_runs_inside_each_other_are_read_as_flat_ones_are(tmp_path: Path, take: Take, jsonl: Jsonl) -> None:
    inner = run(2, parent_run_id=run_id(1))
    chain = run(1, run_type="chain", outputs={})
    nested = tmp_path / "nested.json"
    nested.write_text(json.dumps([chain | {"child_runs": [inner]}]))
    kept = []
    for path in (nested, jsonl("flat.jsonl", [chain, inner])):
        lake = Lake.create(tmp_path / f"lake-{path.name}")
        take([path], lake)
        kept.append(lake.scan("usage_report").drop("segment").collect())
    assert kept[0].equals(kept[1])


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        (told(usage_metadata=USAGE), (2000, 64)),
        ({"outputs": {}, "extra": {"metadata": {"usage_metadata": USAGE}}}, (2000, 64)),
        (told(generations=[[{"message": {"kwargs": {"usage_metadata": USAGE}}}]]), (2000, 64)),
        (told(llm_output={"token_usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}), (7, 3)),
        ({"outputs": None, "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, (7, 3)),
    ],
)
def test_usage_is_found_wherever_a_run_keeps_it(
    changes: Row, counts: tuple[int, int], lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    take([jsonl("r.jsonl", [run(1, **changes)])], lake)
    (reading,) = readings(lake)
    assert (reading["input_total"], reading["output_total"]) == counts


def test_writes_have_their_lifetimes_and_parts_beyond_the_whole_are_contradictory(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    details = {"cache_read": 1000, "ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 100}
    split = USAGE | {"input_token_details": details}
    beyond = USAGE | {"output_token_details": {"reasoning": 65}, "total_tokens": 2065}
    take([jsonl("r.jsonl", [run(1, **told(usage_metadata=split)), run(2, **told(usage_metadata=beyond))])], lake)
    first, second = readings(lake)
    assert (first["input_uncached"], first["cache_write_5m"], first["cache_write_1h"]) == (600, 300, 100)
    assert second["verdict"] == "CONTRADICTORY"


def test_a_failed_run_owes_no_usage_and_a_run_without_any_reports_nothing(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    rows = [run(1, status="error", error="a canary", outputs=None), run(2, outputs={}, prompt_tokens=0)]
    take([jsonl("r.jsonl", rows)], lake)
    assert [(row["status"], row["usage_expected"]) for row in attempts(lake)] == [
        ("failed", False),
        ("succeeded", None),
    ]
    assert lake.rows("usage_report") == 0


def test_the_same_runs_again_change_nothing_and_a_known_response_meets_its_attempt(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Callable[..., Row]
) -> None:
    take([jsonl("a.jsonl", [answer(1)])], lake)
    (file,) = take([jsonl("r.jsonl", [run(1), run(2), run(1)])], lake).files
    assert (file.rows_out, file.rows_duplicate) == (2, 1)
    (again,) = take([jsonl("s.jsonl", [run(2), run(1)])], lake).files
    assert (again.rows_out, again.rows_duplicate) == (0, 2)
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 2


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        (told(usage_metadata=USAGE | {"input_tokens": "a canary"}), "type", "usage_metadata.input_tokens"),
        (told(usage_metadata=USAGE | {"output_tokens": 2**63}), "range", "usage_metadata.output_tokens"),
        (told(usage_metadata="a canary"), "not_an_object", "usage_metadata"),
        (told(usage_metadata={"total_tokens": 0.5}), "fraction", "usage_metadata.total_tokens"),
        ({"start_time": "a canary"}, "bad_time", "attempt.arrived_at"),
    ],
)
def test_what_cannot_be_read_is_told_and_leaves_the_rest(
    changes: Row, reason: str, path: str, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    (file,) = take([jsonl("r.jsonl", [run(1, **changes), run(2)])], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == (reason, path, 0)
