"""OpenAI's Responses. A stream always ends with the whole answer and its usage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.pipeline.probe.api import Api, Form, Piece, objects, text_of
from weighbridge.pipeline.probe.ask import Ask, Feature, function

_LEAST = 16  # output tokens; less is refused
_CLOSING = ("response.completed", "response.incomplete")


def _body(ask: Ask, model: str, limit: int, form: Form) -> dict[str, Any]:
    turns = [{"role": turn.role, "content": turn.text} for turn in ask.turns]
    body: dict[str, Any] = {
        "model": model,
        "input": turns,
        form.limit: max(ask.max_tokens or limit, _LEAST),
        "store": False,
    }
    if form.temperature:
        body["temperature"] = 0
    if ask.system is not None:
        body["instructions"] = ask.system
    if ask.tool is not None:
        body["tools"] = [{"type": "function", **function(ask.tool)}]
    if ask.stream:
        body["stream"] = True
    if ask.think:
        body["reasoning"] = {"effort": "low"}
    return body


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    # The closing event repeats the answer whole, so the pieces before it are passed over.
    whole = body.get("response") if body.get("type") in _CLOSING else body
    if not isinstance(whole, Mapping):
        return
    for item in objects(whole.get("output")):
        reasoning = item.get("type") == "reasoning"
        for part in objects(item.get("content")):
            yield Piece(0, text_of(part.get("text")), reasoning)


API = Api(
    name="responses",
    path="/responses",
    dialect="openai_responses",
    features=frozenset({Feature.SYSTEM, Feature.HISTORY, Feature.TOOLS, Feature.REASONING}),
    chat=True,
    forms=(Form("max_output_tokens"), Form("max_output_tokens", temperature=False)),
    body=_body,
    pieces=_pieces,
    headers={},
)
