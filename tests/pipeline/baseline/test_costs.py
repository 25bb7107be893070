"""What a token of a class that nobody used would have cost: the price of the tier that the day's reports lie in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.baseline.memory import DAY, Memory, key

from weighbridge.pipeline.baseline.costs import SeriesCost, series_costs
from weighbridge.schemas.lattice import REPORTED_CLASSES

ID = "5" * 32
USED = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | {"input_uncached": 100}


def cost(rule: str, *tiers: int | None, tiered: bool = True) -> SeriesCost:
    """Of one attempt for each of these tiers: 100 uncached tokens in, at 2 a million, above 500 at 4."""
    memory = Memory()
    row: dict[str, Any] = {"price_id": ID, "provider": "openai", "match": "equals", "model": "m-1"}
    for token_class, price in (("input_uncached", 2), ("cache_read", 1), ("output_visible", 8)):
        cell = {"token_class": token_class, "modality": "text", "per_million": Decimal(price)}
        memory.add("price", {**row, **cell, "currency": "USD", "origin": "made up"})
        if tiered and token_class != "output_visible":
            above = {"above_tokens": 500, "rule": rule, "counted": "input_uncached+cache_read"}
            memory.add("price_tier", {"price_id": ID, **above, **cell, "per_million": Decimal(2 * price)})
    for number, tier in enumerate(tiers, 1):
        about = {"day": DAY, "source": "agent", "child": 0, "report": 0, "revision": 0, "basis": "reported"}
        amounts = {f"amount_{name}": Decimal(0) for name in map(str, REPORTED_CLASSES)}
        amounts["amount_input_uncached"] = Decimal("0.0002") * (2 if tier else 1)
        money = {"amount": amounts["amount_input_uncached"], "currency": "USD", "status": "priced"}
        memory.add("priced_amount", {**key(number), **about, "price_id": ID, "price_tier": tier, **amounts, **money})
    attempts = pl.DataFrame([{**key(n), "series": 1, "retry": False, **USED} for n in range(1, len(tiers) + 1)])
    return series_costs(memory, attempts, DAY)[1]


@pytest.mark.parametrize(
    ("rule", "tiers", "read", "visible"),
    [
        ("cliff", (0,), "0.000001", "0.000008"),
        ("cliff", (500,), "0.000002", "0.000008"),
        ("cliff", (500, 500), "0.000002", "0.000008"),
        ("cliff", (0, 500), None, None),  # it hangs on the report
        ("cliff", (None,), None, None),  # in which tier it lies is not known
        ("marginal", (0,), "0.000001", "0.000008"),
        ("marginal", (500,), None, None),  # two prices hold in one report
    ],
)
def test_a_class_nobody_used_costs_what_it_does_in_the_tier_of_the_day(
    rule: str, tiers: tuple[int | None, ...], read: str | None, visible: str | None
) -> None:
    found = cost(rule, *tiers).token
    assert [found.get(name) for name in ("cache_read", "output_visible")] == [
        None if each is None else Decimal(each) for each in (read, visible)
    ]


def test_a_class_that_was_used_costs_what_was_paid_for_it_whatever_the_tiers() -> None:
    """0.0002 and 0.0004 for 200 tokens."""
    assert cost("cliff", 0, 500).token["input_uncached"] == Decimal("0.000003")


def test_a_row_without_tiers_costs_what_it_says() -> None:
    assert cost("cliff", None, None, tiered=False).token["cache_read"] == Decimal("0.000001")
