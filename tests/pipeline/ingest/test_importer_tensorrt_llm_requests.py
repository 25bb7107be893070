"""Request metrics of TensorRT-LLM, *constructed* after its source: drafts and spans come out, blocks are no tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.test_ingest_canary import CANARY, bytes_with_the_word

from weighbridge.pipeline.ingest.importers.tensorrt_llm_requests import IMPORTER
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Row = dict[str, Any]
Take = Callable[..., IngestResult]


def metrics(began: float, **more: Any) -> Row:
    """What one worker tells of a request, with all sections its source has."""
    return {
        "first_iter": 71, "last_iter": 90,
        "timing_metrics": {
            "server_arrival_time": began - 0.002, "arrival_time": began, "first_scheduled_time": began + 0.007,
            "first_token_time": began + 0.042, "server_first_token_time": began + 0.043,
            "last_token_time": began + 0.307,
        },
        "kv_cache_metrics": {
            "num_total_allocated_blocks": 9, "num_new_allocated_blocks": 3, "num_reused_blocks": 6,
            "num_missed_blocks": 3,
        },
        "speculative_decoding": {
            "acceptance_rate": 0.5, "total_accepted_draft_tokens": 9, "total_draft_tokens": 18,
        },
        **more,
    }  # fmt: skip


def request(number: int = 1, **more: Any) -> Row:
    """One record of a server that does it all."""
    return {"request_id": number, "perf_metrics": metrics(812.0 + number), **more}


def split(number: int = 1, **more: Any) -> Row:
    """One record of a server before two kinds of workers, whose clocks differ by a minute."""
    first = {"request_id": number, "ctx_request_id": number, "perf_metrics": metrics(2.0 + number)}
    second = {"request_id": number, "ctx_request_id": number, "perf_metrics": metrics(62.0 + number)}
    return {
        "ctx_server": "10.0.0.1:8001", "gen_server": "10.0.0.2:8002", "disagg_request_id": 77 + number,
        "disagg_server_arrival_time": 1.995 + number, "disagg_ctx_dispatch_time": 1.999 + number,
        "disagg_server_first_token_time": 2.09 + number, "ctx_perf_metrics": first, "gen_perf_metrics": second, **more,
    }  # fmt: skip


EXPECTED = {
    "framework": "tensorrt_llm", "model_served": "m", "status": "succeeded", "queue_us": 7_000, "prefill_us": 35_000,
    "first_token_us": 42_000, "decode_us": 265_000, "total_us": 307_000, "drafted": 18, "accepted": 9, "rejected": 9,
    "cached_local": None, "input_computed": None, "output_computed": None, "arrived_at": None,
}  # fmt: skip


@pytest.fixture
def taken(tmp_path: Path, lake: Lake, take: Take) -> Callable[..., list[Row]]:
    """Attempts of some records, as `/perf_metrics` answers them: one list."""

    def read(*records: Row) -> list[Row]:
        path = tmp_path / "perf_metrics.json"
        path.write_text(json.dumps(records), encoding="utf-8")
        assert IMPORTER.recognises(path)
        take([path], lake, model="m")
        return lake.scan("attempt").collect().sort("total_us", "first_token_us").to_dicts()

    return read


def test_a_request_has_spans_and_drafts_and_no_tokens_of_blocks(taken: Callable[..., list[Row]]) -> None:
    (row,) = taken(request())
    assert {name: row[name] for name in EXPECTED} == EXPECTED


def test_a_file_says_the_same_a_line(jsonl: Callable[..., Path], lake: Lake, take: Take) -> None:
    path = jsonl("perf_metrics-server-gpu-7-42-20260301T120000Z.jsonl", [request(1, status="complete"), request(2)])
    assert IMPORTER.recognises(path)
    take([path], lake, model="m")
    rows = lake.scan("attempt").collect().to_dicts()
    assert [{name: row[name] for name in EXPECTED} for row in rows] == [EXPECTED] * 2


def test_a_number_counts_from_the_start_of_a_server(taken: Callable[..., list[Row]]) -> None:
    later = request(1, perf_metrics=metrics(99.0))
    assert len(taken(request(1), later, request(1))) == 2, "the third one is the first one, told again"


def test_of_two_kinds_of_workers_each_keeps_its_own_spans(taken: Callable[..., list[Row]]) -> None:
    (row,) = taken(split())
    told = {**EXPECTED, "total_us": None, "first_token_us": 95_000}
    assert {name: row[name] for name in told} == told, "no span goes from one clock to the other"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"perf_metrics": {"timing_metrics": {"arrival_time": 3.0}}}, {"total_us": None, "drafted": None}),
        ({"perf_metrics": metrics(3.0, speculative_decoding={"total_draft_tokens": 3})}, {"drafted": None}),
        ({"perf_metrics": metrics(3.0, speculative_decoding={"total_draft_tokens": 3,
                                                             "total_accepted_draft_tokens": 4})}, {"drafted": None}),
        ({"perf_metrics": {"timing_metrics": {"arrival_time": 5.0, "last_token_time": 4.0, "first_token_time": None,
                                              "first_scheduled_time": 0}}}, {"total_us": None, "queue_us": None}),
        ({"status": "cancelled"}, {"status": "unknown"}),
    ],
)  # fmt: skip
def test_what_is_not_told_or_cannot_be_is_not_known(more: Row, told: Row, taken: Callable[..., list[Row]]) -> None:
    (row,) = taken(request(**more))
    assert {name: row[name] for name in told} == told


def test_half_a_request_is_refused_and_nothing_of_a_line_gets_further_than_its_numbers(
    jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    records = [
        request(1, time_breakdown_metrics={"step_metrics": [{"note": CANARY}]}), request(2, request_id=f"{CANARY} x"),
        request(3, status=CANARY), split(4, ctx_server=CANARY), request(5, ctx_request_id=5), {"perf_metrics": CANARY},
    ]  # fmt: skip
    result = take([jsonl("requests.jsonl", records)], lake, model="m")
    (file,) = result.files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (6, 4, 2)
    assert bytes_with_the_word(Path(lake.root)) == []
