"""How many of an answer's tokens are audio, image or video, by its own lists; nothing of the product is used.

    Google   promptTokensDetails [{"modality": "AUDIO", "tokenCount": 113}], and the same of cache, answer and tools
    OpenAI   prompt_tokens_details {"audio_tokens": 44, "cached_tokens_details": {"audio_tokens": 0}}

What was cached is taken out of what came in. Where it is not said of which kind the cached tokens were, it cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.pipeline.ingest.second_reader.meaning import Meaning

Usage = dict[str, Any]
Tokens = dict[str, int]
KINDS = ("audio", "image", "video")
# Old answers of Vertex AI number them.
_NUMBERED = {2: "image", 3: "video", 4: "audio"}
_IN = ("promptTokensDetails", "promptTokenDetails", "toolUsePromptTokensDetails")
_IN_TOTALS = ("input_tokens_by_modality", "tool_use_tokens_by_modality")
_CACHED = ("cacheTokensDetails", "cached_tokens_by_modality")
_OUT = ("candidatesTokensDetails", "responseTokensDetails", "output_tokens_by_modality")
_IN_OBJECTS = ("prompt_tokens_details", "prompt_token_details", "input_tokens_details", "input_token_details")
_OUT_OBJECTS = ("completion_tokens_details", "completion_token_details", "output_tokens_details")


def expected(usage: Usage, meaning: Meaning) -> dict[str, int | None]:
    """The cells that the answer states, or that follow from what it states; null where they cannot be told apart.

    Args:
        usage: what the answer says.
        meaning: what its counts mean.
    """
    into, cached, out = (
        _summed(usage, (*_IN, *_IN_TOTALS), _IN_OBJECTS),
        _cached(usage),
        _summed(usage, _OUT, _OUT_OBJECTS),
    )
    if "image_tokens" in usage:  # Cohere's billed units
        into["image"] = into.get("image", 0) + int(usage["image_tokens"])
    cells: dict[str, int | None] = {f"output_visible_{kind}": count for kind, count in out.items()}
    for kind, whole in into.items():
        reads = cached.get(kind, 0 if cached or meaning.read == 0 or not whole else None)
        fresh = None if reads is None else whole - reads
        if meaning.fresh == 0:
            fresh, reads = 0, whole if reads is None and not meaning.written else reads
        cells[f"input_uncached_{kind}"], cells[f"cache_read_{kind}"] = fresh, reads
    return cells


def _summed(usage: Usage, lists: tuple[str, ...], objects: tuple[str, ...]) -> Tokens:
    found: Tokens = {}
    for name in lists:
        for kind, count in _rows(usage.get(name)):
            found[kind] = found.get(kind, 0) + count
    for name in objects:
        for kind in KINDS:
            told = (usage.get(name) or {}).get(f"{kind}_tokens")
            if told is not None:
                found[kind] = int(told)
    return found


def _cached(usage: Usage) -> Tokens:
    found = _summed(usage, _CACHED, ())
    for name in _IN_OBJECTS:
        details = (usage.get(name) or {}).get("cached_tokens_details") or {}
        found |= {kind: int(details[f"{kind}_tokens"]) for kind in KINDS if details.get(f"{kind}_tokens") is not None}
    return found


def _rows(rows: object) -> Iterator[tuple[str, int]]:
    for row in rows if isinstance(rows, list) else []:
        told = row.get("modality")
        kind = _NUMBERED.get(told) if isinstance(told, int) else str(told).lower()
        if kind in KINDS:
            yield str(kind), int(row.get("tokenCount", row.get("tokens", 0)))
