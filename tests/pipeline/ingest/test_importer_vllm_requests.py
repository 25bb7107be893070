"""Finished requests of a vLLM engine: which of them belong to one call, and what the call computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.engine_samples import BEGAN, finished

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Row = dict[str, Any]
Take = Callable[..., IngestResult]


@pytest.fixture
def taken(jsonl: Callable[..., Path], lake: Lake, take: Take) -> Callable[..., tuple[list[Row], list[Row]]]:
    """Attempts in the order they arrived, and children, of some records."""

    def read(*records: Row) -> tuple[list[Row], list[Row]]:
        take([jsonl("finished.jsonl", records)], lake, model="m")
        attempts = lake.scan("attempt").collect().sort("arrived_at").to_dicts()
        return attempts, lake.scan("child").collect().sort("attempt_lo", "child").to_dicts()

    return read


def choice(number: int, *, prompt: int = 0, arrived: float = BEGAN, took: float = 0.1, **more: Any) -> Row:
    name = {"request_id": f"cmpl-call-{number}-{prompt}"}
    return finished(number, iteration_timestamp=arrived + took, e2e_latency=took, **name, **more)


def test_choices_of_one_call_arrived_in_one_instant(taken: Callable[..., Any]) -> None:
    """n = 3: each has read the prompt; to the microsecond, as both figures are rounded."""
    attempts, children = taken(choice(1), choice(1, took=0.2), choice(1, arrived=BEGAN + 0.000001, took=0.3))
    (attempt,) = attempts
    assert (attempt["input_computed"], attempt["output_computed"], attempt["total_us"]) == (21, 18, 300_001)
    told = [(row["kind"], row["parent_child"], row["input_computed"], row["output_computed"]) for row in children]
    assert told == [("choice", None, 7, 6), ("choice", 1, 7, 6), ("choice", 1, 7, 6)]


def test_calls_under_one_id_are_two_where_they_arrived_apart(taken: Callable[..., Any]) -> None:
    """A client used its id twice, at once."""
    attempts, children = taken(choice(1, num_prompt_tokens=53), choice(1, arrived=BEGAN + 0.0007, num_prompt_tokens=70))
    assert [attempt["input_computed"] for attempt in attempts] == [53, 70]
    assert children == []


def test_prompts_of_one_call_are_told_apart_from_its_choices(taken: Callable[..., Any]) -> None:
    """Two prompts, two choices each: the second choice of a prompt shares it with the first."""
    attempts, children = taken(*(choice(1, prompt=prompt, num_prompt_tokens=2 + prompt) for prompt in (0, 1, 0, 1)))
    assert [attempt["input_computed"] for attempt in attempts] == [10]
    assert [(row["input_computed"], row["parent_child"]) for row in children] == [(2, None), (3, None), (2, 1), (3, 2)]


def test_several_prompts_share_nothing(taken: Callable[..., Any]) -> None:
    _, children = taken(choice(1), choice(1, prompt=1))
    assert [(row["kind"], row["parent_child"]) for row in children] == [("prompt", None), ("prompt", None)]


def test_steps_of_beams_are_one_call(taken: Callable[..., Any]) -> None:
    """Width 2, two steps: one request, then two that arrived later, a token longer."""
    beams = [
        finished(1, request_id="cmpl-call-1-0a1b-beam-0", iteration_timestamp=BEGAN + 0.1, e2e_latency=0.1,
                 num_prompt_tokens=40, num_generation_tokens=1, max_tokens_param=1),
        *(finished(1, request_id=f"cmpl-call-1-9c2d-beam-{beam}", iteration_timestamp=BEGAN + 0.3, e2e_latency=0.1,
                   num_prompt_tokens=41, num_generation_tokens=1, max_tokens_param=1) for beam in (0, 1)),
    ]  # fmt: skip
    (attempt,), children = taken(*beams)
    found = [attempt[name] for name in ("input_computed", "output_computed", "beams", "max_tokens")]
    assert found == [122, 3, 2, None]
    assert [(row["kind"], row["parent_child"]) for row in children] == [("beam", None), ("beam", 1), ("beam", 1)]


@pytest.mark.parametrize(
    ("request_id", "response", "client"),
    [
        ("cmpl-order-7-0", "cmpl-order-7", "order-7"),
        ("chatcmpl-order-7", "chatcmpl-order-7", "order-7"),
        ("generate-tokens-order-7", "generate-tokens-order-7", "order-7"),
        ("resp_82df2ecbab8e8b45_0", "resp_82df2ecbab8e8b45", None),
    ],
)
def test_ids_of_the_engine_become_those_of_the_answer_and_the_client(
    request_id: str, response: str, client: str | None, taken: Callable[..., Any], lake: Lake
) -> None:
    taken(finished(1, request_id=request_id))
    ids = dict(lake.scan("foreign_id").select("kind", "value").collect().iter_rows())
    assert (ids["provider_response_id"], ids.get("client_request_id")) == (response, client)


def test_what_is_not_told_is_not_nought(taken: Callable[..., Any]) -> None:
    """-1 cached tokens stand for unknown; of a request that was preempted nobody says what was computed again."""
    first, second = taken(finished(1, num_cached_tokens=-1), finished(2, num_preemptions=1))[0]
    assert (first["cached_local"], first["prefill_computed"], first["recomputed"]) == (None, None, 0)
    assert (second["cached_local"], second["prefill_computed"], second["recomputed"]) == (0, 7, None)


@pytest.mark.parametrize(
    "bad",
    [{"num_prompt_tokens": 2**63}, {"num_prompt_tokens": -1}, {"num_generation_tokens": 1.5}, {"e2e_latency": "long"},
     {"num_generation_tokens": None}, {"request_id": "two words"}, {"iteration_timestamp": 10**13}],
)  # fmt: skip
def test_a_record_that_cannot_be_read_goes_to_quarantine_alone(
    bad: Row, jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    (file,) = take([jsonl("finished.jsonl", [finished(1) | bad, finished(2)])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (2, 1, 1)
    assert "two words" not in str(lake.scan("quarantine").collect().to_dicts())
