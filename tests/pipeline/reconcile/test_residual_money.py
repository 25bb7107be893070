"""What a residual may cost: by the cheapest and the dearest class its price row has."""

from __future__ import annotations

from decimal import Decimal

from tests.pipeline.reconcile.conftest import PRICE_ID, World, weighed


def priced(world: World, number: int, **sides: int) -> None:
    """An attempt whose report differs and is priced by the row of the world: input 2 and 0.5, output 8 and 10."""
    world.attempt(number, input_computed=1000, output_computed=100)
    world.reading(number, **{"input_total": 1000, "output_total": 100, **sides})
    world.priced(number, price_id=PRICE_ID, amount=Decimal(1))


def test_a_residual_has_limits_where_its_classes_cost_differently(world: World) -> None:
    """1,000,003 tokens of unknown class: at 0.5 a million cached, at 2 uncached; 7 of output less, at 8 or 10."""
    world.prices()
    priced(world, 1, input_total=1_001_003, output_total=93)
    out = weighed(world)
    given, made = out.row(1), out.row(1, "output")
    assert (given["residual"], given["residual_amount"]) == (1_000_003, None)
    assert given["residual_low"] == Decimal("0.5000015")
    assert given["residual_high"] == Decimal("2.000006")
    assert given["residual_currency"] == "USD"
    assert (made["residual"], made["residual_low"], made["residual_high"]) == (
        -7,
        Decimal("-0.00007"),
        Decimal("-0.000056"),
    )


def test_findings_add_the_limits_up(world: World) -> None:
    """Two attempts of one provider and model: their sums, and no amount where there is not one price."""
    world.prices()
    priced(world, 1, input_total=1010)
    priced(world, 2, input_total=1030)
    found = weighed(world).finding("unexplained_gap")
    assert (found.difference, found.amount, found.currency) == (40, None, "USD")
    assert (found.amount_low, found.amount_high) == (Decimal("0.00002"), Decimal("0.00008"))


def test_one_price_for_all_classes_is_an_amount(world: World) -> None:
    """Where cached input costs as much as any other."""
    world.prices()
    for row in world.tables["price"]:
        if row["token_class"] == "cache_read":
            row["per_million"] = Decimal(2)
    priced(world, 1, input_total=1010)
    out = weighed(world)
    assert out.row(1)["residual_amount"] == out.row(1)["residual_low"] == Decimal("0.00002")
    assert out.finding("unexplained_gap").amount == Decimal("0.00002")


def test_without_a_price_nothing_is_said(world: World) -> None:
    """Unknown is not nothing: and one row without a price makes the sums unknown."""
    world.prices()
    priced(world, 1, input_total=1010)
    world.attempt(2, input_computed=1000, model_served="m-9", provider="other")
    world.reading(2, input_total=1010, model="m-9", provider="other")
    world.attempt(3, input_computed=1000)
    world.reading(3, input_total=1000)
    out = weighed(world)
    row = out.row(2)
    assert [row[f"residual_{name}"] for name in ("amount", "low", "high", "currency")] == [None] * 4
    assert out.row(3)["residual_low"] is None  # no residual, no cost
    findings = {f.subject["provider"]: f for f in out.result.findings if f.code == "unexplained_gap"}
    assert findings["other"].amount_low is None
    assert findings["other"].currency is None
    assert findings["openai"].amount_high == Decimal("0.00002")
