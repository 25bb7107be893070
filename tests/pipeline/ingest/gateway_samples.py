"""Small records of gateways and tracers, made by hand after their published formats, with a canary in every text."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
TRACE = "00000000-0000-4000-8000-000000000000"
USAGE = {
    "input_tokens": 2000,
    "output_tokens": 64,
    "total_tokens": 2064,
    "input_token_details": {"cache_read": 1800},
    "output_token_details": {"reasoning": 14},
    "total_cost": 0.00159,
}


def spend(number: int, **changes: object) -> Row:
    """A row of the table: 10 + number tokens in, 5 out."""
    row: Row = {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "api_key": "a canary",
        "spend": 0.001,
        "prompt_tokens": 10 + number,
        "completion_tokens": 5,
        "total_tokens": 15 + number,
        "startTime": f"2026-01-15T10:30:{number:02d}.125Z",
        "endTime": f"2026-01-15T10:31:{number:02d}.125Z",
        "completionStartTime": f"2026-01-15T10:30:{number:02d}.625Z",
        "model": "openai/model-a",
        "model_group": "fast",
        "custom_llm_provider": "openai",
        "cache_hit": "False",
        "team_id": "team-blue",
        "user": "a canary",
        "end_user": "a canary",
        "messages": [{"role": "user", "content": "a canary sings"}],
        "metadata": {"user_api_key_user_email": "canary@example.com", "user_api_key_alias": "key-1"},
        "status": "success",
        "litellm_call_id": f"call-{number}",
    }
    return row | changes


def observation(number: int, **changes: object) -> Row:
    """A generation of one trace, as the API answers it."""
    row: Row = {
        "id": f"{number:016x}",
        "traceId": "trace-1",
        "parentObservationId": None,
        "type": "GENERATION",
        "name": "a canary sings",
        "startTime": f"2026-01-15T10:30:{number:02d}.250Z",
        "endTime": f"2026-01-15T10:31:{number:02d}.250Z",
        "completionStartTime": None,
        "level": "DEFAULT",
        "model": "model-a",
        "modelParameters": {"temperature": 0.5, "max_tokens": 64, "stop": "canary"},
        "input": "a canary sings",
        "output": {"content": "a canary sings"},
        "userId": "a canary",
        "metadata": {"attributes": {"gen_ai.system": "openai", "gen_ai.prompt": "a canary sings"}},
        "usageDetails": {"input": 200, "output": 50, "total": 250},
        "costDetails": {"input": 0.0005, "output": 0.0005, "total": 0.001},
    }
    return row | changes


def request(number: int, **changes: object) -> Row:
    """A row as the API answers it."""
    row: Row = {
        "response_id": f"00000000-0000-4000-8000-00000000000{number}",
        "response_created_at": "2026-01-15T10:30:02.000Z",
        "response_body": {"id": f"chatcmpl-{number}", "choices": [{"message": {"content": "a canary sings"}}]},
        "response_status": 200,
        "request_id": f"00000000-0000-4000-9000-00000000000{number}",
        "request_created_at": f"2026-01-15T10:30:0{number}.000Z",
        "request_body": {"messages": [{"content": "a canary sings"}]},
        "request_path": "https://oai.helicone.ai/canary",
        "request_user_id": "canary@example.com",
        "request_properties": {"note": "a canary"},
        "request_model": "model-a",
        "response_model": None,
        "provider": "OPENAI",
        "delay_ms": 900,
        "time_to_first_token": 120,
        "prompt_tokens": 200,
        "completion_tokens": 50,
        "total_tokens": 250,
        "prompt_cache_read_tokens": 1800,
        "prompt_cache_write_tokens": 0,
        "cost": 0.00145,
    }
    return row | changes


def run_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def run(number: int, **changes: object) -> Row:
    """A run of a model, as the API answers it."""
    row: Row = {
        "id": run_id(number),
        "trace_id": TRACE,
        "parent_run_id": None,
        "dotted_order": "canary",
        "run_type": "llm",
        "name": "a canary sings",
        "start_time": f"2026-01-15T10:30:{number:02d}.500000",
        "end_time": f"2026-01-15T10:30:{number:02d}.900000",
        "first_token_time": f"2026-01-15T10:30:{number:02d}.600000",
        "status": "success",
        "error": None,
        "tags": ["a canary"],
        "extra": {
            "metadata": {"ls_provider": "openai", "ls_model_name": "model-a", "user": "a canary"},
            "invocation_params": {"temperature": 0.2, "stop": ["a canary"]},
        },
        "inputs": {"messages": "a canary sings"},
        "outputs": {"id": f"chatcmpl-{number}", "content": "a canary sings", "usage_metadata": USAGE},
    }
    return row | changes
