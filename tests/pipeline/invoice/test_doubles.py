"""What is taken in twice counts once, is told with both files, and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.invoice.world import FIRST, World, at

from weighbridge.schemas.errors import ContractError

FOCUS, PAGES = "f" * 64, "e" * 64
MAY = datetime(2026, 5, 1, tzinfo=UTC)


def taken_in_twice(folder: Path, *, second: str = "0.004", **about: Any) -> World:
    """Two days by class in one file; the same by model alone in the other, of another importer."""
    world = World(folder)
    world.files += [_file(FOCUS, "focus"), _file(PAGES, "cost_pages")]
    for day in (12, 13):
        world.call(at(day), input_uncached=1000, output_visible=200)
        world.line("0.002", at(day, 0), tokens=1000, segment=FOCUS)
        world.line("0.002", at(day, 0), tokens=200, token_class="output_visible", sku="m-output", segment=FOCUS)
        paid = "0.004" if day == 12 else second
        world.line(paid, at(day, 0), token_class=None, sku=None, segment=PAGES, line_id=f"page-{day}", **about)
    return world


def _file(digest: str, importer: str) -> dict[str, Any]:
    return {"segment": digest, "importer": importer}


def test_a_bill_through_two_importers_counts_once_in_its_finer_grouping(tmp_path: Path) -> None:
    weighed = taken_in_twice(tmp_path).weighed()
    assert weighed.statuses == {"MATCHED"}
    assert sum(row["charged"] for row in weighed.gaps if row["unit"] == "USD") == Decimal("0.008")
    (finding,) = weighed.findings
    assert (finding.code, finding.rows, finding.segments) == ("bill_taken_in_twice", 2, (FOCUS, PAGES))
    assert finding.subject["kept"].startswith("focus/model/token_class")
    assert finding.subject["left_out"] == "cost_pages/model"


def test_days_that_only_one_of_them_tells_stay(tmp_path: Path) -> None:
    world = taken_in_twice(tmp_path)
    world.call(at(14), input_uncached=500)
    world.line("0.001", at(14, 0), token_class=None, sku=None, segment=PAGES, line_id="page-14")
    weighed = world.weighed()
    # Of the 14th the pages alone tell, without a class: the line is placed by nobody, and not lost.
    charged = sum(row["charged"] for row in weighed.gaps if row["unit"] == "USD")
    assert charged == Decimal("0.009")


@pytest.mark.parametrize(
    "about", [{"second": "0.005"}, {"currency": "EUR"}, {"account": "p_" + "7" * 32}], ids=lambda each: next(iter(each))
)
def test_bills_that_come_to_something_else_are_two(tmp_path: Path, about: dict[str, Any]) -> None:
    world = taken_in_twice(tmp_path, **about)
    if "account" in about:
        for line in world.lines:
            line.setdefault("account", "p_" + "8" * 32)
    assert "bill_taken_in_twice" not in {finding.code for finding in world.weighed().findings}


def test_a_monthly_bill_and_a_daily_one_are_the_same_where_the_month_comes_to_the_same(tmp_path: Path) -> None:
    world = taken_in_twice(tmp_path)
    world.lines = [line for line in world.lines if line["segment"] == FOCUS]
    whole = {"token_class": None, "sku": None, "segment": PAGES, "line_id": "whole"}
    world.line("0.008", FIRST, FIRST + timedelta(days=30), **whole)
    weighed = world.weighed()
    assert (weighed.statuses, [f.code for f in weighed.findings]) == ({"MATCHED"}, ["bill_taken_in_twice"])


def test_two_bills_of_nothing_are_not_the_same_bill(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.files += [_file(FOCUS, "focus"), _file(PAGES, "cost_pages")]
    world.call(at(12), input_uncached=1000)
    for segment in (FOCUS, PAGES):
        world.line("0", at(12, 0), tokens=0, segment=segment)
    assert "bill_taken_in_twice" not in {finding.code for finding in world.weighed().findings}


@pytest.mark.parametrize(("again", "codes"), [("0.002", ["line_on_two_bills"]), ("0.00123", ["invoice_unexplained"])])
def test_a_line_on_the_bills_of_two_months_counts_on_the_earlier_and_another_amount_is_another_charge(
    tmp_path: Path, again: str, codes: list[str]
) -> None:
    world = World(tmp_path)
    world.call(at(30), input_uncached=1000)
    world.line("0.002", at(30, 0), line_id="one", segment=FOCUS)
    world.line(again, at(30, 0), line_id="one", invoice_id="openai:2026-05", billing_start=MAY, segment=PAGES)
    weighed = world.weighed()
    assert [finding.code for finding in weighed.findings] == codes
    if codes == ["line_on_two_bills"]:
        (finding,) = weighed.findings
        assert (finding.subject["kept"], finding.subject["left_out"]) == ("openai:2026-04", "openai:2026-05")
        assert (finding.rows, finding.segments) == (1, (FOCUS, PAGES))
        assert (finding.amount, finding.currency) == (Decimal("0.002"), "USD")


def test_the_total_of_an_invoice_is_that_of_lines_that_count_once(tmp_path: Path) -> None:
    world = taken_in_twice(tmp_path)
    for line in world.lines:
        line["invoice_number"] = "inv-1"
    world.details.append(
        {"invoice_id": "inv-1", "detail_id": "1", "provider": "openai", "amount": Decimal("0.008"), "currency": "USD",
         "billing_start": FIRST, "billing_end": FIRST + timedelta(days=30), "segment": FOCUS, "revision": 0}
    )  # fmt: skip
    _, result = world.reconcile()
    assert [finding.code for finding in result.findings] == ["bill_taken_in_twice"]


@pytest.mark.parametrize("taken_back", ["one", "one-1"])
def test_what_a_later_bill_takes_back_and_charges_anew_is_charged(tmp_path: Path, taken_back: str) -> None:
    """0.002 in April; in May -0.002 and 0.002, in either order: 0.002 is charged, and not nothing."""
    world = World(tmp_path)
    world.call(at(30), input_uncached=1000)
    world.line("0.002", at(30, 0), line_id="one", segment=FOCUS)
    of_may: dict[str, Any] = {"invoice_id": "openai:2026-05", "billing_start": MAY, "segment": PAGES}
    world.line("-0.002", at(30, 0), line_id=taken_back, **of_may)
    world.line("0.002", at(30, 0), line_id="one-1" if taken_back == "one" else "one", **of_may)
    weighed = world.weighed()
    assert [(row["charged"], row["lines"], row["status"]) for row in weighed.gaps] == [(Decimal("0.002"), 3, "MATCHED")]
    assert weighed.findings == []


@pytest.mark.parametrize(("second", "doubled"), [("0.004", False), ("0.006", True)])
def test_two_projects_that_come_to_one_sum_are_two_until_other_sums_are_the_same(
    tmp_path: Path, second: str, doubled: bool
) -> None:
    world = taken_in_twice(tmp_path, second=second)
    for line in world.lines:
        line["project"] = "p_" + ("1" if line["segment"] == FOCUS else "2") * 32
    if second == "0.006":
        world.line("0.002", at(13, 0), tokens=1000, segment=FOCUS, project="p_" + "1" * 32)
    codes = [finding.code for finding in world.weighed().findings]
    assert codes.count("bill_taken_in_twice") == doubled


def test_a_bill_that_names_no_account_is_held_against_all_accounts_together(tmp_path: Path) -> None:
    world = taken_in_twice(tmp_path)
    for number, line in enumerate(each for each in world.lines if each["segment"] == FOCUS):
        line |= {"account": f"p_{number % 2}" + "0" * 31, "invoice_id": f"account-{number % 2}:2026-04"}
    weighed = world.weighed()
    assert sum(row["charged"] for row in weighed.gaps if row["unit"] == "USD") == Decimal("0.008")
    assert [(f.code, f.rows) for f in weighed.findings] == [("bill_taken_in_twice", 2)]


def test_a_bill_without_any_currency_is_in_no_sum_and_stops_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000)
    world.line("0.002", at(12, 0), tokens=1000, currency=None)
    weighed = world.weighed()
    assert not [row for row in weighed.gaps if row["charged"]]
    assert {finding.code for finding in weighed.findings} == {"currency_missing", "invoice_not_compared"}


@pytest.mark.parametrize("about", [{}, {"kind": None, "model": None, "token_class": None}], ids=["tokens", "unknown"])
def test_lines_that_no_column_holds_together_stop_with_what_to_do(tmp_path: Path, about: dict[str, Any]) -> None:
    world = World(tmp_path)
    for _ in range(2):
        world.line("60000000000000000000.000000000000000001", at(12, 0), **about)
    with pytest.raises(ContractError, match=r"10\*\*20 in money.*reconcile again"):
        world.weighed()


def test_the_later_bill_of_a_line_on_two_is_whole_all_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(30), input_uncached=1000)
    of_may: dict[str, Any] = {"invoice_id": "openai:2026-05", "billing_start": MAY, "segment": PAGES}
    world.line("0.002", at(30, 0), line_id="one", segment=FOCUS, invoice_number="inv-4")
    world.line("0.002", at(30, 0), line_id="one", invoice_number="inv-5", **of_may)
    for number, begin in (("inv-4", FIRST), ("inv-5", MAY)):
        about = {"invoice_id": number, "detail_id": number, "provider": "openai", "currency": "USD", "revision": 0}
        world.details.append({**about, "amount": Decimal("0.002"), "billing_start": begin, "segment": FOCUS})
    _, result = world.reconcile()
    assert [finding.code for finding in result.findings] == ["line_on_two_bills"]


@pytest.mark.parametrize("last", ["1", "9"])
def test_a_bill_fetched_twice_is_one_though_its_last_day_was_not_over_the_first_time(tmp_path: Path, last: str) -> None:
    """Three days of 2, 4 and 6 in classes; by model 2, 4 and what it was, or had become, on the last day."""
    world = World(tmp_path)
    world.files += [_file(FOCUS, "focus"), _file(PAGES, "cost_pages")]
    for day, paid, other in ((12, "2", "2"), (13, "4", "4"), (14, "6", last)):
        world.line(paid, at(day, 0), segment=FOCUS)
        world.line(other, at(day, 0), token_class=None, sku=None, segment=PAGES, line_id=f"page-{day}")
    weighed = world.weighed()
    assert sum(row["charged"] for row in weighed.gaps if row["unit"] == "USD") == Decimal(12)
    (finding,) = [each for each in weighed.findings if each.code == "bill_taken_in_twice"]
    assert (finding.rows, finding.amount, finding.currency) == (3, Decimal(last) - 6, "USD")


def test_bills_that_differ_on_a_day_before_their_last_are_two(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.files += [_file(FOCUS, "focus"), _file(PAGES, "cost_pages")]
    for day, paid, other in ((12, "2", "2"), (13, "4", "3"), (14, "6", "6")):
        world.line(paid, at(day, 0), segment=FOCUS)
        world.line(other, at(day, 0), token_class=None, sku=None, segment=PAGES, line_id=f"page-{day}")
    assert "bill_taken_in_twice" not in {finding.code for finding in world.weighed().findings}


def test_of_two_of_one_grouping_the_one_that_counts_tokens_is_in_the_sums(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.files += [_file(FOCUS, "focus"), _file(PAGES, "cost_pages")]
    world.call(at(12), input_uncached=1000)
    world.line("0.002", at(12, 0), segment=PAGES)
    world.line("0.002", at(12, 0), tokens=1000, segment=FOCUS)
    weighed = world.weighed()
    assert {row["unit"]: row["charged"] for row in weighed.gaps} == {"USD": Decimal("0.002"), "tokens": Decimal(1000)}
