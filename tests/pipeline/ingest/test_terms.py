"""What a usage report says beside its counts: terms, uses and what was charged, one report and many alike."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from weighbridge.pipeline.ingest.parts import parts_of
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.ingest.terms import Told, told_by
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import FeeKind

CHAT = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
KEY = {"attempt_hi": 0, "attempt_lo": 1, "day": date(2026, 5, 1), "source": "s", "child": 0, "report": 0, "revision": 0}


def rows(api: str, number: int = 1, **answer: Any) -> list[dict[str, Any]]:
    return [
        {
            **KEY,
            "attempt_lo": number,
            "part": at,
            "part_kind": str(part.part_kind),
            "provider": "acme",
            "api": api,
            "model": "m",
            "ended": str(part.ended),
            "leaf_shape": part.flattened.shape,
            "leaf_integers": part.flattened.integers(),
            "leaf_texts": part.flattened.texts(),
        }
        for at, part in enumerate(parts_of(api, **answer))
    ]


def many(reports: list[dict[str, Any]]) -> list[Told]:
    read = read_reports(pl.DataFrame(reports, schema=polars_schema("usage_report")))
    return [
        Told(
            row["service_tier"],
            row["batch"],
            row["region"],
            dict(zip(map(FeeKind, row["fee_kinds"] or []), row["fee_counts"] or [], strict=True)) or None,
            row["charged"],
        )
        for row in read.sort("attempt_lo").iter_rows(named=True)
    ]


def alone(api: str, **answer: Any) -> Told:
    return told_by(api, (part.flattened.leaves for part in parts_of(api, **answer)))


@pytest.mark.parametrize(
    ("api", "response", "told"),
    [
        ("openai_chat", {"usage": CHAT}, Told()),
        ("openai_chat", {"usage": CHAT, "service_tier": "flex"}, Told("flex")),
        ("openai_chat", {"usage": CHAT, "service_tier": "on_demand"}, Told("default")),
        ("openai_chat", {"usage": CHAT, "service_tier": "auto"}, Told("auto")),
        ("openai_chat", {"usage": CHAT, "service_tier": "of my own"}, Told()),
        ("openai_chat", {"usage": None, "service_tier": "flex"}, Told()),
        ("openai_batches", {"usage": CHAT}, Told(batch=True)),
        ("anthropic_messages", {"usage": {"service_tier": "batch", "input_tokens": 1}}, Told("default", batch=True)),
        ("anthropic_messages", {"usage": {"speed": "fast", "service_tier": "standard"}}, Told("fast")),
        ("anthropic_messages", {"usage": {"inference_geo": "us"}}, Told(region="us")),
        ("anthropic_messages", {"usage": {"inference_geo": "not_available"}}, Told()),
        (
            "anthropic_messages",
            {"usage": {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0}}},
            Told(fees={FeeKind.WEB_SEARCH: 3}),
        ),
        ("gemini_generate_content", {"usageMetadata": {"trafficType": "ON_DEMAND_FLEX"}}, Told("flex")),
        ("openai_chat", {"usage": {"cost_in_usd_ticks": 1497500}}, Told(charged=Decimal("0.00014975"))),
        ("openai_chat", {"usage": {"cost": 0.000114}}, Told(charged=Decimal("0.000114"))),
        (
            "openai_chat",
            {"usage": {"cost": {"total_cost": 0.006, "request_cost": 0.005}}},
            Told(charged=Decimal("0.006")),
        ),
        ("openai_chat", {"usage": {"cost": 1e-19}}, Told()),  # no column holds so many places, and none is cut off
        ("openai_chat", {"usage": {"search_context_size": "high"}}, Told(fees={FeeKind.REQUEST_HIGH: 1})),
        (
            "openai_responses",
            {"usage": {"num_server_side_tools_used": 2, "server_side_tool_usage_details": {"x_search_calls": 2}}},
            Told(fees={FeeKind.X_SEARCH: 2}),
        ),
        ("openai_responses", {"usage": {"num_server_side_tools_used": 2}}, Told(fees={FeeKind.SERVER_TOOL: 2})),
    ],
)
def test_what_stands_beside_the_counts_is_read(api: str, response: dict[str, Any], told: Told) -> None:
    assert alone(api, response=response) == told
    assert many(rows(api, response=response)) == [told]


def test_the_last_part_of_a_stream_that_says_it_counts() -> None:
    events = [
        {"type": "response.created", "response": {"usage": {"input_tokens": 1}, "service_tier": "auto"}},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 3}, "service_tier": "priority"}},
    ]
    assert alone("openai_responses", events=events) == Told("priority")
    assert many(rows("openai_responses", events=events)) == [Told("priority")]


USAGE = st.fixed_dictionaries(
    {"prompt_tokens": st.just(1)},
    optional={
        "service_tier": st.sampled_from(["auto", "flex", "standard", "batch", "x"]),
        "speed": st.sampled_from(["fast", "standard"]),
        "inference_geo": st.sampled_from(["us", "global", "not_available"]),
        "num_server_side_tools_used": st.integers(-1, 3),
        "server_side_tool_usage_details": st.fixed_dictionaries({"mcp_calls": st.integers(0, 2)}),
        "server_tool_use": st.fixed_dictionaries({"web_search_requests": st.integers(-1, 2)}),
        "num_sources_used": st.integers(0, 2),
        "search_context_size": st.sampled_from(["low", "medium", "high"]),
        "cost": st.one_of(st.integers(0, 3), st.floats(0, 9, allow_nan=False), st.just("0.5")),
        "cost_in_usd_ticks": st.integers(0, 2**40),
    },
)
ANSWERS = st.fixed_dictionaries({"usage": USAGE}, optional={"service_tier": st.sampled_from(["flex", "default", None])})


@settings(max_examples=examples(25, 200), deadline=None)
@given(answers=st.lists(st.tuples(st.sampled_from(["openai_chat", "openai_batches", "none"]), ANSWERS), min_size=1))
def test_many_reports_say_what_each_says_alone(answers: list[tuple[str, dict[str, Any]]]) -> None:
    reports = [row for at, (api, answer) in enumerate(answers) for row in rows(api, at, response=answer)]
    assert many(reports) == [alone(api, response=answer) for api, answer in answers]
