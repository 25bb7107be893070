"""What parts of gaps cost: whole reports at what they were priced at, everything else at the price of its class."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.pipeline.reconcile.conftest import PRICE_ID, PRICES, World, weighed

from weighbridge.pipeline.reconcile.explain.cause import all_causes

D = Decimal
OTHER = "6" * 32


def costs(world: World, number: int = 1, direction: str = "input") -> dict[str, tuple[Decimal | None, str | None]]:
    """cause -> amount and currency."""
    world.prices()
    rows = weighed(world).cause_rows(number, direction)
    return {row["cause"]: (row["amount"], row["currency"]) for row in rows}


@pytest.mark.parametrize(
    ("direction", "attempt", "reading", "cause", "amount"),
    [
        # 300 tokens that the report names, at 2 a million; 300 that only the engine knows of, at 0.5.
        ("input", {"input_computed": 900}, {"input_total": 600, "cache_read": 300}, "cache_convention", "-0.0006"),
        ("input", {"input_computed": 900, "cached_local": 300}, {"input_total": 600}, "cache_convention", "-0.00015"),
        # 30 tokens that the report names, at 8; 30 that only the engine knows of, at 10.
        ("output", {"output_computed": 80}, {"output_total": 50, "reasoning": 30}, "reasoning_convention", "-0.00024"),
        (
            "output",
            {"output_computed": 80, "reasoning_computed": 30},
            {"output_total": 50},
            "reasoning_convention",
            "-0.0003",
        ),
        (
            "output",
            {"output_computed": 80, "withheld_end_token": 1},
            {"output_total": 79},
            "end_token_convention",
            "-0.000008",
        ),
    ],
)
def test_tokens_cost_the_price_of_their_class(
    direction: str, attempt: dict[str, Any], reading: dict[str, Any], cause: str, amount: str, world: World
) -> None:
    """Exact decimals, worked out by hand."""
    world.attempt(1, **attempt)
    world.reading(1, **reading)
    world.priced(1)
    assert costs(world, 1, direction) == {cause: (D(amount), "USD")}


def test_a_repetition_costs_what_that_report_was_priced_at(world: World) -> None:
    """Its cached tokens were cheap, and stay cheap: 400 at 2 and 600 at 0.5, not 1000 at 2."""
    world.attempt(1, input_computed=1000)
    for report in (0, 1):
        world.reading(1, report=report, input_total=1000, cache_read=600)
        classes = {"amount_input_uncached": D("0.0008"), "amount_cache_read": D("0.0003")}
        writes = dict.fromkeys(("amount_cache_write_5m", "amount_cache_write_1h", "amount_cache_write_unknown"), D(0))
        world.priced(1, report=report, amount=D("0.0011"), **classes, **writes)
    assert costs(world) == {"duplicate_report": (D("0.0011"), "USD")}


def test_a_direction_without_a_split_costs_what_the_other_one_leaves(world: World) -> None:
    """Output was priced as a whole, input by class: 0.0031 less 0.0011 is 0.002."""
    for report in (0, 1):
        world.reading(1, report=report, input_total=1000, output_total=250)
        inputs = ("cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")
        classes = {f"amount_{name}": D(0) for name in inputs} | {"amount_input_uncached": D("0.0011")}
        world.priced(1, report=report, amount=D("0.0031"), **classes)
    world.lost(1)
    assert costs(world, 1, "input")["duplicate_report"] == (D("0.0011"), "USD")
    assert costs(world, 1, "output")["duplicate_report"] == (D("0.002"), "USD")
    assert costs(world, 1, "output")["capture_gap"] == (D("0.002"), "USD")


def test_a_missing_report_costs_what_its_model_costs_that_day(world: World) -> None:
    """No reading, so no price row of its own; the one that prices the same model elsewhere in the lake is taken."""
    world.attempt(1, input_computed=1000, output_computed=100)
    world.attempt(2, input_computed=10)
    world.reading(2, input_total=10)
    world.priced(2)
    assert costs(world, 1, "input") == {"usage_missing": (D("-0.002"), "USD")}
    assert costs(world, 1, "output") == {"usage_missing": (D("-0.0008"), "USD")}


@pytest.mark.parametrize(
    "other",
    [
        {"model": "m-2"},  # it prices another model
        {"provider": "azure"},  # another provider's
        {"valid_to": "2026-03-02"},  # it ended before that day
    ],
)
def test_a_missing_report_without_a_price_costs_nobody_knows_what(other: dict[str, Any], world: World) -> None:
    """Unknown is not zero."""
    world.attempt(1, input_computed=1000)
    world.attempt(2, input_computed=10)
    world.reading(2, input_total=10)
    world.priced(2)
    world.prices()
    for row in world.tables["price"]:
        row.update({name: world.day_of(value) if name == "valid_to" else value for name, value in other.items()})
    (row,) = weighed(world).cause_rows(1)
    assert (row["cause"], row["amount"], row["currency"]) == ("usage_missing", None, None)


def test_two_rows_that_fit_equally_well_leave_the_price_open(world: World) -> None:
    """A book that was changed between two nights: both rows priced reports of this model."""
    world.attempt(1, input_computed=1000)
    for number, price_id in ((2, PRICE_ID), (3, OTHER)):
        world.attempt(number, input_computed=10)
        world.reading(number, input_total=10)
        world.priced(number, price_id=price_id)
    world.prices()
    world.add("price", *({**row, "price_id": OTHER} for row in list(world.tables["price"])))
    (row,) = weighed(world).cause_rows(1)
    assert (row["amount"], row["currency"]) == (None, None)


@pytest.mark.parametrize(("limit", "amount"), [(900, D("-0.0006")), (899, None)])
def test_a_price_holds_up_to_its_length_of_input_only(limit: int, amount: Decimal | None, world: World) -> None:
    """Beyond it the row knows no price."""
    world.attempt(1, input_computed=900)
    world.reading(1, input_total=600, cache_read=300)
    world.priced(1)
    world.prices()
    for row in world.tables["price"]:
        row["up_to_input_tokens"] = limit
    (found,) = weighed(world).cause_rows(1)
    assert found["amount"] == amount


def test_a_class_without_a_price_has_no_amount(world: World) -> None:
    """The row prices input and output, but no reads from the cache."""
    world.attempt(1, input_computed=900, cached_local=300)
    world.reading(1, input_total=600)
    world.priced(1)
    world.prices()
    world.tables["price"] = [row for row in world.tables["price"] if row["token_class"] != "cache_read"]
    assert len(world.tables["price"]) == len(PRICES) - 1
    (row,) = weighed(world).cause_rows(1)
    assert (row["tokens"], row["amount"], row["currency"]) == (-300, None, None)


def test_a_finding_whose_rows_are_not_all_priced_has_no_amount(world: World) -> None:
    """A sum that leaves some out would say too little."""
    for number in (1, 2):
        world.attempt(number, input_computed=900)
        world.reading(number, input_total=600, cache_read=300)
    world.priced(1)
    world.prices()
    finding = weighed(world).finding("cache_convention")
    assert (finding.rows, finding.difference, finding.amount, finding.currency) == (2, -600, D("-0.0012"), "USD")
    world.attempt(3, input_computed=900, model_served="m-9")
    world.reading(3, input_total=600, cache_read=300, model="m-9")
    amounts = {f.subject["model"]: f.amount for f in weighed(world).result.findings if f.code == "cache_convention"}
    assert amounts == {"m-1": D("-0.0012"), "m-9": None}


def test_money_of_two_currencies_is_not_added(world: World) -> None:
    """Both amounts stand in gap_cause; the finding has none."""
    for number, price_id in ((1, PRICE_ID), (2, OTHER)):
        world.attempt(number, input_computed=900)
        world.reading(number, input_total=600, cache_read=300)
        world.priced(number, price_id=price_id)
    world.prices()
    world.add("price", *({**row, "price_id": OTHER, "currency": "EUR"} for row in list(world.tables["price"])))
    out = weighed(world)
    assert [out.cause_rows(number)[0]["currency"] for number in (1, 2)] == ["USD", "EUR"]
    assert (out.finding("cache_convention").amount, out.finding("cache_convention").currency) == (None, None)


@pytest.mark.parametrize(
    ("attempt", "reading", "cause", "costs_in_all"),
    [
        (
            {"input_recounted": 90, "recount_template": 10, "recount_has_template": False},
            {"input_total": 100},
            "template_not_applied",
            "0.00002",
        ),
        ({"output_recounted": 50}, {"output_total": 80, "reasoning": 30}, "reasoning_not_delivered", "0.0003"),
    ],
)
def test_a_report_that_is_right_puts_no_money_in_question(
    attempt: dict[str, Any], reading: dict[str, Any], cause: str, costs_in_all: str, world: World
) -> None:
    """What the tokens cost stands in gap_cause; the finding says that nothing of it was charged too much."""
    world.attempt(1, **attempt)
    world.reading(1, **reading)
    world.priced(1)
    world.prices()
    out = weighed(world)
    (row,) = (row for direction in ("input", "output") for row in out.cause_rows(1, direction))
    assert (row["cause"], row["amount"]) == (cause, D(costs_in_all))
    assert (out.finding(cause).amount, out.finding(cause).currency) == (D(0), "USD")


def test_money_is_in_question_where_the_report_is() -> None:
    assert {cause.code for cause in all_causes() if cause.at_stake} == {
        "usage_missing",
        "duplicate_report",
        "cache_convention",
        "reasoning_convention",
        "padding_counted",
        "over_cap",
        "tokenizer_version",
        "history_duplicated",
        "stream_merge",
        "iterations_left_out",
        "draft_billed",
    }


@pytest.mark.parametrize(
    ("rule", "tier", "amount"),
    [
        # 300 tokens from the cache that the report names, counted beside the 600: at 2 a million, above 500 at 4.
        ("cliff", 0, D("-0.0006")),
        ("cliff", 500, D("-0.0012")),
        ("cliff", None, None),  # in which tier the report lies is not known
        ("marginal", 0, D("-0.0006")),
        ("marginal", 500, None),  # of the tokens in question, nobody knows which lie beyond
    ],
)
def test_tokens_cost_the_price_of_the_tier_their_report_lies_in(
    rule: str, tier: int | None, amount: Decimal | None, world: World
) -> None:
    world.attempt(1, input_computed=900)
    world.reading(1, input_total=600, cache_read=300)
    world.priced(1, price_tier=tier)
    world.prices()
    above = {"above_tokens": 500, "rule": rule, "counted": "input_uncached+cache_read"}
    cell = {"token_class": "input_uncached", "modality": "text", "per_million": D(4)}
    world.add("price_tier", {"price_id": PRICE_ID, **above, **cell})
    (found,) = weighed(world).cause_rows(1)
    assert (found["amount"], found["currency"]) == (amount, None if amount is None else "USD")
