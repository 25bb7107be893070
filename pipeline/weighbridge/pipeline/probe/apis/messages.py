"""Anthropic's Messages. A stream opens with the input and closes with the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.pipeline.probe.api import Api, Form, Piece, objects, text_of
from weighbridge.pipeline.probe.ask import Ask, Feature, function

_BUDGET = 1024  # reasoning tokens; less is refused


def _body(ask: Ask, model: str, limit: int, form: Form) -> dict[str, Any]:
    turns = [{"role": turn.role, "content": turn.text} for turn in ask.turns]
    body: dict[str, Any] = {"model": model, "messages": turns, form.limit: ask.max_tokens or limit}
    if form.temperature and not ask.think:
        body["temperature"] = 0
    if ask.system is not None:
        body["system"] = ask.system
    if ask.tool is not None:
        tool = function(ask.tool)
        body["tools"] = [{**{n: tool[n] for n in ("name", "description")}, "input_schema": tool["parameters"]}]
    if ask.stream:
        body["stream"] = True
    if ask.stop is not None:
        body["stop_sequences"] = [ask.stop]
    if ask.think:
        body["thinking"] = {"type": "enabled", "budget_tokens": _BUDGET}
        body[form.limit] = _BUDGET + (ask.max_tokens or limit)
    return body


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    delta = body.get("delta")
    for part in [*objects(body.get("content")), *([delta] if isinstance(delta, Mapping) else [])]:
        yield Piece(0, text_of(part.get("text")))
        yield Piece(0, text_of(part.get("thinking")), reasoning=True)


API = Api(
    name="messages",
    path="/messages",
    dialect="anthropic_messages",
    features=frozenset({Feature.SYSTEM, Feature.HISTORY, Feature.TOOLS, Feature.STOP, Feature.REASONING}),
    chat=True,
    forms=(Form("max_tokens"), Form("max_tokens", temperature=False)),
    body=_body,
    pieces=_pieces,
    headers={"anthropic-version": "2023-06-01"},
    key_header=("x-api-key", "{}"),
)
