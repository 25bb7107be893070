"""Generation parameters of a request: numbers and how many, never a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

from weighbridge.pipeline.ingest.terms import NO_TIER, TIER_LEAVES, TIERS
from weighbridge.schemas.leaves import ENUMERATED

_INT32_MAX = 2**31 - 1
# Where a request keeps its parameters: at its root, or in one of these objects.
_HOLDERS = ("generationConfig", "generation_config", "inferenceConfig", "textGenerationConfig", "options", "parameters")
_INTEGERS: Mapping[str, tuple[str, ...]] = {
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "maxTokens",
        "max_new_tokens",
        "max_tokens_to_sample",
        "maxTokenCount",
        "num_predict",
    ),
    "min_tokens": ("min_tokens", "min_new_tokens"),
    "top_k": ("top_k", "topK", "k"),
    "n": ("n", "candidateCount", "num_return_sequences", "num_generations"),
    "beams": ("num_beams", "best_of_beams"),
}
_REALS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP", "p"),
    "length_penalty": ("length_penalty",),
}
_LENGTHS: Mapping[str, tuple[str, ...]] = {
    "stop_strings": ("stop", "stop_sequences", "stopSequences"),
    "messages": ("messages", "contents", "input"),
    "tools": ("tools",),
}


def parameters(request: object) -> dict[str, int | float]:
    """The parameter columns of `attempt` that a request states; what it does not state is left out."""
    if not isinstance(request, dict):
        return {}
    places = [request, *(request[name] for name in _HOLDERS if isinstance(request.get(name), dict))]
    found: dict[str, int | float] = {}
    for column in {_COLUMN_OF[name] for place in places for name in place if name in _COLUMN_OF}:
        names, read = _COLUMNS[column]
        number = _first(places, names, read)
        if number is not None:
            found[column] = number
    return found


def tier_requested(request: object) -> str | None:
    """The service tier a request asks for, in the words of the table `reading`; null where it names none."""
    for name in TIER_LEAVES:
        told = request.get(name) if isinstance(request, Mapping) else None
        told = told.get("type") if isinstance(told, Mapping) else told
        if isinstance(told, str) and told in ENUMERATED.get(name, ()) and told not in NO_TIER:
            return TIERS.get(told, told)
    return None


def asks_for_usage(request: object) -> bool:
    """Whether a streamed request of the chat API asks for a closing usage report."""
    options = request.get("stream_options") if isinstance(request, Mapping) else None
    return isinstance(options, Mapping) and options.get("include_usage") is True


def _first(
    places: list[dict[str, object]], names: tuple[str, ...], read: Callable[[object], int | float | None]
) -> int | float | None:
    """The first value under one of these names that reads as a number."""
    for place in places:
        for name in names:
            number = read(place[name]) if name in place else None
            if number is not None:
                return number
    return None


def _integer(value: object) -> int | None:
    """A whole number that fits its column; anything else is unknown."""
    number = _real(value)
    whole = number is not None and number == int(number) and 0 <= number <= _INT32_MAX
    return int(number) if whole and number is not None else None


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _length(value: object) -> int | None:
    if isinstance(value, str):
        return 1
    return len(value) if isinstance(value, list) else None


# Column -> the names it has in requests, the first of them first, and how its value is read.
_COLUMNS: Mapping[str, tuple[tuple[str, ...], Callable[[object], int | float | None]]] = {
    **{column: (names, _integer) for column, names in _INTEGERS.items()},
    **{column: (names, _real) for column, names in _REALS.items()},
    **{column: (names, _length) for column, names in _LENGTHS.items()},
}
_COLUMN_OF: Mapping[str, str] = {name: column for column, (names, _) in _COLUMNS.items() for name in names}
