"""The same server in the words of other APIs: requests to those of chat, its choices and usage to theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Answer = tuple[list[dict[str, Any]], dict[str, Any] | None, str]
_SHORT = {"stop": "end_turn", "length": "max_tokens"}


def as_chat(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """A request in the words of chat; a bare prompt stays one."""
    if path.endswith("/chat/completions"):
        return asked
    limit = asked.get("max_tokens") or asked.get("max_output_tokens")
    chat: dict[str, Any] = {
        "max_tokens": limit,
        **{n: asked[n] for n in ("stream", "stream_options", "n", "stop") if n in asked},
    }
    if path.endswith("/completions"):
        return {**chat, "prompt": asked["prompt"]}
    system = asked.get("system") or asked.get("instructions")
    turns = asked["messages"] if "messages" in asked else asked["input"]
    chat["messages"] = [*([{"role": "system", "content": system}] if system else []), *turns]
    if "stop_sequences" in asked:
        chat["stop"] = asked["stop_sequences"]
    if "thinking" in asked or "reasoning" in asked:
        chat["reasoning_effort"] = "low"
    if "tools" in asked:
        chat["tools"] = [{"type": "function", "function": _function(tool)} for tool in asked["tools"]]
    return chat


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    parameters = tool.get("input_schema") or tool.get("parameters")
    return {"name": tool["name"], "description": tool["description"], "parameters": parameters}


def completion(answer: Answer) -> dict[str, Any]:
    """A body of Completions."""
    choices, usage, _ = answer
    return {"object": "text_completion", "choices": choices, "usage": usage}


def message(answer: Answer) -> dict[str, Any]:
    """A body of Messages: cached tokens stand beside the input."""
    (one,), usage, thought = answer
    assert usage is not None
    content = [{"type": "thinking", "thinking": thought}] if thought else []
    return {
        "type": "message",
        "role": "assistant",
        "content": [*content, {"type": "text", "text": one["text"]}],
        "stop_reason": _SHORT[one["finish_reason"]],
        "usage": _beside(usage),
    }


def _beside(usage: dict[str, Any]) -> dict[str, int]:
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return {
        "input_tokens": usage["prompt_tokens"] - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage["completion_tokens"],
    }


def message_events(answer: Answer) -> Iterator[str]:
    """A stream of Messages: it opens with the input and a placeholder, and closes with the output."""
    body = message(answer)
    usage = body["usage"]
    yield json.dumps(
        {"type": "message_start", "message": {**body, "content": [], "usage": {**usage, "output_tokens": 1}}}
    )
    for letter in answer[0][0]["text"]:
        yield json.dumps({"type": "content_block_delta", "delta": {"type": "text_delta", "text": letter}})
    delta = {"stop_reason": body["stop_reason"]}
    yield json.dumps({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    yield json.dumps({"type": "message_stop"})


def response(answer: Answer) -> dict[str, Any]:
    """A body of Responses."""
    (one,), usage, thought = answer
    assert usage is not None
    output = [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": thought}]}] if thought else []
    whole = one["finish_reason"] == "stop"
    return {
        "object": "response",
        "status": "completed" if whole else "incomplete",
        "incomplete_details": None if whole else {"reason": "max_output_tokens"},
        "output": [*output, {"type": "message", "content": [{"type": "output_text", "text": one["text"]}]}],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": usage.get("completion_tokens_details", {"reasoning_tokens": 0}),
            "total_tokens": usage["total_tokens"],
        },
    }


def response_events(answer: Answer) -> Iterator[str]:
    """A stream of Responses: its closing event repeats the answer whole."""
    body = response(answer)
    yield json.dumps({"type": "response.created", "response": {**body, "status": "in_progress", "usage": None}})
    for letter in answer[0][0]["text"]:
        yield json.dumps({"type": "response.output_text.delta", "delta": letter})
    yield json.dumps({"type": f"response.{body['status']}", "response": body})


BODIES: dict[str, Callable[[Answer], dict[str, Any]]] = {
    "/v1/messages": message,
    "/v1/responses": response,
    "/v1/completions": completion,
}
STREAMS: dict[str, Callable[[Answer], Iterator[str]]] = {
    "/v1/messages": message_events,
    "/v1/responses": response_events,
}
