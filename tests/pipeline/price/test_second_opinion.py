"""Recorded usage objects, read and priced by us, against what genai-prices makes of the very same objects.

Theirs is another normaliser with another price book in another arithmetic; only the facts of the book are shared.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.ingest.reading import read_usage
from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook

STATE = date(2026, 8, 21)
APIS = {
    ("anthropic", "default"): "messages",
    ("openai", "chat"): "chat",
    ("openai", "responses"): "responses",
    ("google", "default"): "generateContent",
}
# Where the two differ, and why ours is what it is.
EXPLAINED = {
    ("gpt-oss-120b", "no_price"): "OpenAI itself sells no such model; theirs is a reseller's price",
    ("claude-sonnet-4-5-20250929", "class_unpriced"): "above 200,000 tokens of input, where the row knows no price",
    ("gpt-4o-audio-preview-2024-12-17", "priced"): "they price audio input like text",
}


def opinions(folder: Path) -> Iterator[tuple[str, str, str, dict[str, Any], Decimal]]:
    """Provider, API, model, usage object and price of each object that they price under its own provider."""
    entries = json.loads(gzip.decompress((folder / "prices" / "genai_prices_usages.json.gz").read_bytes()))
    for entry in entries:
        body, model = entry["body"], entry.get("model") or ""
        own = next((p for word, p in (("claude", "anthropic"), ("gemini", "google")) if word in model), "openai")
        for found in (each for extracted in entry["extracted"] for each in extracted["extractors"]):
            api = APIS.get((found["provider_id"], found["api_flavor"]))
            prices = [Decimal(found[key]) for key in ("input_price", "output_price") if key in found]
            if found["provider_id"] == own and api and prices:
                yield own, api, model, body.get("usage") or body["usageMetadata"], sum(prices, Decimal(0))


@pytest.mark.real
def test_two_independent_calculations_agree_to_the_last_digit(shared_real: Path) -> None:
    book = PriceBook.load()
    equal, others = 0, Counter[tuple[str, str]]()
    for provider, api, model, usage, theirs in opinions(shared_real):
        reading = read_usage({"provider": provider, "api": api, "model": model, "usage": usage})
        row = book.find(provider, model, STATE)
        ours = price_reading(
            reading.counts, reading.cells, reading.input_total, reading.output_total, reading.verdict, row
        )
        if ours.amount == theirs:
            equal += 1
        else:
            others[model, str(ours.status)] += 1
    assert set(others) == set(EXPLAINED)
    assert (equal, others.total()) == (1070, 8)
