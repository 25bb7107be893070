"""Bills are compared by the grain they state; what one side does not tell is told and is no reason for a difference."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.invoice.test_causes import TIERED
from tests.pipeline.invoice.world import InMemory, World, at

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.findings import CODES, of_pages

ACME, BETA = "p_" + "a" * 32, "p_" + "b" * 32
PROJECTS = {"p_" + "1" * 32: ACME, "p_" + "2" * 32: BETA}
FIRST, SECOND = PROJECTS


def cells(world: World, *names: str) -> dict[tuple[Any, ...], tuple[Decimal, Decimal, str]]:
    """The cells in money by what they are about."""
    return {
        tuple(row[name] for name in names): (row["expected"], row["charged"], row["status"])
        for row in world.weighed().gaps
        if row["unit"] == "USD"
    }


def by_project(folder: Path, *, tenant: str = BETA) -> World:
    """1,000 tokens of acme at 2 a million, 500 of another; the bill has them on the wrong projects."""
    world = World(folder, contract=Contract("openai", projects=PROJECTS))
    world.call(at(12), input_uncached=1000, attempt={"tenant": ACME})
    world.call(at(12, 13), input_uncached=500, attempt={"tenant": tenant})
    world.line("0.001", at(12, 0), project=FIRST, tokens=500)
    world.line("0.002", at(12, 0), project=SECOND, tokens=1000)
    return world


def test_a_bill_by_project_is_compared_by_tenant(tmp_path: Path) -> None:
    found = cells(by_project(tmp_path), "tenant")
    assert found[ACME,] == (Decimal("0.002"), Decimal("0.001"), "UNEXPLAINED")
    assert found[BETA,][:2] == (Decimal("0.001"), Decimal("0.002"))


def test_a_bill_by_key_is_compared_by_the_tenant_of_the_key_which_goes_before_that_of_its_project(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, contract=Contract("openai", projects=PROJECTS, keys={"p_" + "9" * 32: BETA}))
    world.call(at(12), input_uncached=1000, attempt={"tenant": BETA})
    world.line("0.002", at(12, 0), project=FIRST, api_key="p_" + "9" * 32, tokens=1000)
    assert cells(world, "tenant") == {(BETA,): (Decimal("0.002"), Decimal("0.002"), "MATCHED")}


def test_where_calls_have_no_tenant_a_bill_by_project_is_compared_without_it_and_that_is_told(tmp_path: Path) -> None:
    world = by_project(tmp_path, tenant="unassigned")
    assert cells(world, "tenant") == {(None,): (Decimal("0.003"), Decimal("0.003"), "MATCHED")}
    (finding,) = world.weighed().findings
    assert (finding.code, finding.rows, finding.unit) == ("grouping_not_compared", 1, "attempts")
    assert (finding.subject["grouped_by"], finding.subject["model"]) == ("tenant", "m")


def test_a_project_that_the_contract_does_not_name_is_told_by_its_lines(tmp_path: Path) -> None:
    world = by_project(tmp_path)
    world.line("0", at(12, 0), project="p_" + "3" * 32, tokens=0)
    assert set(cells(world, "tenant")) == {(None,)}
    (finding,) = world.weighed().findings
    assert (finding.code, finding.rows, finding.unit) == ("grouping_not_compared", 1, "rows")
    assert "[projects]" in finding.cure


def test_a_bill_by_service_tier_meets_each_tier_and_a_call_on_the_wrong_one_is_a_cause_in_both(tmp_path: Path) -> None:
    """Batch costs 1, the rest 2 a million. 300 of the batch tokens stand on the usual line: 0.0003 too much."""
    world = World(tmp_path, prices=TIERED)
    world.call(at(12), input_uncached=1000)
    world.call(at(12, 13), input_uncached=500, batch=True)
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("0.0005", at(12, 0), tokens=500, service_tier="batch")
    assert cells(world, "service_tier") == {
        ("default",): (Decimal("0.002"), Decimal("0.002"), "MATCHED"),
        ("batch",): (Decimal("0.0005"), Decimal("0.0005"), "MATCHED"),
    }
    world.lines[1]["amount"], world.lines[1]["tokens"] = Decimal(0), 0
    world.lines[0]["amount"], world.lines[0]["tokens"] = Decimal("0.003"), 1500
    weighed = world.weighed()
    told = {row["amount"] for row in weighed.causes if row["unit"] == "USD"}
    assert (weighed.named, weighed.closes()) == ({"service_tier"}, True)
    assert told == {Decimal("0.001"), Decimal("-0.0005")}


def test_a_bill_by_modality_has_a_cell_for_sound(tmp_path: Path) -> None:
    """Of 1,000 input tokens 100 are sound at 40 a million, 900 text at 2."""
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000, input_uncached_audio=100)
    world.line("0.0018", at(12, 0), tokens=900, modality="text")
    world.line("0.005", at(12, 0), tokens=100, modality="audio")
    assert cells(world, "modality", "token_class") == {
        ("text", "input_uncached"): (Decimal("0.0018"), Decimal("0.0018"), "MATCHED"),
        ("audio", "input_uncached"): (Decimal("0.004"), Decimal("0.005"), "UNEXPLAINED"),
    }


def test_a_bill_by_modality_and_calls_that_do_not_tell_theirs(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000, input_uncached_audio=None)
    world.line("0.0018", at(12, 0), tokens=900, modality="text")
    world.line("0.005", at(12, 0), tokens=100, modality="audio")
    assert set(cells(world, "modality")) == {(None,)}
    assert "grouping_not_compared" in {finding.code for finding in world.weighed().findings}


@pytest.mark.parametrize(("region", "told"), [("eu", 2), ("somewhere", 1), (None, 1)])
def test_a_bill_by_region_is_compared_by_region_where_calls_tell_it_in_its_words(
    tmp_path: Path, region: str | None, told: int
) -> None:
    world = World(tmp_path, prices=TIERED)
    world.call(at(12), input_uncached=1000, region=region)
    world.call(at(12), input_uncached=1000, region="global")
    world.line("0.002", at(12, 0), tokens=1000, region="eu")
    world.line("0.002", at(12, 0), tokens=1000, region="global")
    assert len(cells(world, "region")) == told
    codes = [finding.code for finding in world.weighed().findings]
    assert ("grouping_not_compared" in codes) is (told == 1)


def test_of_two_models_one_may_be_compared_finer_than_the_other(tmp_path: Path) -> None:
    world = by_project(tmp_path)
    world.calls[0]["model"] = "other"
    world.call(at(12), input_uncached=10, model="other", attempt={"tenant": "unassigned"})
    world.line("0.002", at(12, 0), project=FIRST, tokens=10, model="other")
    assert {(row["model"], row["tenant"]) for row in world.weighed().gaps} == {
        ("m", ACME),
        ("m", BETA),
        ("other", None),
    }


def contradictory(folder: Path, charged: str) -> World:
    """One call at 2 a million, and one whose report has the leaves 400, 50 and 600: at most 1,050 tokens, at 40."""
    world = World(folder)
    world.call(at(12), input_uncached=1000)
    none: dict[str, Any] = dict.fromkeys(
        ("input_uncached", "cache_read", "output_visible", "input_total", "output_total", "total")
    )
    world.call(at(12, 13), **none, verdict="CONTRADICTORY", leaf_integers=[400, 50, 600], leaf_shape="a b c")
    world.line(charged, at(12, 0))
    return world


def test_contradictory_calls_are_counted_in_their_cell_and_explain_what_is_left_within_their_limits(
    tmp_path: Path,
) -> None:
    weighed = contradictory(tmp_path, "0.0025").weighed()
    (cell,) = weighed.gaps
    assert (cell["attempts"], cell["contradictory"], cell["status"]) == (1, 1, "EXPLAINED")
    (cause,) = weighed.causes
    assert (cause["cause"], cause["amount"], cause["confidence"]) == (
        "contradictory_counts",
        Decimal("0.0005"),
        "ambiguous",
    )
    (finding,) = [each for each in weighed.findings if each.code == "contradictory_not_compared"]
    assert (finding.rows, finding.amount, finding.amount_low, finding.amount_high) == (
        1,
        None,
        Decimal(0),
        Decimal("0.042"),
    )
    assert finding.evidence == ("00000000000000020000000000000002",)


@pytest.mark.parametrize("charged", ["0.0019", "0.0441"])
def test_beyond_their_limits_contradictory_calls_explain_nothing_and_are_told_all_the_same(
    tmp_path: Path, charged: str
) -> None:
    weighed = contradictory(tmp_path, charged).weighed()
    assert (weighed.statuses, weighed.named) == ({"UNEXPLAINED"}, set())
    assert "contradictory_not_compared" in {finding.code for finding in weighed.findings}


@pytest.mark.parametrize("charged", ["0.001", "0.0021", "1000000"])
def test_where_a_limit_is_not_known_contradictory_calls_explain_nothing(tmp_path: Path, charged: str) -> None:
    """A report without any number may have cost anything: neither a credit nor a million is explained by it."""
    world = contradictory(tmp_path, charged)
    world.calls[-1] |= {"leaf_integers": [None, None, None]}
    weighed = world.weighed()
    assert (weighed.statuses, weighed.named) == ({"UNEXPLAINED"}, set())
    assert "contradictory_not_compared" in {finding.code for finding in weighed.findings}


@pytest.mark.parametrize(("charged", "named"), [("6.6", {"contradictory_counts"}), ("6.7", set())])
def test_limits_of_contradictory_calls_are_in_the_currency_of_the_bill(
    tmp_path: Path, charged: str, named: set[str]
) -> None:
    """1,000 tokens cost 0.3 yen at 150 for a dollar, and the others at most 0.042 dollars: 6.3 yen."""
    world = contradictory(tmp_path, charged)
    world.contract = Contract("openai", currency="JPY")
    world.lines[0] |= {"currency": "JPY"}
    rate = {"base": "USD", "quote": "JPY", "rate_day": at(12).date(), "rate": Decimal(150)}
    world.rates.append({**rate, "segment": "b" * 64, "segment_row": 0, "revision": 0})
    assert world.weighed().named == named


def test_results_of_pages_that_contradict_themselves_are_told_by_month(tmp_path: Path) -> None:
    world = World(tmp_path)
    for day in (12, 14):
        world.page(at(day, 0), input_uncached=1000, verdict="CONTRADICTORY")
    world.page(at(15, 0), input_uncached=5)
    records = InMemory(world.rows())
    (finding,) = of_pages(records, {}, None)
    assert (finding.code, finding.rows, finding.period) == ("usage_page_contradictory", 2, "2026-04")
    assert (finding.first_day, finding.last_day) == (at(12).date(), at(14).date())
    assert list(of_pages(records, {}, ["2026-05"])) == []
    assert finding.code in CODES


def test_a_report_that_another_source_can_read_is_no_contradiction(tmp_path: Path) -> None:
    world = contradictory(tmp_path, "0.002")
    world.calls[1] |= {"attempt_hi": 1, "attempt_lo": 1, "source": "a-first-source"}
    weighed = world.weighed()
    assert (weighed.statuses, weighed.findings) == ({"MATCHED"}, [])
