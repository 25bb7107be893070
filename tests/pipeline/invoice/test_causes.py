"""A closed toy world: every cause alone and in pairs comes out by name, and nothing is left over, in any row order."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis.strategies import permutations
from tests.pipeline.invoice.bills import WAYS, agreed, bill, price_list, rates, traffic
from tests.pipeline.invoice.world import FILE, FIRST, LATER, InMemory, World, at, causes, closes, gaps
from tests.sampling import examples

from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.contract import Contract, Rounding
from weighbridge.pipeline.invoice.findings import of_details
from weighbridge.schemas.enumerations import LineKind
from weighbridge.schemas.errors import ContractError

PAIRS = [pair for pair in combinations(WAYS, 2) if pair != ("period_boundary", "late_data")]
SETTLED = {"MATCHED", "EXPLAINED"}


@cache
def _ours() -> dict[str, pl.DataFrame]:
    """The calls of the toy world, priced once: bills are made of the same ones in every way."""
    world = World(Path(), prices=price_list())
    traffic(world)
    return world.called()


def billed(folder: Path, ways: Collection[str]) -> World:
    world = World(folder, prices=price_list(), contract=agreed(ways), ours=_ours())
    traffic(world)
    rates(world)
    bill(world, ways)
    return world


def test_the_causes_of_the_second_gap_are_these_in_this_order() -> None:
    assert [cause.code for cause in all_causes()] == [
        "failed_but_billed",
        "retry_billed",
        "period_boundary",
        "late_data",
        "service_tier",
        "cache_lifetime",
        "price_date",
        "price_tier",
        "modality",
        "tool_fee",
        "currency",
        "credit_or_discount",
        "rounding",
        "contradictory_counts",
        "unobserved_traffic",
        "unmapped_line",
    ]
    for cause in all_causes():
        assert cause.cure.endswith("."), cause.code
        module = __import__(f"weighbridge.pipeline.invoice.causes.{cause.code}", fromlist=["x"])
        assert "Worked example" in (module.__doc__ or ""), cause.code
    explained = [kind for cause in all_causes() for kind in cause.kinds]
    assert len(explained) == len(set(explained))
    assert {None, *LineKind} - set(explained) == {LineKind.TOKENS, LineKind.TAX, LineKind.OTHER_SERVICE}


def test_a_bill_as_agreed_matches_in_every_cell(tmp_path: Path) -> None:
    weighed = billed(tmp_path, ()).weighed()
    assert (weighed.statuses, weighed.causes, weighed.findings) == ({"MATCHED"}, [], [])


@pytest.mark.parametrize("way", WAYS)
def test_a_cause_alone_comes_out_by_name_and_leaves_nothing(tmp_path: Path, way: str) -> None:
    weighed = billed(tmp_path, (way,)).weighed()
    assert weighed.statuses == SETTLED
    assert weighed.named == {way}
    assert weighed.closes()
    assert {finding.cause for finding in weighed.findings} == {way}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_causes_at_once_come_out_by_name_and_leave_nothing(tmp_path: Path, pair: tuple[str, str]) -> None:
    weighed = billed(tmp_path, pair).weighed()
    assert weighed.statuses == SETTLED
    assert weighed.named == set(pair)
    assert weighed.closes()


def test_of_two_causes_that_are_the_same_in_effect_the_other_is_kept_by_name(tmp_path: Path) -> None:
    """Calls that are counted when they are over are of the next day, so none of them is late there."""
    weighed = billed(tmp_path, ("period_boundary", "late_data")).weighed()
    assert weighed.statuses == SETTLED
    told = {(row["confidence"], tuple(row["alternatives"])) for row in weighed.causes}
    assert ("ambiguous", ("late_data",)) in told


@settings(deadline=None, max_examples=examples(3, 30))
@given(order=permutations(range(5)))
def test_in_any_order_of_lines_the_same_comes_out(order: list[int]) -> None:
    """Two lines of one cell, one of another, one nobody can place, one in another currency."""
    with TemporaryDirectory() as folder:
        world = one_cell(Path(folder))
        world.call(at(13), status="failed", input_uncached=500)
        world.line("0.0005", at(12, 0), tokens=250)
        world.line("0.0015", at(12, 0), tokens=750)
        world.line("0.001", at(13, 0), tokens=500)
        world.line("4.2", at(12, 0), kind=None, sku="new")
        world.line("7", at(12, 0), tokens=1000, currency="EUR")
        told, other = world.weighed(), world.weighed(order)
    assert (told.gaps, told.causes, told.findings) == (other.gaps, other.causes, other.findings)
    assert told.named == {"failed_but_billed", "unmapped_line"}


def test_the_order_of_lines_of_a_whole_bill_changes_nothing(tmp_path: Path) -> None:
    world = billed(tmp_path, ("failed_but_billed",))
    order = list(range(len(world.lines)))
    random.Random(7).shuffle(order)
    told, other = world.weighed(), world.weighed(order)
    assert (told.gaps, told.causes, told.findings) == (other.gaps, other.causes, other.findings)


def test_a_second_run_on_the_same_lake_changes_nothing(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.0021234", at(12, 0), tokens=1000)
    lake = world.lake()
    assert world.reconcile_in(lake).statuses == {"UNEXPLAINED": 2}
    versions = [lake.version(table) for table in ("invoice_gap", "invoice_cause", "finding")]
    world.reconcile_in(lake)
    assert [lake.version(table) for table in ("invoice_gap", "invoice_cause", "finding")] == versions
    in_memory, _ = world.reconcile()
    assert lake.scan("invoice_gap").collect().sort("cell").equals(in_memory.scan("invoice_gap").collect().sort("cell"))


def one_cell(folder: Path, **world: object) -> World:
    made = World(folder, **world)  # type: ignore[arg-type]
    made.call(at(12), input_uncached=1000)
    return made


def test_a_residual_is_told_as_a_whole_and_is_no_guess(tmp_path: Path) -> None:
    """0.002 is expected; 0.0021234 is nothing that anything here gives."""
    world = one_cell(tmp_path)
    world.line("0.0021234", at(12, 0), tokens=1000)
    lake, result = world.reconcile()
    money = gaps(lake).row(0, named=True)
    assert (money["gap"], money["residual"], money["status"]) == (
        Decimal("0.0001234"),
        Decimal("0.0001234"),
        "UNEXPLAINED",
    )
    assert causes(lake) == {}
    (finding,) = result.findings
    assert (finding.code, finding.amount, str(finding.severity)) == (
        "invoice_unexplained",
        Decimal("0.0001234"),
        "error",
    )


def test_what_is_charged_twice_was_not_late_the_day_before(tmp_path: Path) -> None:
    """The day before was charged in full, so its last call is no reason for a second charge of the same size."""
    world = World(tmp_path)
    world.call(at(12, 23), input_uncached=1000)
    world.call(at(13, 23), input_uncached=1000)
    world.line("0.002", at(12, 0))
    world.line("0.004", at(13, 0))
    weighed = world.weighed()
    assert (weighed.statuses, weighed.named) == ({"MATCHED", "UNEXPLAINED"}, set())


def test_rival_explanations_are_kept_by_name(tmp_path: Path) -> None:
    """A failed call and a try that was followed by another have the same 500 tokens."""
    world = one_cell(tmp_path)
    world.call(at(12, 13), status="failed", input_uncached=500)
    asked = {"request_hi": 1, "request_lo": 1}
    world.call(at(12, 14), status="aborted", input_uncached=500, attempt={**asked, "attempt_number": 1})
    world.call(at(12, 15), input_uncached=0, output_visible=0, attempt={**asked, "attempt_number": 2})
    world.line("0.003", at(12, 0), tokens=1500)
    lake, _ = world.reconcile()
    rows = lake.scan("invoice_cause").collect()
    assert set(rows["cause"]) == {"failed_but_billed"}
    assert set(rows["confidence"]) == {"ambiguous"}
    assert rows["alternatives"].to_list() == [["retry_billed"]] * 2


TIERED = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["m"]
[rows.prices]
input = "2"
output = "10"
[[rows]]
models = ["m"]
when = { batch = true }
[rows.prices]
input = "1"
output = "5"
[[rows]]
models = ["long"]
prices = { input = "2", output = "10" }
above = [{ input_tokens = 2000, rule = "cliff", prices = { input = "4", output = "15" } }]
"""


