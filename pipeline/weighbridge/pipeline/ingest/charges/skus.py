"""What a line charges, from the words of its SKU: kind, token class, modality, service tier.

    gpt-4o-2024-08-06, cached input            tokens, cache_read
    USE1-Claude3.5Sonnet-output-tokens-batch   tokens, output_visible, batch
    gpt-4o-0806-Inp-glbl Tokens                tokens, input_uncached
    Web search tool calls                      tool_fee

Only words that are known count. A line whose words say nothing has no kind, and is an `unmapped_line`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from weighbridge.schemas.enumerations import ChargeCategory, LineKind, Modality, TokenClass

_WORD = re.compile(r"[a-z]+|\d+[a-z]?")
_INPUT = frozenset({"input", "inp", "prompt", "inpt"})
_OUTPUT = frozenset({"output", "outp", "opt", "outpt", "completion", "completions", "generated", "response"})
_CACHE = frozenset({"cache", "cached", "cchd", "cch", "caching", "ephemeral"})
_WRITE = frozenset({"write", "writes", "wrt", "creation", "created"})
_REASONING = frozenset({"reasoning", "thinking"})
_TOKENS = frozenset({"token", "tokens", "tok", "toks"})
_MODALITIES = {
    **dict.fromkeys(("audio", "aud"), Modality.AUDIO),
    **dict.fromkeys(("image", "images", "img"), Modality.IMAGE),
    "video": Modality.VIDEO,
}
_TIERS = {"batch": "batch", "batches": "batch", "flex": "flex", "priority": "priority", "pp": "priority"}
_TOOLS = (
    ("web", "search"), ("code", "interpreter"), ("code", "execution"), ("file", "search"), ("computer", "use"),
    ("grounding",), ("tool", "calls"), ("tool", "call"), ("search", "queries"), ("search", "query"),
)  # fmt: skip
_UNIT = re.compile(r"(?:(\d[\d,]*)\s*)?(k|m|thousand|million)?\s*(?:tokens?|toks?)(?:[- ]?counts?)?", re.IGNORECASE)
_BARE_UNIT = re.compile(r"(?:(\d[\d,]*)\s*)?(k|m)?", re.IGNORECASE)
_TIMES = {None: 1, "": 1, "k": 1000, "thousand": 1000, "m": 10**6, "million": 10**6}


@dataclass(frozen=True, slots=True)
class Sku:
    """What is known of a SKU; null is unknown."""

    kind: LineKind | None = None
    token_class: TokenClass | None = None
    modality: Modality | None = None
    service_tier: str | None = None


@lru_cache(maxsize=4096)
def sku(words: str, unit: str | None, category: ChargeCategory) -> Sku:
    """What the words of a usage line, and the unit of its quantity, say that it charges."""
    found = _WORD.findall(words.lower())
    said = frozenset(found)
    if category is not ChargeCategory.USAGE:
        return Sku(_other(category, said))
    if any(all(word in said for word in tool) for tool in _TOOLS) and not said & _TOKENS:
        return Sku(LineKind.TOOL_FEE)
    token_class = _class(said)
    counted = unit is not None and _UNIT.fullmatch(unit.strip()) is not None
    is_tokens = counted or bool(said & _TOKENS)
    tier = next((_TIERS[word] for word in found if word in _TIERS), None)
    if token_class is not None and is_tokens:
        modality = next((_MODALITIES[word] for word in found if word in _MODALITIES), Modality.TEXT)
        return Sku(LineKind.TOKENS, token_class, modality, tier)
    if "storage" in said:
        return Sku(LineKind.STORAGE)
    return Sku(LineKind.TOKENS if counted else None, service_tier=tier)


def tokens_of(quantity: Decimal | None, unit: str | None, kind: LineKind | None) -> int | None:
    """The whole number of tokens a quantity is in its unit; null where it is none, or not a quantity of tokens.

    `1K` and `1000` alone are units of tokens only of a line that is known to charge tokens.
    """
    if quantity is None or unit is None or kind is not LineKind.TOKENS:
        return None
    read = _UNIT.fullmatch(unit.strip()) or _BARE_UNIT.fullmatch(unit.strip())
    if read is None or not unit.strip():
        return None
    per = int((read[1] or "1").replace(",", "")) * _TIMES[(read[2] or "").lower()]
    whole = quantity * per
    return int(whole) if whole == whole.to_integral_value() and abs(whole) < 2**63 else None


def _class(said: frozenset[str]) -> TokenClass | None:
    if said & _CACHE and not said & _OUTPUT:
        if said & _WRITE:
            if said & {"1h", "1hr"}:
                return TokenClass.CACHE_WRITE_1H
            return TokenClass.CACHE_WRITE_5M if said & {"5m", "5min"} else TokenClass.CACHE_WRITE_UNKNOWN
        return TokenClass.CACHE_READ
    if said & _OUTPUT:
        return TokenClass.REASONING if said & _REASONING else TokenClass.OUTPUT_VISIBLE
    return TokenClass.INPUT_UNCACHED if said & _INPUT else None


def _other(category: ChargeCategory, said: frozenset[str]) -> LineKind | None:
    """What a line that is no usage charges."""
    if "minimum" in said:
        return LineKind.MINIMUM
    if category is ChargeCategory.ADJUSTMENT:
        named = {LineKind.ROUNDING: {"rounding", "round"}, LineKind.DISCOUNT: {"discount", "rebate"},
                 LineKind.CREDIT: {"credit", "refund"}}  # fmt: skip
        return next((kind for kind, words in named.items() if said & words), None)
    if category is ChargeCategory.CREDIT:
        return LineKind.DISCOUNT if "discount" in said else LineKind.CREDIT
    return LineKind.TAX if category is ChargeCategory.TAX else LineKind.COMMITMENT
