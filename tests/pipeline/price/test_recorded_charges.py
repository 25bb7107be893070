"""Prices against recorded answers: a charge the provider stated itself, and the models that were really used."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

pytestmark = pytest.mark.real

RECORDED_ON = date(2026, 2, 11)
# Names in recorded answers that are no model with a price: misspelt on purpose, or a deployment of the recorder's.
NO_MODEL = {
    "claude-does-not-exist",
    "claude-sonet-4-5",
    "gemini-3.6-flahs",
    "gpt-5.2-proo",
    "non-existent-embedding-model",
    "nonexistent",
    "nonexistent-model",
    "openllmetry-testing",
    "this-model-does-not-exist",
}


def records(folder: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "api_responses_all.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_xai_answers_cost_what_they_say(shared_real: Path) -> None:
    """cost_in_usd_ticks: 10**10 of them are a dollar. Reasoning stands outside completion_tokens here."""
    row = PriceBook.load().find("xai", "grok-3-mini", RECORDED_ON)
    charged = 0
    for record in records(shared_real):
        usage = record["usage"]
        if record["response_model"] != "grok-3-mini" or "cost_in_usd_ticks" not in (usage or {}):
            continue
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        counts = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | {
            "input_uncached": usage["prompt_tokens"] - cached,
            "cache_read": cached,
            "output_visible": usage["completion_tokens"],
            "reasoning": usage["completion_tokens_details"]["reasoning_tokens"],
        }
        cells = {cell.name: 0 for cell in CROSSED_CELLS}
        output = counts["output_visible"] + counts["reasoning"]
        priced = price_reading(counts, cells, usage["prompt_tokens"], output, Verdict.PROVED, row)
        assert priced.amount == Decimal(usage["cost_in_usd_ticks"]).scaleb(-10)
        charged += 1
    assert charged == 8


def test_every_model_of_the_recorded_answers_has_a_row(shared_real: Path) -> None:
    book = PriceBook.load()
    named = {
        (record["provider"], record["response_model"] or record["model"])
        for record in records(shared_real)
        if record["provider"] in {"openai", "azure", "anthropic", "google"}
    }
    priced = {(row.provider, row.model) for row in book.rows}
    assert {model for provider, model in named - priced if model} <= NO_MODEL
