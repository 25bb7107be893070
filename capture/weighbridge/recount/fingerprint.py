"""Fingerprints: SHA-256 of a canonical form, the same in every process and for every way of loading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

# What decides how many tokens a text has. Padding and truncation are a caller's momentary settings.
_PARTS: Final = ("normalizer", "pre_tokenizer", "post_processor", "added_tokens")


def canonical(content: object) -> str:
    """SHA-256 of JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def template_fingerprint(template: str) -> str:
    """The fingerprint of a chat template: SHA-256 of its text."""
    return hashlib.sha256(template.encode()).hexdigest()


def tokenizer_json_fingerprint(content: Mapping[str, Any]) -> str:
    """The fingerprint of a tokenizer in the `tokenizers` JSON form."""
    model = dict(content["model"])
    vocabulary = model.pop("vocab", None)
    if isinstance(vocabulary, Mapping):
        vocabulary = sorted(([number, token] for token, number in vocabulary.items()), key=lambda pair: pair[0])
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model.pop("merges", None) or ()]
    return canonical(
        {"model": model, "vocab": vocabulary, "merges": merges, **{part: content.get(part) for part in _PARTS}}
    )


def ranks_fingerprint(ranks: Mapping[bytes, int], pattern: str, special: Mapping[str, int]) -> str:
    """The fingerprint of a byte-pair vocabulary in tiktoken's form."""
    pairs = sorted((rank, token.hex()) for token, rank in ranks.items())
    return canonical({"ranks": pairs, "pattern": pattern, "special": dict(special)})
