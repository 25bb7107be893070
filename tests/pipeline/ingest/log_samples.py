"""Small records of spans, session logs, invocation logs and usage pages, made by hand after the published formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# 2026-01-15 10:30 UTC
SECOND = 1_768_473_000
TRACE = "5b8efff798038103d269b633813fc60c"


def attribute(name: str, value: object) -> dict[str, object]:
    """One typed attribute of OTLP; 64-bit integers are text there."""
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    if isinstance(value, list):
        return {"key": name, "value": {"arrayValue": {"values": [{"stringValue": item} for item in value]}}}
    return {"key": name, "value": {"stringValue": value}}


def span(number: int, told: Mapping[str, object], parent: int | None = None, **changes: object) -> dict[str, Any]:
    """A span of one second as OTLP JSON has it."""
    begin = (SECOND + number) * 10**9
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + 10**9),
        "attributes": [attribute(name, value) for name, value in told.items()],
        "status": {},
        **changes,
    }


def export(*spans: dict[str, Any], **resource: object) -> dict[str, Any]:
    """One OTLP export of these spans."""
    held = [attribute(name.replace("_", "."), value) for name, value in resource.items()]
    return {"resourceSpans": [{"resource": {"attributes": held}, "scopeSpans": [{"spans": list(spans)}]}]}


def chat(inputs: int, outputs: int, **more: object) -> dict[str, object]:
    """Attributes of a call as OpenTelemetry names them; `more` is below gen_ai, with `__` for a dot."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.usage.input_tokens": inputs,
        "gen_ai.usage.output_tokens": outputs,
        **{f"gen_ai.{name.replace('__', '.')}": value for name, value in more.items()},
    }


def message(number: int, output: int, stop: str | None = None, **changes: object) -> dict[str, Any]:
    """A line of a session of Claude Code: 3 tokens in, 1,200 written for five minutes, 20,000 read."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 1200,
        "cache_read_input_tokens": 20000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1200, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/someone/project",
        "sessionId": "0c1b6c1e-6d25-4b7e-8f5e-0a4a8e1a5f10",
        "version": "2.0.14",
        "gitBranch": "main",
        "type": "assistant",
        "timestamp": f"2026-01-15T10:30:{number:02d}.123Z",
        "requestId": f"req_{number}",
        "message": {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [{"type": "text", "text": "hello"}],
            "stop_reason": stop,
            "usage": usage,
        },
        **changes,
    }


def invocation(number: int, **changes: object) -> dict[str, Any]:
    """A record of Bedrock's invocation log: 4 tokens in, 1,000 read from the cache, 38 out."""
    usage = {
        "inputTokens": 4,
        "outputTokens": 38,
        "totalTokens": 1042,
        "cacheReadInputTokens": 1000,
        "cacheWriteInputTokens": 0,
    }
    return {
        "schemaType": "ModelInvocationLog",
        "schemaVersion": "1.0",
        "timestamp": f"2026-01-15T10:30:{number:02d}Z",
        "accountId": "123456789012",
        "identity": {"arn": "arn:aws:sts::123456789012:assumed-role/role/someone"},
        "region": "us-east-1",
        "requestId": f"ff4b6c63-5561-4431-93b8-06a8172759{number:02d}",
        "operation": "Converse",
        "modelId": "amazon.nova-lite-v1:0",
        "input": {
            "inputContentType": "application/json",
            "inputBodyJson": {"messages": [{"role": "user"}], "inferenceConfig": {"maxTokens": 512}},
            "inputTokenCount": 4,
            "cacheReadInputTokenCount": 1000,
            "cacheWriteInputTokenCount": 0,
        },
        "output": {
            "outputContentType": "application/json",
            "outputBodyJson": {"stopReason": "end_turn", "usage": usage},
            "outputTokenCount": 38,
        },
        **changes,
    }


DAY_0 = 1_768_435_200  # 2026-01-15 00:00 UTC


def completions(**changes: object) -> dict[str, Any]:
    """A result of OpenAI's completions usage: 1,000 in, of it 400 read and 30 + 20 written, 500 out."""
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": 1000,
        "output_tokens": 500,
        "input_cached_tokens": 400,
        "input_uncached_tokens": 550,
        "input_cache_write_tokens": 30,
        "input_cache_write_12h_tokens": 20,
        "num_model_requests": 5,
        "project_id": "proj_abc",
        "user_id": None,
        "api_key_id": None,
        "model": "gpt-4o-2024-08-06",
        "batch": None,
        "service_tier": None,
        **changes,
    }


def page(*buckets: list[dict[str, Any]], more: bool = False, first: int = DAY_0) -> dict[str, Any]:
    """A page of OpenAI's usage, a bucket for each day."""
    days = [
        {
            "object": "bucket",
            "start_time": first + at * 86_400,
            "end_time": first + (at + 1) * 86_400,
            "results": results,
        }
        for at, results in enumerate(buckets)
    ]
    return {"object": "page", "data": days, "has_more": more, "next_page": "page_x" if more else None}


def messages_report(*results: dict[str, Any], day: int = 15, more: bool = False) -> dict[str, Any]:
    """A page of Anthropic's messages usage report with one day."""
    times = {"starting_at": f"2026-01-{day:02d}T00:00:00Z", "ending_at": f"2026-01-{day + 1:02d}T00:00:00Z"}
    return {"data": [{**times, "results": list(results)}], "has_more": more, "next_page": None}


def messages(**changes: object) -> dict[str, Any]:
    """A result of that report: 1,500 + 500 + 1,000 + 200 in, 500 out."""
    return {
        "uncached_input_tokens": 1500,
        "cache_creation": {"ephemeral_1h_input_tokens": 1000, "ephemeral_5m_input_tokens": 500},
        "cache_read_input_tokens": 200,
        "output_tokens": 500,
        "server_tool_use": {"web_search_requests": 10},
        "api_key_id": "apikey_01",
        "workspace_id": "wrkspc_01",
        "model": "claude-sonnet-4-5",
        "service_tier": "standard",
        "context_window": "0-200k",
        **changes,
    }
