"""The legacy Completions: a bare text without a chat template. The tokenizer's own special tokens are added to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.pipeline.probe.api import Api, Form, Piece, index_of, objects, text_of
from weighbridge.pipeline.probe.ask import Ask, Feature


def _body(ask: Ask, model: str, limit: int, form: Form) -> dict[str, Any]:
    prompt = ask.turns[-1].text
    body: dict[str, Any] = {"model": model, "prompt": prompt, form.limit: ask.max_tokens or limit, "temperature": 0}
    if ask.stream:
        body["stream"] = True
        if ask.include_usage:
            body["stream_options"] = {"include_usage": True}
    if ask.stop is not None:
        body["stop"] = [ask.stop]
    if ask.choices > 1:
        body["n"] = ask.choices
    return body


def _pieces(body: Mapping[str, Any]) -> Iterator[Piece]:
    for choice in objects(body.get("choices")):
        yield Piece(index_of(choice.get("index")), text_of(choice.get("text")))


API = Api(
    name="completions",
    path="/completions",
    dialect="openai_completions",
    features=frozenset({Feature.STOP, Feature.CHOICES, Feature.USAGE_ON_REQUEST}),
    chat=False,
    forms=(Form("max_tokens"),),
    body=_body,
    pieces=_pieces,
    headers={},
)
