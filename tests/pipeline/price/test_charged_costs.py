"""What recorded answers say they were charged, from the prices of the shipped book, to the last digit.

docs/charged-costs.md names each one that is not reproduced, with the same reasons.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.pipeline.price.amount import price_reading
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.terms import Served

FEES, KEY = "a fee that the answer does not itemise", "the user's own key: the router charges nothing"
UPSTREAM = "a model of open weights: the price is that of the upstream that was chosen, and no source dates it"
SEARCH = "a search that the answer counts and no source states the price of"
# Answers that are not reproduced, and why.
NAMED: dict[str, str] = {
    "r_1264d4112f44f28d": FEES,
    "r_b0bfbe02178e3a45": FEES,
    "r_12fd6fb57561e8d4": FEES,
    "r_3b46b96cc1828ece": SEARCH,
    "r_57847606f019a725": SEARCH,
    "r_7ba1fd2bfc26a3e8": KEY,
    "r_e56b6031884356be": KEY,
    "r_1a8836ab31f6d61a": UPSTREAM,
    "r_b56c6b07a171c048": UPSTREAM,
    "r_f4e38741c4f48dfa": UPSTREAM,
    "r_71d8b39c3f6ccb98": UPSTREAM,
    "r_e2ca47666cf24118": "the counts contradict each other, so nothing is priced",
    "r_219c6af3f41e8372": "made up for a test: its ticks are 123456",
    "r_b883e9e2114d577b": "made up for a test: its ticks are 123456",
}
# Where an answer names no day, the one it was recorded on is told by its fixture alone; prices of such are undated.
UNDATED = date(2026, 2, 11)


def charged(folder: Path) -> Iterator[tuple[str, UsageReading, date]]:
    with gzip.open(folder / "api_responses_all.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            reading = read_usage(record)
            if reading.told.charged is not None:
                yield record["id"], reading, day_of(record["response"])


def day_of(response: Any) -> date:
    for event in response if isinstance(response, list) else [response]:
        inner = event.get("response") if isinstance(event, Mapping) else None
        for place in (event, inner):
            told = (place.get("created") or place.get("created_at")) if isinstance(place, Mapping) else None
            if told:
                return datetime.fromtimestamp(int(told), UTC).date()
    return UNDATED


def provider_of(reading: UsageReading) -> str:
    """Ticks are xAI's unit, also behind a client that names no provider."""
    ticks = any(leaf.path.endswith("cost_in_usd_ticks") for leaf in reading.leaves)
    return "xai" if ticks else reading.provider


@pytest.mark.real
def test_every_charge_is_reproduced_or_named_with_its_reason(shared_real: Path) -> None:
    book = PriceBook.load()
    exact: set[str] = set()
    others: set[str] = set()
    for name, reading, day in charged(shared_real):
        told = reading.told
        served = Served(told.service_tier, told.batch, told.region)
        possible = book.possible(provider_of(reading), reading.model, day, served)
        row = possible[0] if len(possible) == 1 else None
        used = {str(kind): count for kind, count in (told.fees or {}).items()}
        totals = (reading.input_total, reading.output_total)
        priced = price_reading(reading.counts, reading.cells, *totals, reading.verdict, row, used)
        (exact if priced.amount == told.charged else others).add(name)
    assert others == set(NAMED)
    assert (len(exact), len(others)) == (49, 14)
    assert Counter(NAMED.values())[UPSTREAM] == 4


def test_the_documentation_names_the_same_answers(request: pytest.FixtureRequest) -> None:
    page = (request.config.rootpath / "docs" / "charged-costs.md").read_text(encoding="utf-8")
    lines = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `r_")}
    assert set(lines) == set(NAMED)
    assert all(NAMED[name] in line for name, line in lines.items())
    assert "49 of 63" in page
