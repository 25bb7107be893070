"""The difference of two months, and of a month and the lake: each part is worked out by hand, and they add up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.close.conftest import FILE_A, GPT, MINI, NOW, TENANT_A, TENANT_B, Office, book, key_of, price_row

from weighbridge.pipeline.close.diff import ADJUSTED, MoneyPart, MonthDifference, TokenPart, diff
from weighbridge.pipeline.close.exact import total
from weighbridge.pipeline.close.forget import forget
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.side import Side
from weighbridge.pipeline.close.two_months import shares
from weighbridge.pipeline.ingest.dialect_facts import facts_of
from weighbridge.pipeline.ingest.dialects import all_dialects
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.terms import Terms
from weighbridge.schemas.enumerations import FeeKind
from weighbridge.schemas.tables import TABLES


class Snapshot:
    """The rows of a lake as they were."""

    def __init__(self, lake: Lake) -> None:
        self._rows = {name: lake.scan(name).collect() for name in TABLES}

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """As `Lake.scan`."""
        rows = self._rows[table].lazy()
        if first is not None:
            rows = rows.filter(pl.col("day") >= first)
        if last is not None:
            rows = rows.filter(pl.col("day") <= last)
        return rows.select(list(columns or TABLES[table].names))

    def days(self, table: str) -> list[date]:
        """As `Lake.days`."""
        return sorted(set(self._rows[table]["day"]))


def side(office: Office, period: str) -> Side:
    """A month as the lake has it."""
    return Side.of_lake(office.lake, period, office.prices)


def closed_side(office: Office, period: str = "2026-03") -> Side:
    """A closed month."""
    return Side.of_pack(Pack(office.pack(period)))


def dollars(found: MonthDifference) -> MoneyPart:
    (part,) = found.money
    assert total(part.parts.values()) == part.difference
    return part


def tokens(found: MonthDifference, name: str) -> TokenPart:
    (part,) = [each for each in found.tokens if each.token_class == name]
    assert sum(part.parts.values()) == part.difference
    return part


def parts(part: MoneyPart) -> dict[str, str]:
    """The parts that are not nothing."""
    return {name: f"{value.normalize():f}" for name, value in part.parts.items() if value}


def months(office: Office, first: list[dict[str, Any]], second: list[dict[str, Any]], **later: Any) -> MonthDifference:
    """The difference of two months with these reports; `later` may name the prices of the second."""
    for month, reports in (("2026-03", first), ("2026-04", second)):
        for number, report in enumerate(reports):
            about = {"day": f"{month}-02T10:00:00", **report}
            office.both(100 * int(month[-1]) + number, about.pop("day"), **about)
    office.file(FILE_A)
    office.read()
    # The month before stays as it was priced then.
    before = Side.of_lake(Snapshot(office.lake), "2026-03", office.prices)
    if "prices" in later:
        office.prices = later["prices"]
        office.read()
    return diff(before, side(office, "2026-04"))


def test_twice_the_traffic_at_the_same_mix_is_traffic_alone(office: Office) -> None:
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20}, {"into": 100, "out": 20}])
    part = dollars(found)
    assert (part.before, part.after) == (Decimal("0.00036"), Decimal("0.00072"))
    assert parts(part) == {"traffic": "0.00036"}
    assert tokens(found, "input_uncached").parts == {"prices": 0, "traffic": 100, "mix": 0, "rules": 0, "data": 0}


def test_another_model_for_as_many_tokens_is_mix_alone(office: Office) -> None:
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20, "model": MINI}])
    # 0.00036 at gpt; mini costs 100 x 0.4 + 20 x 1.6 = 72 per million.
    assert parts(dollars(found)) == {"mix": "-0.000288"}


def test_another_class_for_as_many_tokens_is_mix_alone(office: Office) -> None:
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20, "cached": 50}])
    # 50 tokens at a tenth of 2 dollars a million.
    assert parts(dollars(found)) == {"mix": "-0.00009"}
    assert tokens(found, "cache_read").parts["mix"] == 50
    assert tokens(found, "input_uncached").parts["mix"] == -50


def test_another_price_for_the_same_is_prices_alone(office: Office) -> None:
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20}], prices=book(gpt="3"))
    assert parts(dollars(found)) == {"prices": "0.0001"}
    (model,) = found.models
    assert (model.model, model.prices, model.after - model.before) == (GPT, Decimal("0.0001"), Decimal("0.0001"))


def test_all_at_once_comes_apart_exactly(office: Office) -> None:
    first: list[dict[str, Any]] = [{"into": 100, "out": 20}, {"into": 50, "out": 10, "model": MINI}]
    second: list[dict[str, Any]] = [{"into": 300, "out": 30}, {"into": 20, "out": 40, "model": MINI}]
    part = dollars(months(office, first, second, prices=book(gpt="3", mini="0.5")))
    before = Decimal(100 * 2 + 20 * 8) + 50 * Decimal("0.4") + 10 * Decimal("1.6")
    at_old = Decimal(300 * 2 + 30 * 8) + 20 * Decimal("0.4") + 40 * Decimal("1.6")
    after = Decimal(300 * 3 + 30 * 8) + 20 * Decimal("0.5") + 40 * Decimal("1.6")
    million = Decimal(10) ** 6
    traffic = (before / million * (390 - 180) / 180).quantize(Decimal("1e-18"))
    assert part.parts["prices"] == (after - at_old) / million
    assert part.parts["traffic"] == traffic
    assert part.parts["mix"] == (at_old - before) / million - traffic
    assert part.parts["rules"] == part.parts["data"] == 0


def test_a_price_that_changed_within_the_month_is_compared_day_by_day(office: Office) -> None:
    office.prices = PriceBook(
        [[price_row(GPT, "2", "8", valid_to=date(2026, 3, 16)), price_row(GPT, "4", "8", valid_from=date(2026, 3, 16))]]
    )
    days = ["2026-03-10T10:00:00", "2026-03-20T10:00:00"]
    reports: list[dict[str, Any]] = [{"day": day, "into": 100, "out": 0} for day in days]
    april = [{**report, "day": str(report["day"]).replace("-03-", "-04-")} for report in reports]
    part = dollars(months(office, reports, april))
    # In April all costs 4 dollars; in March the 10th cost 2.
    assert parts(part) == {"prices": "0.0002"}


def test_a_model_the_earlier_month_had_no_price_for_keeps_its_own(office: Office) -> None:
    later = PriceBook([[price_row(GPT, "2", "8"), price_row("gpt-5", "10", "10")]])
    part = dollars(months(office, [{"into": 100, "out": 0}], [{"into": 100, "out": 0, "model": "gpt-5"}], prices=later))
    assert parts(part) == {"mix": "0.0008"}


def test_a_longer_prefix_is_another_line_and_no_change_of_price(office: Office) -> None:
    # What the earlier month used by a prefix stands in the later book under the name itself.
    later = PriceBook([[price_row(MINI, "1", "1.6"), price_row(GPT, "2", "8")]])
    report = {"into": 100, "out": 0, "model": MINI}
    part = dollars(months(office, [report], [report], prices=later))
    assert parts(part) == {"mix": "0.00006"}


def test_reports_without_a_price_are_counted_and_in_no_part(office: Office) -> None:
    strange = {"into": 7, "out": 7, "model": "strange-1"}
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20}, strange])
    assert parts(dollars(found)) == {}
    assert found.unpriced == (0, 1)
    assert tokens(found, "input_uncached").difference == 7


def test_other_dialects_are_rules(filled_once: Office) -> None:
    before, after = side(filled_once, "2026-03"), side(filled_once, "2026-04")
    # Suppose that in April cached tokens were held to stand beside the prompt, not inside it, and nothing else changed.
    facts = facts_of(all_dialects()["openai_chat"])
    axes = [["input_includes_cache", [False]], *[axis for axis in facts["axes"] if axis[0] != "input_includes_cache"]]
    apart = {"total_tokens": "evidence", **dict(facts["roles"])} | {"total_tokens": "evidence"}
    changed = facts | {"axes": axes, "roles": [[path, role] for path, role in apart.items()]}
    dialects = [changed if each["name"] == "openai_chat" else each for each in after.dialects]
    later = Side(after.name, after.period, after.records, after.book, after.prices, dialects, after.figures)
    found = diff(before, later)
    # Attempt 2 had 40 tokens read from the cache, of 100.
    assert dollars(found).parts["rules"] == Decimal(40) * 2 / 10**6
    assert tokens(found, "input_uncached").parts["rules"] == 40
    assert any("dialects differ" in note for note in found.notes)


def test_what_is_booked_for_another_month_is_data(office: Office) -> None:
    office.add(
        "adjustment",
        {
            "adjustment_id": "1" * 32, "period": "2026-04", "corrects": "2026-02", "reason": "late_data", "tokens": 9,
            "amount": Decimal("0.5"), "currency": "USD", "rows": 1, "segments": [],
        },
    )  # fmt: skip
    found = months(office, [{"into": 100, "out": 20}], [{"into": 100, "out": 20}])
    assert parts(dollars(found)) == {"data": "0.5"}
    assert tokens(found, ADJUSTED).parts["data"] == 9


def test_a_month_against_the_lake_is_told_report_by_report(closed: Office) -> None:
    closed.both(60, "2026-03-09T10:00:00", 1000, 100)  # came late: data
    closed.report(1, "2026-03-02T10:00:00", 100, 25, revision=1)  # was revised: data
    closed.prices = book(gpt="3")
    closed.read()
    found = diff(closed_side(closed), side(closed, "2026-03"))
    part = dollars(found)
    late, revised = Decimal(1000 * 3 + 100 * 8), Decimal(100 * 3 + 25 * 8) - Decimal(100 * 2 + 20 * 8)
    # Repriced alone: 2 (60 uncached, 40 read), 4 (300), 5 (30), 7 (71).
    repriced = Decimal(60 + 300 + 30 + 71) + Decimal(40) / 10
    assert part.parts["data"] == (late + revised) / 10**6
    assert part.parts["prices"] == repriced / 10**6
    assert {name for name, value in part.parts.items() if value} == {"data", "prices"}
    assert tokens(found, "output_visible").parts["data"] == 105


def test_a_month_against_itself_has_no_difference(closed_once: Office) -> None:
    found = diff(closed_side(closed_once), side(closed_once, "2026-03"))
    assert parts(dollars(found)) == {}
    assert all(not part.difference for part in found.tokens)
    assert found.notes == ()


def test_what_was_erased_is_data_of_which_only_the_sum_is_known(closed: Office) -> None:
    whole = diff(closed_side(closed), side(closed, "2026-04"))
    attempts = pl.DataFrame([key_of(4)])
    forget(closed.packs, closed.lake, attempts=attempts, counts=True, rule="request", by="privacy", now=NOW)
    found = diff(closed_side(closed), side(closed, "2026-04"))
    assert (dollars(found).before, dollars(found).difference) == (dollars(whole).before, dollars(whole).difference)
    assert dollars(found).parts["data"] == -(Decimal(300 * 2 + 50 * 8) / 10**6)
    assert any("erased from 2026-03" in note for note in found.notes)


@given(
    counts=st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 10**15), min_size=1),
    change=st.integers(-(10**15), 10**15),
)
def test_shares_are_whole_add_up_and_are_never_off_by_one_or_more(counts: dict[str, int], change: int) -> None:
    whole = sum(counts.values())
    if not whole:
        return
    dealt = shares(counts, change)
    assert sum(dealt.values()) == change
    assert all(abs(dealt[name] - Fraction(count * change, whole)) < 1 for name, count in counts.items())


@pytest.mark.parametrize("seed", range(3))
def test_the_parts_of_any_two_months_add_up(office: Office, seed: int) -> None:
    draw = random.Random(seed)

    def crowd() -> list[dict[str, Any]]:
        return [
            {
                "into": draw.choice([0, 1, 10**6 + 1, draw.randrange(10**9)]) + 7,
                "out": draw.randrange(10**6),
                "cached": draw.choice([0, 3, 7]),
                "model": draw.choice([GPT, MINI, "strange-1"]),
                "tenant": draw.choice([TENANT_A, TENANT_B]),
            }
            for _ in range(draw.randrange(1, 8))
        ]

    found = months(office, crowd(), crowd(), prices=book(gpt=draw.choice(["1.999999999999", "3"]), mini="0.3"))
    assert all(total(part.parts.values()) == part.difference for part in found.money)
    assert all(sum(part.parts.values()) == part.difference for part in found.tokens)
    assert found.tokens[-1].token_class == ADJUSTED
    models: dict[str, Decimal] = {}
    for model in found.models:
        models[model.currency] = models.get(model.currency, Decimal(0)) + model.prices
    assert {name: value for name, value in models.items() if value} == {
        part.currency: part.parts["prices"] for part in found.money if part.parts["prices"]
    }


def test_two_months_of_another_tier_and_of_searches_are_priced_as_they_were_served(office: Office) -> None:
    """100 in and 20 out at 2 and 8 are 0.00036; at half of that, and a search for 0.01 beside: 0.01018."""
    search = {FeeKind.WEB_SEARCH: Decimal(10)}
    plain = price_row(GPT, "2", "8", fees=search)
    office.prices = PriceBook([[plain, price_row(GPT, "1", "4", terms=Terms(service_tier="flex"), fees=search)]])
    office.both(1, "2026-03-02T10:00:00")
    told = ["usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens"]
    shape = " ".join([*told, "service_tier", "usage.server_tool_use.web_search_requests"])
    leaves: dict[str, Any] = {
        "leaf_shape": shape,
        "leaf_integers": [100, 20, 120, None, 1],
        "leaf_texts": [None] * 3 + ["flex", None],
    }
    office.attempt(2, "2026-04-02T10:00:00")
    office.report(2, "2026-04-02T10:00:00", **leaves)
    office.weigh()
    part = dollars(diff(side(office, "2026-03"), side(office, "2026-04")))
    assert (part.before, part.after) == (Decimal("0.00036"), Decimal("0.01018"))
    assert parts(part) == {"mix": "0.00982"}