def test_a_batch_job_charged_as_any_other_call(tmp_path: Path) -> None:
    world = World(tmp_path, prices=TIERED)
    world.call(at(12), input_uncached=1000, batch=True)
    world.line("0.002", at(12, 0), tokens=1000)
    lake, _ = world.reconcile()
    assert causes(lake) == {"service_tier": Decimal("0.001")}
    assert closes(lake)


def test_a_short_call_charged_as_a_long_one(tmp_path: Path) -> None:
    world = World(tmp_path, prices=TIERED)
    world.call(at(12), input_uncached=1000, model="long")
    world.line("0.004", at(12, 0), tokens=1000, model="long")
    lake, _ = world.reconcile()
    assert causes(lake) == {"price_tier": Decimal("0.002")}


def test_lines_that_are_no_tokens_are_told_by_what_they_say(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000)
    month = {"model": None, "token_class": None}
    told = (
        ("tool_fee", "0.03", "Usage"),
        ("credit", "-5", "Credit"),
        ("rounding", "0.000001", "Adjustment"),
        ("tax", "0.4", "Tax"),
        (None, "4.2", "Usage"),
    )
    for kind, paid, category in told:
        world.line(paid, FIRST, FIRST + timedelta(days=30), kind=kind, category=category, sku=f"sku-{kind}", **month)
    lake, result = world.reconcile()
    assert causes(lake) == {
        "credit_or_discount": Decimal(-5),
        "rounding": Decimal("0.000001"),
        "tool_fee": Decimal("0.03"),
        "unmapped_line": Decimal("4.2"),
    }
    tax = gaps(lake).filter(pl.col("kind") == "tax").row(0, named=True)
    assert (tax["status"], tax["expected"], tax["charged"]) == ("NOT_COMPARED", None, Decimal("0.4"))
    unmapped = [finding for finding in result.findings if finding.code == "unmapped_line"]
    assert [(f.subject["sku"], f.amount, f.rows) for f in unmapped] == [("sku-None", Decimal("4.2"), 1)]
    assert closes(lake)


