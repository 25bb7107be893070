"""Costs that logs report: what no price of the book comes near is a finding, as `price.plausible` judges one alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import READING, World, key, weighed

from weighbridge.pipeline.ingest.gateway_paths import HELICONE_BILLIONTHS, LANGFUSE_COSTS, LITELLM_SPEND
from weighbridge.pipeline.lake import small
from weighbridge.pipeline.price.plausible import implausible
from weighbridge.pipeline.reconcile.found.reported_costs import CHARGES, implausible_costs
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month

# The dearest price of the world's book is 10 USD a million.
DEAREST = Decimal(10)
NAMES = ("day", "source", "child", "report", "provider", "api", "model", "ended", "segment", "segment_row", "revision")


def told(world: World, number: int, cost: str | int | None, path: str = LITELLM_SPEND, **columns: Any) -> None:
    """A report of 100 and 10 tokens with its cost among its leaves."""
    about = {name: READING[name] for name in NAMES} | {name: columns[name] for name in columns if name in NAMES}
    whole = isinstance(cost, int)
    read = {name: value for name, value in columns.items() if name != "part"}
    world.reading(number, **{"input_total": 100, "output_total": 10, "total": 110, **read})
    identity = {
        "attempt_hi": key(number).hi,
        "attempt_lo": key(number).lo,
        "part": columns.get("part", 0),
        "part_kind": "whole",
    }
    leaves = {
        "leaf_shape": f"{path} usage.prompt_tokens",
        "leaf_integers": [cost if whole else None, 100],
        "leaf_texts": [None if whole else cost, None],
    }
    world.add("usage_report", {**about, **identity, **leaves})


def found(world: World) -> list[tuple[str, Decimal]]:
    month = Month(world.lake(), "2026-03", Prices({}))
    rows = implausible_costs(month, DEAREST).sort("attempt_lo")
    return [(row["source"], row["cost"]) for row in rows.iter_rows(named=True)]


def test_a_cost_in_cents_is_a_finding_with_its_evidence_and_cure(world: World) -> None:
    """110 tokens cost 0.0011 at the most."""
    told(world, 1, "0.0011")
    told(world, 2, "0.11")
    world.prices()
    finding = weighed(world).finding("implausible_price")
    assert (finding.rows, finding.unit, finding.severity, finding.confidence) == (1, "reports", "warning", "probable")
    assert dict(finding.subject) == {"source": "agent", "provider": "openai", "model": "m-1"}
    assert finding.evidence == (key(2).to_hex(),)
    assert "10 USD a million" in finding.cure


def test_without_a_price_nothing_is_said(world: World) -> None:
    told(world, 1, "1000000")
    assert "implausible_price" not in weighed(world).codes


@pytest.mark.parametrize("cost", ["0", "0.001099999999999999", "0.0011", "0.001100000000000001", "-0.000001", "5"])
def test_a_month_judges_as_one_record_is_judged(world: World, cost: str) -> None:
    told(world, 1, cost)
    assert bool(found(world)) is implausible(Decimal(cost), 110, DEAREST)


@pytest.mark.parametrize(
    ("path", "plain", "odd"),
    [
        (HELICONE_BILLIONTHS, 1_100_000, 1_100_001),
        ("usage.cost_in_usd_ticks", 11_000_000, 11_000_001),
        ("usage.cost", "0.0011", "0.0012"),
        (LANGFUSE_COSTS["input"], "0.0011", "0.0012"),
    ],
)
def test_a_charge_is_taken_in_its_own_unit(world: World, path: str, plain: str | int, odd: str | int) -> None:
    told(world, 1, plain, path)
    assert found(world) == []
    told(world, 2, odd, path)
    assert len(found(world)) == 1
    assert path in {name for names, _ in CHARGES for name in names}


def test_of_an_answer_of_several_calls_all_tokens_count(world: World) -> None:
    """Its own row has none left; the 110 are in its child."""
    told(world, 1, "0.0011", input_total=0, output_total=0, total=0)
    world.reading(1, child=1, input_total=100, output_total=10, total=110)
    assert found(world) == []


def test_the_last_revision_counts_and_unknown_totals_say_nothing(world: World) -> None:
    told(world, 1, "5")
    told(world, 1, "0.0011", revision=1)
    told(world, 2, "5", total=None)
    told(world, 3, None)
    assert found(world) == []


@pytest.mark.parametrize("path", [LITELLM_SPEND, "usage.somewhere"], ids=["no cost", "another shape"])
def test_a_later_revision_that_names_no_cost_takes_the_earlier_one_away(path: str, world: World) -> None:
    """110 tokens can have cost 0.0011; that they once were more is no reason to judge that cost by them."""
    told(world, 1, "0.0111", input_total=1_100, total=1_110)
    told(world, 1, None, path, revision=1)
    assert found(world) == []


def test_a_part_that_was_not_revised_keeps_its_cost(world: World) -> None:
    """What has not changed is not stored again."""
    told(world, 1, "5", part=1)
    told(world, 1, None, revision=1)
    assert found(world) == [("agent", Decimal(5))]


def test_costs_of_the_calls_of_an_answer_are_added_up_as_their_tokens_are(world: World) -> None:
    """220 tokens cost 0.0022 at the most."""
    for number, costs in enumerate((("0.0021", "0.0001"), ("0.0022", "0.0001"), ("0.0001", "0.0022"), ("2", None))):
        for child, cost in enumerate(costs):
            told(world, number, cost, child=child)
    assert found(world) == [("agent", Decimal(cost)) for cost in ("0.0023", "0.0023", "2")]


def test_costs_beyond_all_measure_are_found_and_stop_nothing(world: World) -> None:
    for child in range(3):
        told(world, 1, "99999999999999999999", child=child)
    told(world, 2, "5")
    assert [source for source, _ in found(world)] == ["agent", "agent"]


def test_leaves_are_never_held_for_a_whole_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each report one or two of its leaves are needed: no frame in memory has the lists."""
    told(world, 1, "5")
    monkeypatch.setattr(small, "ROWS", 0)
    month = Month(world.lake(), "2026-03", Prices({}))
    held: list[pl.Schema] = []
    collect = pl.LazyFrame.collect

    def watched(frame: pl.LazyFrame, **options: Any) -> pl.DataFrame:
        rows: pl.DataFrame = collect(frame, **options)
        held.append(rows.schema)
        return rows

    monkeypatch.setattr(pl.LazyFrame, "collect", watched)
    assert implausible_costs(month, DEAREST).height == 1
    assert not [name for schema in held for name, kind in schema.items() if kind.is_nested()]
    assert any("cost" in schema for schema in held)
