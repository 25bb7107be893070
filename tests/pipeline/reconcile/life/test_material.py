"""Which findings matter, by which line of the settings, and what is carried from month to month."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import TENANT, World, key

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile.life.carried import carried
from weighbridge.pipeline.reconcile.life.material import Materiality, judged
from weighbridge.pipeline.reconcile.life.status import acknowledge, close, waive
from weighbridge.pipeline.settings import load
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import Finding

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def told(**about: Any) -> dict[str, Any]:
    """A finding, as far as materiality looks at it."""
    plain = {"tenant": None, "period": "2026-03", "amount": None, "currency": None, "difference": None}
    amount = about.pop("amount", None)
    money = {} if amount is None else {"amount": Decimal(amount), "currency": "USD"}
    return {**plain, "unit": "tokens", **money, **about}


LIMITS: dict[str, Any] = {
    "amount": Decimal("1.00"),
    "currencies": {"JPY": {"amount": Decimal(100)}},
    "tenants": {TENANT: {"amount": Decimal("0.05"), "tokens": 10}},
}


@pytest.mark.parametrize(
    ("policy", "finding", "verdict"),
    [
        ({}, told(amount="0.000001"), (True, "amount")),
        ({}, told(), (True, "unpriced")),
        ({"unpriced": False}, told(), (False, "unpriced")),
        (LIMITS, told(amount="0.99"), (False, "amount")),
        (LIMITS, told(amount="1.00"), (True, "amount")),
        (LIMITS, told(amount="-1.00"), (True, "amount")),
        (LIMITS, told(amount="99", currency="JPY"), (False, "currencies.JPY.amount")),
        (LIMITS, told(amount="100", currency="JPY"), (True, "currencies.JPY.amount")),
        (LIMITS, told(amount="0.05", tenant=TENANT), (True, f"tenants.{TENANT}.amount")),
        (LIMITS, told(amount="0.06", currency="JPY", tenant=TENANT), (True, f"tenants.{TENANT}.amount")),
        (LIMITS, told(amount="0.01", difference=-10, tenant=TENANT), (True, f"tenants.{TENANT}.tokens")),
        (LIMITS, told(amount="0.01", difference=9, tenant=TENANT), (False, f"tenants.{TENANT}.amount")),
        (LIMITS, told(difference=9, tenant=TENANT), (False, f"tenants.{TENANT}.tokens")),
        (LIMITS, told(difference=99, unit="rows", tenant=TENANT), (True, "unpriced")),
        ({"tokens": 0}, told(difference=0), (True, "tokens")),
        ({"amount": Decimal(9), "share": Fraction(1, 10)}, told(amount="2"), (True, "share")),
        ({"amount": Decimal(9), "share": Fraction(1, 10)}, told(amount="1.99"), (False, "amount")),
        ({"amount": Decimal(9), "share": Fraction(1, 10)}, told(amount="8", period="all"), (False, "amount")),
        ({"amount": Decimal(9), "share": Fraction(1, 10)}, told(amount="8", period="2026-04"), (True, "share")),
    ],
)
def test_the_line_that_decides_is_named(
    policy: dict[str, Any], finding: dict[str, Any], verdict: tuple[bool, str]
) -> None:
    """March cost 20 dollars, every other month nothing."""
    spent = {("2026-03", "USD"): Decimal(20)}
    assert Materiality(**policy).verdict(finding, lambda *of: spent.get(of, Decimal(0))) == verdict


def test_the_table_of_the_settings_is_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "weighbridge.toml"
    path.write_text(
        '[material]\namount = "0.5"\nshare = 0.001\n[material.currencies.JPY]\namount = "75"\n'
        f"[material.tenants.{TENANT}]\ntokens = 1000\n"
    )
    policy = Materiality.of(load(path, {}).material)
    assert policy.plain() == {
        "amount": "0.5",
        "tokens": None,
        "share": "1/1000",
        "unpriced": True,
        "currencies": {"JPY": {"amount": "75"}},
        "tenants": {TENANT: {"tokens": 1000}},
    }
    assert Materiality.of(load(None, {}).material) == Materiality()


def test_a_share_is_of_what_the_month_cost_in_the_lake(world: World) -> None:
    """Three readings of 2 dollars each in March make 6: 0.6 is a tenth of it."""
    for number in range(3):
        world.priced(number, amount=Decimal(2))
    lake = world.lake()
    total = lake.scan("priced_amount").select(pl.col("amount").sum()).collect().item()
    assert total == Decimal(6)
    rows = [finding("2026-03", amount=amount).row() for amount in ("0.6", "0.59")]
    frame = pl.DataFrame(rows, schema=polars_schema("finding"))
    found = judged(lake, frame, Materiality(amount=Decimal(5), share=Fraction(1, 10)))
    assert found.select("material", "material_rule").rows() == [(True, "share"), (False, "amount")]


def finding(period: str, name: str = "m", amount: str | None = "3", severity: Severity = Severity.WARNING) -> Finding:
    return Finding(
        code="duplicate_report",
        severity=severity,
        period=period,
        subject={"model": name},
        rows=1,
        cure="-",
        amount=None if amount is None else Decimal(amount),
        currency=None if amount is None else "USD",
        evidence=(key(1).to_hex(),),
    )


@pytest.fixture
def lake(world: World) -> Lake:
    """January with what matters, is small, waived, closed, acknowledged or a notice; February; March; no month."""
    made = world.lake()
    found = [
        finding("2026-01", "matters"),
        finding("2026-01", "small", "0.01"),
        finding("2026-01", "waived"),
        finding("2026-01", "closed"),
        finding("2026-01", "seen", None),
        finding("2026-01", "notice", severity=Severity.NOTICE),
        finding("2026-02", "later", severity=Severity.ERROR),
        finding("2026-03", "own"),
        finding("all", "ever"),
    ]
    made.replace("finding", pl.DataFrame([each.row() for each in found], schema=polars_schema("finding")), days=None)
    ids = {each.subject["model"]: each.finding_id for each in found}
    waive(made, ids["waived"], by="ann", reason="known", expires=date(2026, 5, 10), now=NOW)
    for name in ("closed", "seen"):
        acknowledge(made, ids[name], by="ann", now=NOW)
    close(made, ids["closed"], by="ann", now=NOW)
    return made


def names(lake: Lake, month: str, today: date) -> list[tuple[str, str]]:
    held = carried(lake, month, Materiality(amount=Decimal(1)), today)
    return [(row["first_month"], row["subject"].partition("=")[2]) for row in held.iter_rows(named=True)]


def test_what_matters_is_carried_until_somebody_is_done_with_it(lake: Lake) -> None:
    may = date(2026, 5, 10)
    assert names(lake, "2026-01", may) == []
    assert sorted(names(lake, "2026-02", may)) == [("2026-01", "matters"), ("2026-01", "seen")]
    march = names(lake, "2026-03", may)
    assert sorted(march) == [("2026-01", "matters"), ("2026-01", "seen"), ("2026-02", "later")]
    assert march[-1] == ("2026-02", "later")
    assert ("2026-01", "waived") in names(lake, "2026-03", date(2026, 5, 11)), "its waiver is over"
