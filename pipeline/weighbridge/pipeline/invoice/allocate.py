"""Allocate a month: usage to teams by rule, shared costs by share, own machines by computed tokens.

Usage is what our calls cost at the prices of their days (basis `reported`); machines are the one thing that is priced
by what an engine computed (basis `computed`). What is used and what is idle of machines stand apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl

from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.invoice.allocation import ABOUT, Allocation, Machines, Rule, Shared
from weighbridge.pipeline.invoice.ours.usage import calls
from weighbridge.pipeline.invoice.shares import CENT, divided
from weighbridge.pipeline.invoice.zones import span_of
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AllocatedAs, PriceBasis
from weighbridge.schemas.tables import UNASSIGNED

USAGE = "usage"
IDLE = "idle"
_ZONE = "UTC"
_HOUR_S = Decimal(3600)
_WIDE = Context(prec=60)


@dataclass(slots=True)
class Sum:
    """What a team has of a provider and currency; money is null once any part of it is unknown."""

    tokens: int = 0
    money: Decimal | None = Decimal(0)
    rows: int = 0

    def add(self, tokens: int | None, money: Decimal | None) -> None:
        """Add a call."""
        self.tokens += tokens or 0
        self.money = None if self.money is None or money is None else self.money + money
        self.rows += 1


Sums = dict[tuple[str, str | None, str | None], Sum]


@dataclass(frozen=True, slots=True)
class Allocated:
    """Rows of the table `allocated` of one month."""

    month: str
    rows: Sequence[Mapping[str, object]] = field(default_factory=list)


def allocate(lake: Lake, allocation: Allocation, month: str, key: bytes) -> Allocated:
    """Allocate a UTC month and write `allocated`; a second run on the same lake changes nothing.

    Args:
        lake: readings and prices, up to date.
        allocation: rules, shared costs and machines.
        month: `YYYY-MM`.
        key: the installation's pseudonym key, for tenants that rules name by their names.

    Raises:
        ConfigError: a shared cost has nothing to be divided by.
        LakeBusyError: another process is writing.
    """
    usage = used(lake, allocation.rules, month, key)
    rows = [_row(month, PriceBasis.REPORTED, USAGE, team, _how(team), provider, currency, each)
            for (team, provider, currency), each in usage.items()]  # fmt: skip
    for cost in allocation.shared:
        rows += _shared(month, cost, usage)
    for machines in allocation.machines:
        rows += _own(lake, month, machines, allocation.rules, key)
    frame = pl.DataFrame(rows, schema=polars_schema("allocated"), infer_schema_length=None)
    with lake.lock():
        kept = lake.scan("allocated").filter(pl.col("period") != month).collect()
        lake.replace("allocated", pl.concat([kept, frame]), days=None)
    return Allocated(month, rows)


def used(lake: Records, rules: Sequence[Rule], month: str, key: bytes) -> Sums:
    """(team, provider, currency) -> its usage of a month."""
    span = span_of(month, _ZONE)
    providers = lake.scan("reading", columns=["provider"]).unique().collect()["provider"].drop_nulls().sort()
    about = _attempts(lake, span)
    out: defaultdict[tuple[str, str | None, str | None], Sum] = defaultdict(Sum)
    for provider in providers:
        rows = calls(lake, provider, span, {}, ("total",))
        known = rows.join(about, on=["attempt_hi", "attempt_lo"], how="left")
        for row in known.iter_rows(named=True):
            team = _team(rules, {**row, "model": row["named"]}, key)
            out[team, provider, row["currency"]].add(row["total"], row["amount"])
    return dict(sorted(out.items(), key=repr))


def _attempts(lake: Records, span: tuple[datetime, datetime]) -> pl.DataFrame:
    """Task and route of attempts, the first source by name."""
    rows = lake.scan("attempt", columns=["attempt_hi", "attempt_lo", "source", "revision", "task", "route", "day"])
    inside = rows.filter(pl.col("day").is_between(span[0].date(), span[1].date()))
    latest = inside.sort("source", "revision").unique(["attempt_hi", "attempt_lo"], keep="first", maintain_order=True)
    return latest.select("attempt_hi", "attempt_lo", "task", "route").collect()


def _team(rules: Sequence[Rule], row: Mapping[str, object], key: bytes) -> str:
    """The team of the first rule that fits."""
    for rule in rules:
        if all(row.get(name) in _values(name, told, key) for name, told in rule.about.items()):
            return rule.team
    return UNASSIGNED


def _values(name: str, told: Sequence[str], key: bytes) -> Sequence[str]:
    assert name in ABOUT
    return [tenant(key, each) for each in told] if name == "tenant" else told


def _how(team: str) -> AllocatedAs:
    return AllocatedAs.UNASSIGNED if team == UNASSIGNED else AllocatedAs.DIRECT


def _shared(month: str, cost: Shared, usage: Sums) -> list[dict[str, object]]:
    """The rows of a shared cost."""
    weights: dict[str, Decimal | int] = dict(cost.shares)
    if cost.by != "fixed":
        weights = _by(cost, usage)
    if not any(weights.values()):
        weights = {UNASSIGNED: 1}
    parts = divided(cost.amount, weights)
    rows = []
    for team, paid in sorted(parts.items()):
        how = AllocatedAs.UNASSIGNED if team == UNASSIGNED else AllocatedAs.SHARED
        rows.append(_row(month, PriceBasis.INVOICED, cost.name, team, how, None, cost.currency, Sum(0, paid, 0)))
    return rows


def _by(cost: Shared, usage: Sums) -> dict[str, Decimal | int]:
    """Team -> its tokens, or what its usage cost in the currency; none where any cost is not known."""
    weights: dict[str, Decimal | int] = {}
    for (team, _, currency), each in usage.items():
        if cost.by == "tokens":
            weights[team] = weights.get(team, 0) + each.tokens
        elif each.money is None:
            return {}
        elif currency == cost.currency:
            weights[team] = weights.get(team, 0) + each.money
    return weights


def _own(lake: Records, month: str, machines: Machines, rules: Sequence[Rule], key: bytes) -> list[dict[str, object]]:
    """The rows of own machines: what they cost in the month, over the tokens that were computed on them."""
    begin, end = span_of(month, _ZONE)
    hours = Decimal(int((end - begin).total_seconds())) / _HOUR_S * machines.gpus
    whole = (hours * machines.gpu_hour).quantize(CENT, ROUND_HALF_EVEN, context=_WIDE)
    weights, tokens, rows = _computed(lake, month, machines, rules, key)
    busy = whole
    if machines.capacity:
        # More than the capacity that was stated is not cut down: idle money is then below nothing, which says so.
        share = sum(weights.values(), start=Decimal(0)) / (machines.capacity * hours)
        busy = (whole * share).quantize(CENT, ROUND_HALF_EVEN, context=_WIDE)
    if not any(weights.values()):
        busy = Decimal(0)
    parts = divided(busy, weights) if any(weights.values()) else {}
    out = [
        _row(month, PriceBasis.COMPUTED, machines.name, team, _how(team), None, machines.currency,
             Sum(tokens[team], paid, rows[team]))
        for team, paid in sorted(parts.items())
    ]  # fmt: skip
    if whole != busy:
        idle = Sum(0, whole - busy, 0)
        out.append(
            _row(month, PriceBasis.COMPUTED, machines.name, IDLE, AllocatedAs.IDLE, None, machines.currency, idle)
        )
    return out


def _computed(
    lake: Records, month: str, machines: Machines, rules: Sequence[Rule], key: bytes
) -> tuple[dict[str, Decimal], dict[str, int], dict[str, int]]:
    """Team -> weighted computed tokens, computed tokens, and attempts; what an engine did not count is in none."""
    begin, end = span_of(month, _ZONE)
    names = ("attempt_hi", "attempt_lo", "source", "revision", "framework", "prefill_computed", "output_computed",
             "tenant", "task", "route", "provider", "model_served", "model_requested")  # fmt: skip
    rows = lake.scan("attempt", first=begin.date(), last=end.date(), columns=[*names, "arrived_at", "day"])
    at = pl.coalesce("arrived_at", pl.col("day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC"))
    own = pl.col("source") == machines.source if machines.source else pl.col("framework") == machines.framework
    latest = rows.filter((at >= begin) & (at < end) & own).sort("source", "revision")
    kept = latest.unique(["attempt_hi", "attempt_lo", "source"], keep="last", maintain_order=True)
    weights: defaultdict[str, Decimal] = defaultdict(Decimal)
    tokens: defaultdict[str, int] = defaultdict(int)
    number: defaultdict[str, int] = defaultdict(int)
    for row in kept.collect().iter_rows(named=True):
        team = _team(rules, {**row, "model": row["model_served"] or row["model_requested"]}, key)
        prefill, decode = row["prefill_computed"] or 0, row["output_computed"] or 0
        weights[team] += prefill * machines.prefill_weight + decode * machines.decode_weight
        tokens[team] += prefill + decode
        number[team] += 1
    return dict(weights), dict(tokens), dict(number)


def _row(
    month: str, basis: PriceBasis, pool: str, team: str, how: AllocatedAs, provider: str | None, currency: str | None,
    told: Sum,
) -> dict[str, object]:  # fmt: skip
    return {
        "period": month,
        "basis": str(basis),
        "pool": pool,
        "team": team,
        "allocated_as": str(how),
        "provider": provider,
        "tokens": told.tokens,
        "amount": told.money,
        "currency": currency,
        "rows": told.rows,
    }
