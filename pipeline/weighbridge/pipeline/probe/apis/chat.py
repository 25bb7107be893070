"""OpenAI's Chat Completions, and whoever speaks it: vLLM, SGLang, llama.cpp, Ollama, `transformers serve`, routers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.pipeline.probe.api import Api, Form, Piece, index_of, objects, text_of
from weighbridge.pipeline.probe.ask import Ask, Feature


def _body(ask: Ask, model: str, limit: int, form: Form) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": ask.messages(), form.limit: ask.max_tokens or limit}
    if form.temperature:
        body["temperature"] = 0
    if ask.tool is not None:
        body["tools"] = ask.tools()
    if ask.stream:
        body["stream"] = True
        if ask.include_usage:
            body["stream_options"] = {"include_usage": True}
    if ask.stop is not None:
        body["stop"] = [ask.stop]
    if ask.choices > 1:
        body["n"] = ask.choices
    if ask.think:
        body["reasoning_effort"] = "low"
    return body


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    for choice in objects(body.get("choices")):
        said = choice.get("message") or choice.get("delta")
        if isinstance(said, Mapping):
            at = index_of(choice.get("index"))
            yield Piece(at, text_of(said.get("content")))
            yield Piece(at, text_of(said.get("reasoning_content") or said.get("reasoning")), reasoning=True)


API = Api(
    name="chat",
    path="/chat/completions",
    dialect="openai_chat",
    features=frozenset(Feature),
    chat=True,
    forms=(Form("max_tokens"), Form("max_completion_tokens", temperature=False)),
    body=_body,
    pieces=_pieces,
    headers={},
)
