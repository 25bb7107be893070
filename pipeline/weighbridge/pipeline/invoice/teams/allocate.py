"""Allocate a month: usage to teams by rule, shared costs by share, own machines by computed tokens.

Usage is what our calls cost at the list prices of their days (basis `reported`), or, where the file asks for it, what
the bill comes to after discounts, credits and minimums (basis `invoiced`); machines are the one thing that is priced
by what an engine computed (basis `computed`). What is used and what is idle of machines stand apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

import polars as pl

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.rates import WIDE
from weighbridge.pipeline.invoice.sums import exactly
from weighbridge.pipeline.invoice.teams.allocation import Allocation, Machines, Rule, Shared
from weighbridge.pipeline.invoice.teams.borne import Sum, Sums, how_of, invoiced, team_of, used
from weighbridge.pipeline.invoice.teams.shares import CENT, divided
from weighbridge.pipeline.invoice.zones import span_of
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AllocatedAs, PriceBasis
from weighbridge.schemas.tables import UNASSIGNED

USAGE, INVOICE = "usage", "invoice"
IDLE = "idle"
_ZONE = "UTC"
_HOUR_S = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Allocated:
    """Rows of the table `allocated` of one month."""

    month: str
    rows: Sequence[Mapping[str, object]] = field(default_factory=list)


def allocate(
    lake: Lake, allocation: Allocation, month: str, key: bytes, contracts: Mapping[str, Contract] | None = None
) -> Allocated:
    """Allocate a month and write `allocated`; a second run on the same lake changes nothing.

    Args:
        lake: readings and prices, up to date; where bills are allocated, these as they were reconciled last.
        allocation: rules, shared costs and machines.
        month: `YYYY-MM`, in UTC; what is invoiced is that of the provider's billing month.
        key: the installation's pseudonym key, for tenants that rules name by their names.
        contracts: provider -> what was agreed, for its billing zone and names of models.

    Raises:
        ConfigError: a shared cost has nothing to be divided by.
        ContractError, SumError: sums leave the range of the lake.
        LakeBusyError: another process is writing.
    """
    done = allocated(lake, allocation, month, key, contracts)
    frame = pl.DataFrame(done.rows, schema=polars_schema("allocated"), infer_schema_length=None)
    with lake.lock():
        kept = lake.scan("allocated").filter(pl.col("period") != month).collect()
        lake.replace("allocated", pl.concat([kept, frame]), days=None)
    return done


@exactly
def allocated(
    lake: Records, allocation: Allocation, month: str, key: bytes, contracts: Mapping[str, Contract] | None = None
) -> Allocated:
    """The same, without writing it."""
    usage = used(lake, allocation.rules, month, key)
    billed = invoiced(lake, allocation.rules, month, key, contracts or {}) if allocation.invoiced else {}
    rows = [_row(month, PriceBasis.INVOICED, INVOICE, *about, each) for about, each in billed.items()]
    providers = {provider for _, _, provider, _ in billed}
    rows += [_row(month, PriceBasis.REPORTED, USAGE, team, how_of(team), provider, currency, each)
             for (team, provider, currency), each in usage.items() if provider not in providers]  # fmt: skip
    for cost in allocation.shared:
        rows += _shared(month, cost, usage)
    for machines in allocation.machines:
        rows += _own(lake, month, machines, allocation.rules, key)
    return Allocated(month, rows)


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
    whole = (hours * machines.gpu_hour).quantize(CENT, ROUND_HALF_EVEN, context=WIDE)
    weights, tokens, rows = _computed(lake, month, machines, rules, key)
    busy = whole
    if machines.capacity:
        # More than the capacity that was stated is not cut down: idle money is then below nothing, which says so.
        share = sum(weights.values(), start=Decimal(0)) / (machines.capacity * hours)
        busy = (whole * share).quantize(CENT, ROUND_HALF_EVEN, context=WIDE)
    if not any(weights.values()):
        busy = Decimal(0)
    parts = divided(busy, weights) if any(weights.values()) else {}
    out = [
        _row(month, PriceBasis.COMPUTED, machines.name, team, how_of(team), None, machines.currency,
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
        team = team_of(rules, {**row, "model": row["model_served"] or row["model_requested"]}, key)
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
