"""Counts that stand in response headers: a closed list of names, everything else is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import INT64_MAX, INT64_MIN, Flattened, Leaf, Refusal

# Header name, lower case -> whether it is a count. AWS Bedrock's InvokeModel and Hugging Face's text-generation
# server; `num_tokens` is how Cohere's older endpoints name the tokens of a request.
HEADERS: Mapping[str, bool] = {
    "x-amzn-bedrock-input-token-count": True,
    "x-amzn-bedrock-output-token-count": True,
    "x-amzn-bedrock-cache-read-input-token-count": True,
    "x-amzn-bedrock-cache-write-input-token-count": True,
    "x-amzn-bedrock-invocation-latency": False,
    "x-prompt-tokens": True,
    "x-generated-tokens": True,
    "num_tokens": True,
}
HEADER_PATHS: frozenset[str] = frozenset(f"header.{name}" for name in HEADERS)
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?", re.ASCII)


def flatten_headers(headers: object) -> Flattened:
    """The counts among response headers, as leaves `header.<name>`. Values may be text or numbers."""
    out = Flattened()
    if isinstance(headers, Mapping):
        for name, value in headers.items():
            shown = str(name).lower()
            if shown in HEADERS and value is not None:
                _add(out, f"header.{shown}", value, is_count=HEADERS[shown])
    out.leaves.sort(key=lambda leaf: leaf.path)
    return out


def _add(out: Flattened, path: str, value: object, *, is_count: bool) -> None:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float | Decimal) else ""
    text = text.strip()
    if _INTEGER.fullmatch(text) and INT64_MIN <= int(text) <= INT64_MAX:
        out.leaves.append(Leaf(path, int(text), None))
    elif _INTEGER.fullmatch(text):
        out.refusals.append(Refusal(path, QuarantineReason.RANGE))
    elif is_count:
        reason = QuarantineReason.FRACTION if _DECIMAL.fullmatch(text) else QuarantineReason.TYPE
        out.refusals.append(Refusal(path, reason))
    elif _DECIMAL.fullmatch(text):
        out.leaves.append(Leaf(path, None, text))
