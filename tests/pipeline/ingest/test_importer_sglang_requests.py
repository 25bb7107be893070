"""Request files of SGLang, *constructed* after its source: counts come out, what was asked stays where it is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.engine_samples import BEGAN
from tests.pipeline.ingest.test_ingest_canary import CANARY, bytes_with_the_word

from weighbridge.pipeline.ingest.importers.engine_metrics import IMPORTER as METRICS
from weighbridge.pipeline.ingest.importers.sglang_requests import IMPORTER
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Row = dict[str, Any]
Take = Callable[..., IngestResult]


def request(number: int = 1, **more: Any) -> Row:
    """One line, with words of a prompt wherever SGLang writes them."""
    asked = {
        "text": CANARY, "input_ids": None, "rid": f"rid-{number}", "stream": True, "session_params": {"id": CANARY},
        "sampling_params": {"max_new_tokens": 20, "temperature": 0.7, "stop": [CANARY], "n": 1, "regex": CANARY},
    }  # fmt: skip
    return {
        "request_parameters": json.dumps(asked), "id": f"rid-{number}", "prompt_tokens": 401, "completion_tokens": 20,
        "cached_tokens": 384, "cached_tokens_details": {"device": 256, "host": 64, "storage": 64},
        "finish_reason": {"type": "stop", "matched": CANARY}, "e2e_latency": 0.31, "queue_time": 0.01,
        "request_received_ts": BEGAN + number, "num_retractions": 0, "weight_version": CANARY,
        "spec_verify_ct": 9, "spec_num_proposed_drafts": 27, "spec_num_correct_drafts": 11, **more,
    }  # fmt: skip


@pytest.fixture
def taken(jsonl: Callable[..., Path], lake: Lake, take: Take) -> Callable[..., list[Row]]:
    """Attempts of some records."""

    def read(*records: Row) -> list[Row]:
        take([jsonl("requests.jsonl", records)], lake, model="m")
        return lake.scan("attempt").collect().sort("arrived_at").to_dicts()

    return read


def test_a_request_is_what_the_engine_computed(taken: Callable[..., list[Row]]) -> None:
    (row,) = taken(request())
    told = {name: row[name] for name in row if row[name] is not None and name in EXPECTED}
    assert told == EXPECTED


EXPECTED = {
    "framework": "sglang", "model_served": "m", "status": "succeeded", "finish_reason": "stop", "stream": True,
    "input_computed": 401, "cached_local": 320, "cached_external": 64, "prefill_computed": 17, "output_computed": 20,
    "drafted": 27, "accepted": 11, "rejected": 16, "recomputed": 0, "max_tokens": 20, "n": 1, "stop_strings": 1,
    "total_us": 310_000, "queue_us": 10_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "cached"),
    [
        ({"cached_tokens_details": None}, (None, None, None)),
        ({"cached_tokens_details": None, "cached_tokens": 0}, (0, 0, 401)),
        ({"cached_tokens_details": {"device": "x"}, "cached_tokens": 7}, (None, None, None)),
        ({"cached_tokens_details": {"device": 384}}, (384, 0, 17)),
    ],
)
def test_a_place_that_is_not_told_is_not_known(
    more: Row, cached: tuple[int | None, ...], taken: Callable[..., list[Row]]
) -> None:
    (row,) = taken(request(**more))
    assert (row["cached_local"], row["cached_external"], row["prefill_computed"]) == cached


@pytest.mark.parametrize(
    ("more", "drafts"),
    [
        ({"spec_num_proposed_drafts": None}, (None, None)),
        ({"spec_num_correct_drafts": 28}, (None, None)),
        ({"spec_num_correct_drafts": None, "spec_draft_token_num": 9, "spec_accept_token_num": 4}, (9, 4)),
    ],
)
def test_drafts_are_taken_where_one_versions_names_agree(
    more: Row, drafts: tuple[int | None, ...], taken: Callable[..., list[Row]]
) -> None:
    (row,) = taken(request(**more))
    assert (row["drafted"], row["accepted"]) == drafts


def test_retracted_and_aborted_requests(taken: Callable[..., list[Row]]) -> None:
    first, second = taken(request(1, num_retractions=2), request(2, finish_reason={"type": "abort", "message": CANARY}))
    assert first["recomputed"] is None, "how much was computed again no record says"
    assert (second["status"], second["finish_reason"]) == ("aborted", "abort")


def test_a_native_answer_tells_the_same_under_meta_info(taken: Callable[..., list[Row]]) -> None:
    """But for what was asked, which is not in it."""
    told = request()
    del told["request_parameters"]
    (row,) = taken({"text": CANARY, "meta_info": told})
    asked = ("max_tokens", "n", "stop_strings", "stream")
    assert {name: row[name] for name in EXPECTED} == {**EXPECTED, **dict.fromkeys(asked)}


def test_no_word_of_what_was_asked_reaches_the_lake(jsonl: Callable[..., Path], lake: Lake, take: Take) -> None:
    broken = [
        request(2, request_parameters=CANARY), request(3, request_parameters={"sampling_params": CANARY}),
        request(4, prompt_tokens=CANARY), request(5, id=f"{CANARY} {CANARY}"), {"text": CANARY},
        {"text": CANARY, "meta_info": {**request(6), "prompt_tokens": 9}}, {"text": CANARY, "meta_info": CANARY},
    ]  # fmt: skip
    result = take([jsonl("requests.jsonl", [request(), *broken])], lake, model="m")
    (file,) = result.files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 5, 3)
    assert bytes_with_the_word(Path(lake.root)) == []


def test_the_servers_own_names_of_files_are_known(tmp_path: Path) -> None:
    plain, packed = tmp_path / "sglang-request-metrics-20260211_14.log", tmp_path / "sglang-request-metrics-x.log.gz"
    plain.write_text(json.dumps(request()) + "\n", encoding="utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    other = tmp_path / "other.log"
    other.write_bytes(plain.read_bytes())
    assert [IMPORTER.recognises(path) for path in (plain, packed, other)] == [True, True, False]


TGI = """# TYPE tgi_request_success counter
tgi_request_success 41
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="+Inf"} 41
tgi_request_generated_tokens_sum 820
tgi_request_generated_tokens_count 41
# TYPE tgi_request_input_length histogram
tgi_request_input_length_bucket{le="+Inf"} 41
tgi_request_input_length_sum 4100
tgi_request_input_length_count 41
"""
TRTLLM = """# TYPE trtllm_request_success_total counter
trtllm_request_success_total{engine_type="trtllm",finished_reason="stop",model_name="m"} 7
"""


@pytest.mark.parametrize(
    ("text", "engine", "counters"),
    [
        (TGI, "tgi", {"requests_finished": 41, "finished_generation_tokens": 820, "finished_prompt_tokens": 4100,
                      "finished_samples": 41}),
        (TRTLLM, "tensorrt_llm", {"requests_finished": 7}),
    ],
)  # fmt: skip
def test_counters_of_tgi_and_tensorrt_llm(
    text: str, engine: str, counters: dict[str, int], tmp_path: Path, lake: Lake, take: Take
) -> None:
    """*Constructed* after their documentation."""
    path = tmp_path / "gpu-7_20260115T103000Z.prom"
    path.write_text(text, encoding="utf-8")
    assert METRICS.recognises(path)
    take([path], lake, model="m")
    rows = lake.scan("engine_counter").collect().to_dicts()
    assert {row["engine"] for row in rows} == {engine}
    assert {row["counter"]: row["value"] for row in rows} == counters