def test_usage_on_no_line_waits_while_the_period_is_open_and_is_told_when_it_is_over(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", lateness_hours=0))
    world.call(at(20), input_uncached=70)
    world.line("0.002", at(12, 0), tokens=1000, billing_status="Open", billing_start=FIRST)
    _lake, early = world.reconcile(now=at(20, 15))
    assert early.statuses == {"MATCHED": 2, "PROVISIONAL": 2}
    assert [finding.code for finding in early.findings] == ["invoice_provisional"]
    _, late = world.reconcile()
    assert late.statuses == {"MATCHED": 2, "UNEXPLAINED": 2}
    assert [(f.code, f.amount, str(f.severity)) for f in late.findings] == [("usage_not_charged", None, "notice")]


def test_a_line_that_comes_later_makes_a_provisional_cell_final(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.001", at(12, 0), tokens=500)
    lake, _ = world.reconcile(now=at(13))
    assert set(gaps(lake)["status"]) == {"PROVISIONAL"}
    world.line("0.002", at(12, 0), tokens=1000, line_id="line-0", revision=1)
    _, result = world.reconcile()
    assert result.statuses == {"MATCHED": 2}


def test_usage_that_is_billed_in_the_next_month_joins_the_month_it_is_of(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line(
        "0.002", at(12, 0), tokens=1000, invoice_id="openai:2026-05", billing_start=datetime(2026, 5, 1, tzinfo=UTC)
    )
    _lake, result = world.reconcile()
    assert [month for month, *_ in result.months] == ["2026-04"]
    assert result.statuses == {"MATCHED": 2}


def test_without_a_price_nothing_is_compared_in_money_and_it_is_said(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000, model="unknown")
    world.line("0.002", at(12, 0), tokens=1000, model="unknown")
    lake, result = world.reconcile()
    assert gaps(lake).select("expected", "charged", "gap", "status").rows() == [
        (None, Decimal("0.002"), None, "NOT_COMPARED")
    ]
    assert [finding.code for finding in result.findings] == ["invoice_not_compared"]


def test_a_day_without_a_rate_is_not_compared_unless_the_contract_says_which_stands_in(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", currency="EUR"))
    told = {"base": "USD", "quote": "EUR", "rate": Decimal("0.5"), "segment": FILE, "segment_row": 0, "revision": 0}
    world.rates.append({**told, "rate_day": date(2026, 4, 10)})
    world.line("0.001", at(12, 0), tokens=1000, currency="EUR")
    lake, result = world.reconcile()
    assert gaps(lake, "EUR")["status"].to_list() == ["NOT_COMPARED"]
    world.contract = Contract("openai", currency="EUR", rates_missing="nearest_before")
    lake, result = world.reconcile()
    assert result.statuses == {"MATCHED": 2}


def test_a_line_without_a_currency_is_in_no_sum_and_is_told(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("7", at(12, 0), tokens=1000, currency=None)
    _lake, result = world.reconcile()
    assert result.statuses == {"MATCHED": 2}
    assert [(f.code, f.rows, f.amount) for f in result.findings] == [("currency_missing", 1, None)]


def test_agreed_rounding_is_expected_and_no_cause(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", rounding=Rounding(2, "up")))
    world.line("0.01", at(12, 0), tokens=1000)
    _lake, result = world.reconcile()
    assert result.statuses == {"MATCHED": 2}


def test_credits_above_charges_and_lines_of_nothing_are_compared_like_any_other(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("0", at(13, 0), tokens=0)
    world.line(
        "-0.5", FIRST, FIRST + timedelta(days=30), kind="credit", category="Credit", model=None, token_class=None
    )
    lake, result = world.reconcile()
    assert gaps(lake)["charged"].sum() == Decimal("-0.498")
    assert set(result.statuses) == SETTLED
    assert closes(lake)


def test_sums_that_no_column_holds_stop_with_what_to_do(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(2):
        world.call(at(12), input_uncached=2**62, total=2**62)
    world.line("1", at(12, 0), tokens=1)
    with pytest.raises(ContractError, match=r"reaches 2\*\*63 tokens.*nothing was written"):
        world.reconcile()


def test_pages_of_usage_are_held_against_calls_in_tokens(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.call(at(12, 13), output_visible=30, reasoning=12)
    world.page(at(12, 0), input_uncached=1500, output_visible=42)
    world.page(at(12, 0), grouped_by=[], model=None, input_uncached=1500, output_visible=42)
    lake, _result = world.reconcile(now=LATER)
    cells = gaps(lake, "tokens").select("against", "token_class", "expected", "charged", "status").rows()
    assert cells == [
        ("usage_page", "input_uncached", Decimal(1000), Decimal(1500), "EXPLAINED"),
        ("usage_page", "output_visible", Decimal(42), Decimal(42), "MATCHED"),
    ]
    assert causes(lake, "tokens") == {"unobserved_traffic": Decimal(500)}


def test_a_bill_without_quantities_takes_those_of_the_usage_page(tmp_path: Path) -> None:
    """The page counts 400 tokens more than we saw: at 2 a million they are the 0.0008 that is charged beyond."""
    world = one_cell(tmp_path)
    world.page(at(12, 0), input_uncached=1400)
    world.line("0.0028", at(12, 0))
    lake, _ = world.reconcile()
    assert causes(lake) == {"unobserved_traffic": Decimal("0.0008")}


def test_the_total_of_an_invoice_has_to_be_that_of_its_lines(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000, invoice_number="inv-1")
    world.details.append(
        {"invoice_id": "inv-1", "detail_id": "1", "provider": "openai", "amount": Decimal("0.5"), "currency": "USD",
         "billing_start": FIRST, "billing_end": FIRST + timedelta(days=30), "segment": FILE, "revision": 0}
    )  # fmt: skip
    _, result = world.reconcile()
    assert [(f.code, f.amount) for f in result.findings] == [("invoice_total_differs", Decimal("0.498"))]


def test_sums_in_a_small_currency_keep_their_last_digits(tmp_path: Path) -> None:
    """More digits than the usual context of decimals holds: 12345678901234.000000000000000001 and as much again."""
    world = one_cell(tmp_path)
    for number in (12, 12):
        world.line("12345678901234.000000000000000001", at(number, 0), tokens=500)
    (gap,) = [row for row in world.weighed().gaps if row["unit"] == "USD"]
    assert gap["charged"] == Decimal("24691357802468.000000000000000002")
    assert gap["residual"] == Decimal("24691357802467.998000000000000002")


def test_a_minimum_that_was_agreed_and_stands_on_no_line_is_told(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", minimum=Decimal(100)))
    world.line("0.002", at(12, 0), tokens=1000)
    weighed = world.weighed()
    (cell,) = [row for row in weighed.gaps if row["kind"] == "minimum"]
    assert (cell["expected"], cell["charged"], cell["lines"]) == (Decimal("99.998"), Decimal(0), 0)
    assert [(row["cause"], row["amount"]) for row in weighed.causes] == [("credit_or_discount", Decimal("-99.998"))]


def test_where_a_price_is_missing_nobody_knows_what_a_minimum_comes_to(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", minimum=Decimal(100)))
    world.call(at(13), input_uncached=5, model="unknown")
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("50", FIRST, FIRST + timedelta(days=30), kind="minimum", model=None, token_class=None)
    (cell,) = [row for row in world.weighed().gaps if row["kind"] == "minimum"]
    assert (cell["expected"], cell["charged"], cell["status"]) == (None, Decimal(50), "NOT_COMPARED")


def test_what_a_line_gives_back_where_nothing_was_used_is_no_traffic(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("-0.3", at(20, 0), tokens=-1000)
    weighed = world.weighed()
    assert (weighed.statuses, weighed.named) == ({"MATCHED", "UNEXPLAINED"}, set())


def test_a_month_is_closed_only_where_every_account_is_and_by_the_billing_zone(tmp_path: Path) -> None:
    """In Kolkata the month of April begins at 18:30 UTC of 31 March."""
    world = one_cell(tmp_path, contract=Contract("openai", zone="Asia/Kolkata"))
    begin = datetime(2026, 3, 31, 18, 30, tzinfo=UTC)
    world.line("0.001", begin, begin + timedelta(days=30), tokens=500)
    told = {"detail_id": "billing-period", "provider": "openai", "billing_start": begin, "segment": FILE, "revision": 0}
    world.details.append({**told, "invoice_id": "a:2026-04", "billing_status": "Closed"})
    assert world.weighed(now=at(20)).statuses == {"UNEXPLAINED"}
    world.details.append({**told, "invoice_id": "b:2026-04", "billing_status": "Open"})
    assert world.weighed(now=at(20)).statuses == {"PROVISIONAL"}


def test_lines_in_another_currency_are_told_by_name_and_in_no_sum(tmp_path: Path) -> None:
    world = one_cell(tmp_path, contract=Contract("openai", currency="USD"))
    world.line("0.002", at(12, 0), tokens=1000)
    world.line("7", at(12, 0), tokens=1000, currency="EUR")
    weighed = world.weighed()
    assert weighed.statuses == {"MATCHED"}
    (finding,) = weighed.findings
    assert (finding.code, finding.amount, finding.currency) == ("invoice_other_currency", Decimal(7), "EUR")
    assert (finding.first_day, finding.last_day) == (date(2026, 4, 12), date(2026, 4, 12))


def test_an_invoice_with_a_total_and_no_line_is_told(tmp_path: Path) -> None:
    world = one_cell(tmp_path)
    world.line("0.002", at(12, 0), tokens=1000, invoice_number="inv-1")
    world.details.append(
        {"invoice_id": "inv-2", "detail_id": "1", "provider": "openai", "amount": Decimal("0.5"), "currency": "USD",
         "billing_start": FIRST, "billing_end": FIRST + timedelta(days=30), "segment": FILE, "revision": 0}
    )  # fmt: skip
    found = list(of_details(InMemory(world.rows()), [("openai", "2026-04", "UTC")]))
    assert [(f.code, f.amount, f.rows) for f in found] == [("invoice_total_differs", Decimal("0.5"), 0)]


@pytest.mark.parametrize(
    ("told", "charged", "status"),
    [("output_visible", "0.002", "MATCHED"), ("output_visible", "0.004", "UNEXPLAINED"), ("reasoning", "0.002", None)],
)
def test_an_output_that_nobody_splits_is_compared_where_the_bill_does_not_split_it(
    tmp_path: Path, told: str, charged: str, status: str | None
) -> None:
    """1,000 in at 2 a million, 200 out at 10: 0.002 each. A bill that tells reasoning apart cannot be compared."""
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000, output_visible=None, reasoning=None, output_total=200, total=1200)
    world.line("0.002", at(12, 0))
    world.line(charged, at(12, 0), token_class=told, sku="m-output")
    weighed = world.weighed()
    found = {row["token_class"]: row["status"] for row in weighed.gaps if row["unit"] == "USD"}
    assert found["input_uncached"] == "MATCHED"
    assert found[told] == status or (status is None and found[told] not in {"MATCHED", "EXPLAINED"})
    rest = {row["token_class"]: (row["gap"], row["residual"]) for row in weighed.gaps if row["unit"] == "USD"}
    if status is not None:
        assert rest[told] == (Decimal(charged) - Decimal("0.002"),) * 2
