"""What a call asks for: the model, and generation parameters as numbers. The text of the prompt is not looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.capture.context import Parameters
from weighbridge.capture.wire.apis import Api
from weighbridge.capture.wire.sieve import PLAIN, Sieve
from weighbridge.schemas.identity import NAME


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked.

    Attributes:
        model: its name, None where it is none that may stand in clear.
        stream: whether the answer shall be streamed.
        usage_expected: whether a usage report is due; None where it cannot be told.
        parameters: numbers only.
    """

    model: str | None
    stream: bool
    usage_expected: bool | None
    parameters: Parameters


def call_of(api: Api, path: str, body: bytes) -> Call:
    """Read a call. A body that is no JSON object gives a call of which nothing is known."""
    asked = _object(body)
    stream = asked.get("stream") is True or "streamGenerateContent" in path
    config = asked.get("generationConfig")
    settings = {**asked, **config} if isinstance(config, Mapping) else asked
    return Call(model_name(asked.get("model") or _model_in(path)), stream, _expected(api, asked, stream), _of(settings))


def model_name(value: object) -> str | None:
    """A model's name, if it may stand in clear: a file path or a sentence may not."""
    return value if isinstance(value, str) and NAME.fullmatch(value) and not value.startswith("/") else None


def _object(body: bytes) -> Mapping[str, object]:
    if len(body) > PLAIN:
        sieve = Sieve()
        sieve.feed(body)
        body = sieve.take()
    try:
        asked = json.loads(body)
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def _model_in(path: str) -> str | None:
    """Gemini and Azure name the model in the path."""
    for mark in ("/models/", "/deployments/"):
        if mark in path:
            return path.split(mark, 1)[1].split("/", maxsplit=1)[0].split(":", maxsplit=1)[0]
    return None


def _expected(api: Api, asked: Mapping[str, object], stream: bool) -> bool | None:
    if not stream or not api.asked:
        return True
    options = asked.get("stream_options")
    return True if isinstance(options, Mapping) and options.get("include_usage") is True else None


def _of(asked: Mapping[str, object]) -> Parameters:
    def first(*names: str) -> object:
        return next((asked[name] for name in names if asked.get(name) is not None), None)

    prompt = first("messages", "contents", "input")
    return Parameters(
        max_tokens=_whole(first("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")),
        min_tokens=_whole(first("min_tokens")),
        temperature=_real(first("temperature")),
        top_p=_real(first("top_p", "topP")),
        top_k=_whole(first("top_k", "topK")),
        n=_whole(first("n", "candidateCount")),
        beams=_whole(first("num_beams", "best_of")),
        length_penalty=_real(first("length_penalty")),
        stop_strings=_size(first("stop", "stop_sequences", "stopSequences")),
        messages=_size(prompt) if not isinstance(prompt, str) else None,
        tools=_size(first("tools")),
        prompt_scored=True if _scores_prompt(asked) else None,
    )


def _scores_prompt(asked: Mapping[str, object]) -> bool:
    return asked.get("prompt_logprobs") is not None or (asked.get("echo") is True and bool(asked.get("logprobs")))


def _whole(value: object) -> int | None:
    real = _real(value)
    return int(real) if real is not None and real == real // 1 else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _size(value: object) -> int | None:
    if isinstance(value, str):
        return 1
    return len(value) if isinstance(value, Sequence) else None
