"""Findings with their state, what is open, what is at stake, and what to do first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.findings import at_stake, findings, open_findings, priorities, short_ids
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Severity

Viewed = Callable[..., View]


def test_open_ones_first_worst_first_most_money_first(world: World, march: Viewed) -> None:
    sheet = findings(march(world))
    listed = list(zip(sheet.cells("code"), sheet.cells("severity"), sheet.cells("state"), strict=True))
    assert listed == [
        ("duplicate_report", "error", "open"),
        ("unexplained_gap", "error", "open"),
        ("late_credit", "warning", "open"),
        ("usage_missing", "warning", "open"),
        ("verdict_assumed", "notice", "open"),  # its waiver ended within the month
        ("key_changed", "info", "open"),  # about the installation, so in every month
        ("price_unknown", "notice", "waived"),
    ]
    assert "april_only" not in sheet.cells("code")
    assert sheet.figure("waived_until", code="price_unknown").value == date(2026, 12, 31)


def test_open_findings_are_counted_by_severity(world: World, march: Viewed) -> None:
    sheet = open_findings(march(world))
    assert sheet.rows == (("error", 2, 2, 0), ("warning", 2, 2, 0), ("notice", 1, 1, 1), ("info", 1, 1, 0))
    assert sheet.total == ("all", 6, 6, 1)


def test_too_much_and_too_little_are_kept_apart(world: World, march: Viewed) -> None:
    assert at_stake(march(world)).rows == (
        ("EUR", Decimal(0), Decimal("1.5"), 1),
        ("USD", Decimal("0.00062"), Decimal(0), 1),
    )


def test_cures_are_ranked_by_money_then_tokens(bare: World, march: Viewed) -> None:
    def put(code: str, provider: str, tokens: int | None, amount: str | None, cure: str) -> None:
        money = Decimal(amount) if amount else None
        currency = "USD" if amount else None
        subject = {"provider": provider}
        bare.find(code, Severity.WARNING, subject, difference=tokens, amount=money, currency=currency, cure=cure)

    put("small_money", "a", 10**9, "1", "Small.")
    put("large_money", "a", 5, "-2", "Large.")
    put("large_money", "b", 7, "-2", "Large.")
    put("large_money", "c", 1, None, "Large.")
    put("many_tokens", "a", -500, None, "Tokens.")
    put("few_tokens", "a", 3, None, "Few.")
    put("no_size", "a", None, None, "None.")
    bare.find("only_said", Severity.INFO, {"provider": "a"}, difference=10**12)
    sheet = priorities(march(bare))
    wanted = ("rank", "cure", "amount_usd", "tokens", "findings")
    assert list(zip(*(sheet.cells(name) for name in wanted), strict=True)) == [
        (1, "Large.", Decimal(-4), 13, 3),
        (2, "Small.", Decimal(1), 10**9, 1),
        (3, "Tokens.", None, 500, 1),
        (4, "Few.", None, 3, 1),
        (5, "None.", None, None, 1),
    ]


def test_a_cure_names_what_it_is_about(bare: World, march: Viewed) -> None:
    ids = {}
    for number, model in enumerate(["m1", "m2", "m3", "m4"]):
        about = {"provider": "acme", "model": model}
        ids[model] = bare.find(
            "no_price", Severity.WARNING, about, difference=9 - number, unit="tokens", cure="Add it."
        )
    sheet = priorities(march(bare))
    first = ", ".join(f"{ids[model][:8]} (provider acme; model {model})" for model in ("m1", "m2", "m3"))
    assert (sheet.cells("about"), sheet.cells("first_id")) == ([first], [ids["m1"][:8]])


def test_several_currencies_are_never_compared(world: World, march: Viewed) -> None:
    sheet = priorities(march(world))
    names = [column.name for column in sheet.columns]
    assert {"amount_eur", "amount_usd"} <= set(names)
    assert "Currencies are not compared" in sheet.note


def test_ids_are_as_short_as_they_can_be() -> None:
    ids = pl.Series(["aaaaaaaa11" + "0" * 22, "aaaaaaaa12" + "0" * 22, "b" * 32])
    assert short_ids(ids).to_list() == ["aaaaaaaa11", "aaaaaaaa12", "bbbbbbbbbb"]
    assert short_ids(ids.head(1)).to_list() == ["aaaaaaaa"]
    assert short_ids(ids.clear()).to_list() == []
