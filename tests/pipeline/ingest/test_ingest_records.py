"""Recorded answers become attempts, usage reports and identifiers: numbers and closed words, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import AttemptKey, key_id, keyed_key, pseudonym

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Answer = Callable[..., dict[str, object]]


def only(lake: Lake, table: str) -> dict[str, object]:
    (row,) = lake.scan(table).collect().rows(named=True)
    return row


def test_one_record_gives_one_attempt_one_report_and_two_identifiers(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, key: bytes
) -> None:
    result = take([jsonl("a.jsonl", [answer(7)])], lake)
    (file,) = result.files
    assert (file.name, file.importer) == ("a.jsonl", "recorded_answers")
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (1, 1, 0, 0)
    assert (result.days, result.readings) == ((date(2026, 1, 15),), 1)

    attempt = only(lake, "attempt")
    expected = keyed_key(key, "recorded-answers", "record_id", "r_7")
    assert AttemptKey(attempt["attempt_hi"], attempt["attempt_lo"]) == expected  # type: ignore[arg-type]
    stated = {name: value for name, value in attempt.items() if value is not None}
    assert stated == {
        "attempt_hi": expected.hi,
        "attempt_lo": expected.lo,
        "day": date(2026, 1, 15),
        "source": "recorded-answers",
        "provider": "openai",
        "api": "openai_chat",
        "model_requested": "gpt-4o",
        "model_served": "gpt-4o-2024-08-06",
        "tenant": "unassigned",
        "task": "unassigned",
        "route": "unassigned",
        "stream": False,
        "status": "succeeded",
        "http_status": 200,
        "finish_reason": "stop",
        "max_tokens": 64,
        "messages": 1,
        "arrived_at": datetime(2026, 1, 15, 10, 30, 7, tzinfo=UTC),
        "usage_expected": True,
        "undated": False,
        "segment": file.segment,
        "segment_row": 0,
        "revision": 0,
    }

    report = only(lake, "usage_report")
    assert report["leaf_shape"] == "usage.completion_tokens usage.prompt_tokens usage.total_tokens"
    assert report["leaf_integers"] == [5, 17, 22]
    assert report["leaf_texts"] is None
    assert (report["part_kind"], report["ended"], report["model"]) == ("whole", "complete", "gpt-4o-2024-08-06")
    assert lake.scan("foreign_id", columns=["kind", "value"]).sort("kind").collect().rows() == [
        ("provider_response_id", "chatcmpl-7"),
        ("record_id", "r_7"),
    ]
    aliases = lake.scan("alias").sort("kind").collect().rows(named=True)
    assert [row["kind"] for row in aliases] == ["provider_response_id", "record_id"]
    assert AttemptKey(aliases[0]["alias_hi"], aliases[0]["alias_lo"]) == keyed_key(
        key, "provider_response_id", "chatcmpl-7"
    )
    assert {(row["attempt_hi"], row["attempt_lo"]) for row in aliases} == {expected}
    assert only(lake, "segment")["rows_out"] == 1
    assert only(lake, "reading")["input_total"] == 17


def test_generation_parameters_are_numbers_or_nothing(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    request = {
        "messages": [{}, {}, {}],
        "tools": [{}, {}],
        "stop": ["a", "b"],
        "max_completion_tokens": 100,
        "temperature": 0.5,
        "top_p": 1,
        "top_k": "forty",
        "n": 2.0,
    }
    gemini = {
        "contents": [{}],
        "generationConfig": {"maxOutputTokens": 9, "topK": 40, "stopSequences": ["x"], "temperature": True},
    }
    odd = {"max_tokens": 2**40, "temperature": "hot", "n": 1.5, "stop": "x", "messages": "text"}
    take([jsonl("a.jsonl", [answer(1, request=request), answer(2, request=gemini), answer(3, request=odd)])], lake)
    names = ["max_tokens", "temperature", "top_p", "top_k", "n", "stop_strings", "messages", "tools"]
    rows = lake.scan("attempt").sort("segment_row").select(names).collect().rows()
    assert rows == [
        (100, 0.5, 1.0, None, 2, 2, 3, 2),
        (9, None, None, 40, None, 1, 1, None),
        (None, None, None, None, None, 1, 1, None),
    ]


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        ({}, "succeeded", True),
        ({"status": 429, "response": {"error": {"type": "rate_limit"}}}, "rejected", False),
        ({"status": 503, "response": {"error": {"type": "overloaded"}}}, "failed", False),
        ({"status": None}, "unknown", None),
        ({"api_flavor": "nobody_knows"}, "succeeded", None),
        ({"stream": True, "response": [{"choices": [{"finish_reason": "stop"}]}, "[DONE]"]}, "succeeded", False),
        (
            {
                "stream": True,
                "request": {"stream_options": {"include_usage": True}},
                "response": [{"choices": [{"finish_reason": "stop"}]}, "[DONE]"],
            },
            "succeeded",
            True,
        ),
        (
            {"stream": True, "provider": "groq", "response": [{"choices": [{"finish_reason": "stop"}]}, "[DONE]"]},
            "succeeded",
            None,
        ),
        ({"stream": True, "response": [{"choices": [{"delta": {}}]}]}, "unknown", None),
        (
            {
                "stream": True,
                "provider": "anthropic",
                "api_flavor": "anthropic_messages",
                "response": [{"type": "message_start", "message": {"usage": {"input_tokens": 1}}}],
            },
            "aborted",
            None,
        ),
        ({"stream": True, "response": [{"choices": [{"delta": {}}]}, {"error": {"code": 1}}]}, "failed", None),
    ],
)
def test_how_an_attempt_ended_and_whether_usage_is_to_be_expected(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, changes: dict[str, object], status: str, expected: object
) -> None:
    take([jsonl("a.jsonl", [answer(1, **changes)])], lake)
    attempt = only(lake, "attempt")
    assert (attempt["status"], attempt["usage_expected"]) == (status, expected)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"choices": [{"finish_reason": "function_call"}]}, "tool_calls"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "refusal"}, "content_filter"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "length"),
        ({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}, "content_filter"),
        ({"object": "response", "status": "completed"}, "stop"),
        (
            {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
        ),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"done_reason": "stop"}, "stop"),
        ({"choices": [{"finish_reason": "the cat sat on the mat"}]}, "other"),
        ({"choices": [{"finish_reason": None}]}, None),
        ([{"choices": [{"finish_reason": None}]}, {"choices": [{"finish_reason": "stop"}]}], "stop"),
        ([{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}], "tool_calls"),
    ],
)
def test_every_providers_finish_reason_becomes_one_of_ours(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, response: object, reason: str | None
) -> None:
    take([jsonl("a.jsonl", [answer(1, response=response)])], lake)
    assert only(lake, "attempt")["finish_reason"] == reason


@pytest.mark.parametrize("created", [None, 0, 1234, 1786000000000, "2026-01-01", True, 1768473000.5])
def test_a_record_without_a_time_takes_the_day_that_was_named(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, created: object
) -> None:
    response = {"created": created, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    take([jsonl("a.jsonl", [answer(1, response=response)])], lake, day=date(2025, 12, 31))
    attempt = only(lake, "attempt")
    assert (attempt["day"], attempt["undated"], attempt["arrived_at"]) == (date(2025, 12, 31), True, None)
    assert only(lake, "usage_report")["day"] == date(2025, 12, 31)


def test_the_calls_of_one_record_are_attempts_of_their_own(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, key: bytes
) -> None:
    def stream(name: str, tokens: int) -> list[dict[str, object]]:
        usage = {"input_tokens": tokens, "output_tokens": 1}
        return [
            {"type": "message_start", "message": {"id": name, "usage": usage}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": tokens}},
            {"type": "message_stop"},
        ]

    record = answer(
        1,
        provider="anthropic",
        api_flavor="anthropic_messages",
        stream=True,
        calls_in_record=2,
        response_id="msg_b",
        response=[*stream("msg_a", 10), *stream("msg_b", 20)],
    )
    result = take([jsonl("a.jsonl", [record])], lake)
    assert (result.files[0].rows_in, result.files[0].rows_out) == (1, 1)
    assert lake.rows("attempt") == 2
    found = (
        lake.scan("usage_report")
        .join(lake.scan("foreign_id"), on=["attempt_hi", "attempt_lo"])
        .filter(pl.col("kind") == "provider_response_id")
        .sort("value", "part")
        .select("value", "part", "part_kind", "leaf_integers")
        .collect()
        .rows()
    )
    assert found == [
        ("msg_a", 0, "start", [10, 1]),
        ("msg_a", 1, "delta", [10]),
        ("msg_b", 0, "start", [20, 1]),
        ("msg_b", 1, "delta", [20]),
    ]
    records = lake.scan("foreign_id").filter(pl.col("kind") == "record_id").collect()["value"].sort().to_list()
    assert records == ["r_1/0", "r_1/1"]


def test_counts_in_headers_are_a_part_of_their_own_and_other_headers_are_left_out(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    headers = {
        "X-Amzn-Bedrock-Input-Token-Count": "5",
        "x-amzn-bedrock-output-token-count": 10,
        "x-amzn-bedrock-invocation-latency": "186",
        "x-api-warning": "a sentence",
    }
    record = answer(1, provider="bedrock", api_flavor="bedrock_invoke_model", response={}, meta_headers=headers)
    take([jsonl("a.jsonl", [record])], lake)
    report = only(lake, "usage_report")
    assert report["part_kind"] == "header"
    assert report["leaf_shape"] == (
        "header.x-amzn-bedrock-input-token-count header.x-amzn-bedrock-invocation-latency "
        "header.x-amzn-bedrock-output-token-count"
    )
    assert report["leaf_integers"] == [5, 186, 10]


def test_an_answer_without_usage_is_an_attempt_without_a_report(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    lines = [answer(1, response={}), answer(2, response=None), answer(3, response="not json"), answer(4, response=[])]
    result = take([jsonl("a.jsonl", lines)], lake)
    assert result.files[0].rows_out == 4
    assert lake.rows("attempt") == 4
    assert lake.rows("usage_report") == 0


def test_a_bare_usage_object_or_events_may_stand_for_the_answer(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    bare = {"provider": "openai", "api": "openai_chat", "model": "m", "usage": usage}
    events = {"provider": "openai", "api": "openai_chat", "model": "m", "events": [{"choices": [], "usage": usage}]}
    take([jsonl("a.jsonl", [bare, events])], lake)
    rows = lake.scan("usage_report").sort("segment_row").collect()
    assert rows["leaf_integers"].to_list() == [[4, 3, 7], [4, 3, 7]]
    assert rows["part_kind"].to_list() == ["whole", "final"]
    assert lake.rows("foreign_id") == 0


def test_names_and_identifiers_that_are_none_are_left_out_and_noted(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    record = answer(1, provider="my server (in the cellar)", model="a b", id="has blanks in it")
    record["response"] = {"id": "so has this", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    take([jsonl("a.jsonl", [record])], lake)
    attempt = only(lake, "attempt")
    assert (attempt["provider"], attempt["model_requested"]) == (None, None)
    assert only(lake, "usage_report")["notes"] == ["name_dropped", "identifier_dropped"]
    assert lake.rows("foreign_id") == 0
    assert lake.rows("alias") == 0


def test_a_port_behind_a_servers_name_is_part_of_it(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    take([jsonl("a.jsonl", [answer(1, provider="local_server(8000)")])], lake)
    assert only(lake, "attempt")["provider"] == "local_server:8000"


def test_what_the_call_names_stands_in_where_the_record_does_not_say(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, key: bytes
) -> None:
    files = [jsonl("a.jsonl", [answer(1, model=None), answer(2)])]
    take(files, lake, model="gpt-x", tenant="Finance", task="summary", provider="azure")
    rows = lake.scan("attempt").sort("segment_row").collect()
    assert rows["model_requested"].to_list() == ["gpt-x", "gpt-4o"]
    assert rows["provider"].to_list() == ["openai", "openai"]
    assert rows["tenant"].unique().to_list() == [pseudonym(key, "tenant", "Finance")]
    assert rows["tenant_key_id"].unique().to_list() == [key_id(key)]
    assert rows["task"].unique().to_list() == ["summary"]


def test_a_pseudonym_given_as_tenant_stays_as_it_is(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    take([jsonl("a.jsonl", [answer(1)])], lake, tenant="t_0123456789abcdef")
    assert only(lake, "attempt")["tenant"] == "t_0123456789abcdef"


def test_a_compressed_file_is_read_like_a_plain_one(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, tmp_path: Path
) -> None:
    import gzip  # noqa: PLC0415 - used here alone

    plain = jsonl("a.jsonl", [answer(1), answer(2)])
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    result = take([packed], lake)
    assert (result.files[0].importer, result.files[0].rows_out) == ("recorded_answers", 2)
