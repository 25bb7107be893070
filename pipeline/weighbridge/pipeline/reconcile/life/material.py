"""Which findings matter: by the money at stake, by its share of the month, by tokens; for all, or for one tenant.

    [material]                          amount below 1.00 in any currency is small
    amount = "1.00"
    [material.currencies.JPY]           ... below 100 in yen
    amount = "100"
    [material.tenants.t_0123456789abcdef]
    amount = "0.05"                     ... but of this tenant nothing from 0.05 on is small, in any currency

A finding is small where something is known of it and all that is known lies below its limit. One of which no amount is
known matters, unless its tokens lie below a limit that is set for them, or `unpriced = false` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.period import ends

EVERY_PERIOD = "all"
Spent = Callable[[str, str], Decimal]


class Verdict(NamedTuple):
    """Whether a finding matters, and the rule that decided it, as it stands in the settings."""

    material: bool
    rule: str


class _Limit(NamedTuple):
    """One limit and its place in the settings."""

    value: Any
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Materiality:
    """From where on a finding matters.

    Attributes:
        amount: in any currency that has no limit of its own.
        currencies: currency -> amount.
        tokens: from so many tokens on a finding matters whatever it costs; null: no such limit.
        share: of what the month cost in its currency; null: no such limit.
        unpriced: whether a finding matters of which neither amount nor limited tokens are known.
        tenants: pseudonym -> limits that go before all others: `amount`, `tokens`, `share`.
    """

    amount: Decimal = Decimal(0)
    tokens: int | None = None
    share: Fraction | None = None
    unpriced: bool = True
    currencies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tenants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Materiality:
        """As the table `[material]` of the settings says."""
        return cls(**table)

    def plain(self) -> dict[str, object]:
        """It as plain values, exact, to be pinned with a close."""

        def told(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: told(inner) for name, inner in sorted(value.items())}
            return (
                format(value, "f")
                if isinstance(value, Decimal)
                else str(value)
                if isinstance(value, Fraction)
                else value
            )

        return {each.name: told(getattr(self, each.name)) for each in fields(self)}

    def verdict(self, finding: Mapping[str, Any], spent: Spent) -> Verdict:
        """Whether a finding matters.

        Args:
            finding: tenant, period, amount, currency, difference, unit.
            spent: month and currency -> what the month cost; asked for only where a share is a limit.
        """
        small: _Limit | None = None
        for limit, reached in self._held_against(finding, spent):
            if reached:
                return Verdict(True, limit.rule)
            small = small or limit
        if small is not None:
            return Verdict(False, small.rule)
        return Verdict(self.unpriced, "unpriced")

    def _held_against(self, finding: Mapping[str, Any], spent: Spent) -> Iterator[tuple[_Limit, bool]]:
        tenant, currency = finding["tenant"], finding["currency"]
        amount = finding["amount"]
        if amount is not None:
            limit = self._amount(tenant, currency)
            yield limit, amount.copy_abs() >= limit.value
            share = self._own(tenant, "share", self.share)
            if share.value is not None and currency is not None and finding["period"] != EVERY_PERIOD:
                whole = spent(finding["period"], currency)
                # Of a month that cost nothing every amount is more than any share.
                yield share, whole <= 0 or Fraction(amount.copy_abs()) >= share.value * Fraction(whole)
        tokens = self._own(tenant, "tokens", self.tokens)
        if tokens.value is not None and finding["unit"] == "tokens" and finding["difference"] is not None:
            yield tokens, abs(finding["difference"]) >= tokens.value

    def _own(self, tenant: str | None, name: str, otherwise: Any) -> _Limit:
        own = self.tenants.get(tenant or "", {})
        return _Limit(own[name], f"tenants.{tenant}.{name}") if name in own else _Limit(otherwise, name)

    def _amount(self, tenant: str | None, currency: str | None) -> _Limit:
        own = self.currencies.get(currency or "", {})
        if "amount" in own and "amount" not in self.tenants.get(tenant or "", {}):
            return _Limit(own["amount"], f"currencies.{currency}.amount")
        return self._own(tenant, "amount", self.amount)


def judged(lake: Records, findings: pl.DataFrame, policy: Materiality) -> pl.DataFrame:
    """The findings with `material`, and `material_rule`: the line of the table `[material]` that decided it."""
    spent = Costs(lake)
    verdicts = [policy.verdict(row, spent) for row in findings.iter_rows(named=True)]
    return findings.with_columns(
        material=pl.Series([each.material for each in verdicts], dtype=pl.Boolean),
        material_rule=pl.Series([each.rule for each in verdicts], dtype=pl.String),
    )


class Costs:
    """What months cost, by currency; each month is added up once, and only where somebody asks."""

    def __init__(self, lake: Records) -> None:
        """Nothing is read yet."""
        self._lake = lake
        self._held: dict[str, dict[str, Decimal]] = {}

    def __call__(self, period: str, currency: str) -> Decimal:
        """What the readings of a UTC month cost in a currency; nothing where none of them is priced in it."""
        if period not in self._held:
            first, last = ends(period)
            rows = self._lake.scan("priced_amount", first=first, last=last, columns=["currency", "amount"])
            sums = rows.drop_nulls().group_by("currency").agg(pl.col("amount").cast(pl.Decimal(38, 18)).sum())
            self._held[period] = dict(sums.collect(engine="streaming").iter_rows())
        return self._held[period].get(currency, Decimal(0))
