"""Reading one record: bodies, streams, what is missing, what cannot be read, and the published bug cases."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import UsageReading, read_usage
from weighbridge.pipeline.ingest.reading import NO_API, calls_of, parts_of
from weighbridge.schemas.enumerations import Ended, ReportPart, Verdict

CHAT = {"provider": "openai", "api": "chat", "model": "m"}
RESPONSES = {"provider": "openai", "api": "responses", "model": "m"}
MESSAGES = {"provider": "anthropic", "api": "messages", "model": "m"}
GEMINI = {"provider": "google", "api": "generateContent", "model": "m"}
USAGE = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
CANARY = "the quick brown canary"


def start(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"role": "assistant", "usage": usage}}


def delta(**usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def chunk(tokens: int, **more: int) -> dict[str, Any]:
    return {
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": tokens,
            "totalTokenCount": 10 + tokens,
            **more,
        }
    }


def totals(reading: UsageReading) -> tuple[int | None, int | None, int | None]:
    return reading.input_total, reading.output_total, reading.total


def test_a_body_is_read_and_its_words_are_not_kept() -> None:
    body = {"choices": [{"message": {"content": CANARY}}], "model": CANARY, "usage": {**USAGE, "note": CANARY}}
    reading = read_usage({**CHAT, "response": body})
    assert totals(reading) == (50, 5, 55)
    assert reading.reported_total == 55
    assert reading.ended is Ended.COMPLETE
    assert CANARY not in json.dumps(reading.to_dict())


def test_the_reading_as_plain_values() -> None:
    out = read_usage({**CHAT, "usage": USAGE}).to_dict()
    assert json.loads(json.dumps(out)) == out
    assert out["verdict"] == "PROVED"
    assert out["dialect"] == "openai_chat"
    assert out["counts"] == {
        "input_uncached": 50,
        "cache_read": 0,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "cache_write_unknown": 0,
        "output_visible": 5,
        "reasoning": 0,
    }
    assert out["leaves"] == {"usage.completion_tokens": 5, "usage.prompt_tokens": 50, "usage.total_tokens": 55}
    assert out["flags"] == []
    assert out["estimated"] is None


def test_an_unheard_of_speaker_keeps_the_leaves_and_claims_nothing() -> None:
    reading = read_usage({"provider": "xai", "api": "telepathy", "model": "m", "response": {"usage": USAGE}})
    assert (reading.verdict, reading.dialect, reading.flags) == (Verdict.UNKNOWN, None, ())
    assert reading.reason == "no dialect for provider xai and API telepathy; the leaves are kept"
    assert totals(reading) == (None, None, None)
    assert len(reading.leaves) == 3


def test_what_is_no_name_is_not_repeated() -> None:
    reading = read_usage({"provider": CANARY, "api": CANARY, "model": CANARY, "usage": USAGE})
    assert CANARY not in json.dumps(reading.to_dict())
    assert reading.reason == NO_API
    assert len(reading.leaves) == 3


def test_the_last_running_total_counts_and_nothing_is_summed() -> None:
    reading = read_usage({**GEMINI, "events": [chunk(1), chunk(2), chunk(3, thoughtsTokenCount=4, totalTokenCount=17)]})
    assert totals(reading) == (10, 7, 17)


def test_a_later_event_without_counts_does_not_hide_the_last_one_with_counts() -> None:
    events = [chunk(3), {"usageMetadata": {"trafficType": "ON_DEMAND"}, "candidates": [{"finishReason": "STOP"}]}]
    reading = read_usage({**GEMINI, "events": events})
    assert totals(reading) == (10, 3, 13)
    assert reading.ended is Ended.COMPLETE


def test_a_stream_without_usage_is_unknown_and_not_zero() -> None:
    events = [{"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}], "usage": None}]
    reading = read_usage({**CHAT, "events": events})
    assert (reading.verdict, reading.flags, totals(reading)) == (
        Verdict.UNKNOWN,
        ("usage_missing",),
        (None, None, None),
    )
    assert set(reading.counts.values()) == {None}
    assert reading.ended is Ended.COMPLETE


def test_local_counts_stand_beside_null_totals_only() -> None:
    context = {"ended": "client_disconnected", "local_counts": {"prompt_tokens": 45, "delivered_output_tokens": 26}}
    reading = read_usage({**CHAT, "events": [], "context": context})
    assert reading.estimated == {"input_total": 45, "output_total": 26, "total": 71}
    assert totals(reading) == (None, None, None)
    assert reading.ended is Ended.CUT
    assert read_usage({**CHAT, "usage": USAGE, "context": context}).estimated is None


def test_an_error_after_usage_keeps_the_counts() -> None:
    events = [{"choices": [], "usage": USAGE}, {"error": {"message": "upstream closed"}}]
    reading = read_usage({**CHAT, "events": events})
    assert totals(reading) == (50, 5, 55)
    assert (reading.flags, reading.ended) == (("error_after_usage",), Ended.ERROR)


def test_an_error_without_usage_is_missing_usage() -> None:
    reading = read_usage({**CHAT, "response": {"error": {"message": CANARY}}})
    assert (reading.verdict, reading.flags, reading.ended) == (Verdict.UNKNOWN, ("usage_missing",), Ended.ERROR)


@pytest.mark.parametrize(
    ("kind", "ended"),
    [
        ("response.completed", Ended.COMPLETE),
        ("response.incomplete", Ended.COMPLETE),
        ("response.failed", Ended.ERROR),
    ],
)
def test_a_responses_stream_is_read_from_its_closing_event(kind: str, ended: Ended) -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    events = [{"type": "response.created", "response": {"usage": None}}, {"type": kind, "response": {"usage": usage}}]
    reading = read_usage({**RESPONSES, "events": events})
    assert (totals(reading), reading.ended) == ((7, 2, 9), ended)


def test_a_responses_body_may_speak_with_the_names_of_chat() -> None:
    reading = read_usage({**RESPONSES, "provider": "azure", "usage": {**USAGE, "reasoning_tokens": 2}})
    assert totals(reading) == (50, 5, 55)
    assert (reading.counts["output_visible"], reading.counts["reasoning"]) == (3, 2)
    assert reading.counts["cache_read"] is None


def test_two_names_for_one_count_must_agree() -> None:
    usage = {"input_tokens": 50, "prompt_tokens": 51, "output_tokens": 5, "total_tokens": 55}
    reading = read_usage({**RESPONSES, "usage": usage})
    assert (reading.verdict, reading.flags) == (Verdict.CONTRADICTORY, ("fields_disagree",))
    assert read_usage({**RESPONSES, "usage": {**usage, "prompt_tokens": 50}}).verdict is Verdict.PROVED


def test_a_delta_revises_every_field_it_repeats() -> None:
    events = [
        start(input_tokens=2068, cache_read_input_tokens=0, cache_creation_input_tokens=0, output_tokens=3),
        delta(input_tokens=22397, output_tokens=310, cache_read_input_tokens=11),
        {"type": "message_stop"},
    ]
    reading = read_usage({**MESSAGES, "events": events})
    assert totals(reading) == (22408, 310, 22718)
    assert (reading.counts["input_uncached"], reading.counts["cache_read"]) == (22397, 11)
    assert (reading.ended, reading.flags) == (Ended.COMPLETE, ())


def test_the_placeholder_of_the_opening_is_no_output() -> None:
    events = [start(input_tokens=25, cache_creation_input_tokens=0, cache_read_input_tokens=0, output_tokens=1)]
    reading = read_usage({**MESSAGES, "events": events, "context": {"local_counts": {"delivered_output_tokens": 40}}})
    assert totals(reading) == (25, None, None)
    assert reading.counts["output_visible"] is None
    assert (reading.ended, reading.flags) == (Ended.CUT, ("output_incomplete",))
    assert reading.estimated == {"output_total": 40, "total": 65}


def split(five: int, hour: int) -> dict[str, Any]:
    return {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}


@pytest.mark.parametrize(
    ("revised", "writes", "flags"),
    [
        ({"cache_creation_input_tokens": 3337}, (3068, 0, 269), ("ttl_split_incomplete", "ttl_split_stale")),
        ({"cache_creation_input_tokens": 40}, (0, 0, 40), ("ttl_split_stale",)),
        ({"cache_creation_input_tokens": 40, "cache_creation": split(0, 40)}, (0, 40, 0), ()),
        ({"cache_creation_input_tokens": 3068}, (3068, 0, 0), ()),
        ({}, (3068, 0, 0), ()),
    ],
)
def test_a_revised_creation_makes_an_old_lifetime_split_stale(
    revised: dict[str, Any], writes: tuple[int, ...], flags: tuple[str, ...]
) -> None:
    opening = start(input_tokens=6, cache_creation_input_tokens=3068)
    opening["message"]["usage"]["cache_creation"] = split(3068, 0)
    reading = read_usage({**MESSAGES, "events": [opening, delta(output_tokens=198, **revised)]})
    got = tuple(reading.counts[name] for name in ("cache_write_5m", "cache_write_1h", "cache_write_unknown"))
    assert (got, reading.flags) == (writes, flags)
    assert reading.input_total == 6 + sum(writes)


def test_a_repeated_creation_of_zero_does_not_lose_the_split_that_beat_it() -> None:
    opening = start(input_tokens=6, cache_creation_input_tokens=0)
    opening["message"]["usage"]["cache_creation"] = split(0, 1000)
    reading = read_usage({**MESSAGES, "events": [opening, delta(output_tokens=9, cache_creation_input_tokens=0)]})
    assert reading.counts["cache_write_1h"] == 1000
    assert reading.flags == ("ttl_split_exceeds_creation",)


def test_several_answers_in_one_list_are_told_apart() -> None:
    events = [
        start(input_tokens=5, output_tokens=1),
        delta(output_tokens=7),
        {"type": "message_stop"},
        start(input_tokens=6, output_tokens=1),
        delta(output_tokens=8),
    ]
    assert [len(call) for call in calls_of("messages", events)] == [3, 2]
    reading = read_usage({**MESSAGES, "events": events})
    assert (totals(reading), reading.flags) == ((6, 8, 14), ("several_answers",))
    closing = {
        "type": "response.completed",
        "response": {"usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}},
    }
    stream = [{"type": "response.created"}, closing, closing, {"type": "response.done"}]
    assert [len(call) for call in calls_of("responses", stream)] == [2, 2]
    assert read_usage({**RESPONSES, "events": stream}).flags == ("several_answers",)
    assert calls_of("chat", [{"choices": []}, {"choices": []}]) == [[{"choices": []}, {"choices": []}]]


def test_parts_of_a_stream() -> None:
    events = [start(input_tokens=5, output_tokens=1), {"type": "ping"}, delta(output_tokens=7), {"type": "error"}]
    parts = parts_of("messages", events=events)
    assert [(part.part_kind, part.notes) for part in parts] == [
        (ReportPart.START, ()),
        (ReportPart.DELTA, ("error_event",)),
    ]
    assert {part.ended for part in parts} == {Ended.ERROR}
    assert [part.part_kind for part in parts_of("generateContent", events=[chunk(1), chunk(2)])] == [
        ReportPart.RUNNING,
        ReportPart.FINAL,
    ]
    (none,) = parts_of("chat", events=[])
    assert (none.flattened.leaves, none.ended) == ([], Ended.UNKNOWN)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1.5, "fraction"),
        (2**63, "range"),
        (-(2**63) - 1, "range"),
        (math.nan, "not_a_number"),
        (math.inf, "not_a_number"),
        ("55", "type"),
        (True, "type"),
        (Decimal("1e400"), "range"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(value: object, reason: str) -> None:
    reading = read_usage({**CHAT, "usage": {**USAGE, "prompt_tokens": value}})
    assert (reading.verdict, reading.flags) == (Verdict.UNKNOWN, ("unreadable",))
    assert reading.reason == f"usage.prompt_tokens cannot be read: {reason}"
    assert totals(reading) == (None, None, None)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"provider": 5, "api": ["chat"], "usage": USAGE},
        {**CHAT, "usage": "none"},
        {**CHAT, "usage": [USAGE]},
        {**CHAT, "response": "body"},
        {**CHAT, "response": []},
        {**CHAT, "events": "stream"},
        {**CHAT, "events": [None, 5, "[DONE]", [USAGE]]},
        {**CHAT, "usage": USAGE, "context": "none"},
        {**CHAT, "usage": USAGE, "context": {"ended": 7, "local_counts": 7}},
        {**CHAT, "usage": {"prompt_tokens": {"prompt_tokens": {"prompt_tokens": 1}}}},
    ],
)
def test_strange_records_never_raise(record: dict[str, Any]) -> None:
    reading = read_usage(record)
    assert reading.reason
    assert json.dumps(reading.to_dict())


def test_deep_nesting_is_refused() -> None:
    usage: dict[str, Any] = {"usage": 1}
    for _ in range(500):
        usage = {"usage": usage}
    assert read_usage({**CHAT, "usage": usage}).reason.endswith("cannot be read: too_deep")


def test_an_integral_float_is_the_integer_and_is_noticed() -> None:
    reading = read_usage({**CHAT, "usage": {**USAGE, "prompt_tokens": 50.0}})
    assert (totals(reading), reading.flags) == ((50, 5, 55), ("integral_float",))


def test_a_count_beyond_what_sums_can_hold_is_contradictory_and_kept_as_evidence() -> None:
    reading = read_usage({**CHAT, "usage": {"prompt_tokens": 2**53 + 1, "completion_tokens": 1, "total_tokens": 9}})
    assert (reading.verdict, reading.flags) == (Verdict.CONTRADICTORY, ("count_too_large",))
    assert reading.reported_total == 9
    below = read_usage({**CHAT, "usage": {**USAGE, "prompt_tokens": -(2**62)}})
    assert below.flags == ("count_too_large", "negative_count")


def test_our_own_vocabulary_is_read_by_name() -> None:
    record = {"provider": "azure", "api": "declared", "model": "m", "usage": {"input_total": 4808, "output_total": 10}}
    reading = read_usage(record)
    assert (totals(reading), reading.dialect) == ((4808, 10, 4818), "declared")
    written = read_usage({**record, "usage": {"input_total": 50, "cache_write_5m": 10}})
    assert (written.counts["cache_write_5m"], written.counts["cache_write_1h"]) == (10, None)
    assert read_usage({**record, "usage": {"input_total": 1.5}}).flags == ("unreadable",)
    assert "unmapped_leaves" in read_usage({**record, "usage": {"input_total": 5, "output_totall": 5}}).flags


def modality_free(reading: UsageReading, name: str) -> int | None:
    """The cases count a class without its modalities; ours contains them."""
    count = reading.counts[name]
    return count and count - sum(tokens or 0 for cell, tokens in reading.cells.items() if cell.startswith(f"{name}_"))


CELL_OF_CASE = {"audio_in": "input_uncached_audio", "audio_out": "output_visible_audio"}
CASES = "B01 B05 B07 B15 B25 B31 B33 B35 B83 B45 B53 B55 B57 B59 B61 B03 B13 B21 B23 B29 B79 B111 B41 B71 B73".split()


@pytest.mark.real
@pytest.mark.parametrize("case_id", CASES)
def test_published_bugs_of_other_tools_are_none_of_ours(shared_real: Path, case_id: str) -> None:
    lines = (shared_real / "bug_cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(case for case in map(json.loads, lines) if case["id"] == case_id)
    reading, expect = read_usage(case["input"]), case["expect"]
    for name, count in expect.get("counts", {}).items():
        got = reading.cells[CELL_OF_CASE[name]] if name in CELL_OF_CASE else modality_free(reading, name)
        assert got == count, name
    for name in ("input_total", "output_total", "total"):
        assert name not in expect or getattr(reading, name) == expect[name], name
    assert reading.verdict.lower() == expect.get("verdict", reading.verdict.lower())
    assert {flag.replace("-", "_") for flag in expect.get("flags", [])} <= set(reading.flags)
    assert not {flag.replace("-", "_") for flag in expect.get("not_flags", [])} & set(reading.flags)
    if "estimated" in expect:
        assert reading.estimated == {name: n for name, n in expect["estimated"].items() if name != "cost"}
