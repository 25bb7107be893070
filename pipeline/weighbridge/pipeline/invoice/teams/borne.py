"""What teams bear of a month: of usage what their own calls cost, of a bill their part of each line.

    bill                         divided by
    tokens of a model      90    what the calls of each team cost with this model, at list prices
    tokens without one      5    what all calls of each team cost
    credit, minimum, tax  -10    what all calls of each team cost
    another service         7    nothing: it is unassigned

So those who use a model have the discount on it. Parts add up to the bill. What nobody of ours used, or what cannot be
divided as a price is missing, stays unassigned. Calls that failed, and tries that another followed, divide nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.ours.usage import call_days
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.sums import countable, exactly, guarded
from weighbridge.pipeline.invoice.teams.allocation import ABOUT, Rule
from weighbridge.pipeline.invoice.teams.shares import divided
from weighbridge.pipeline.invoice.zones import span_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.bounds import summable
from weighbridge.schemas.enumerations import AllocatedAs, ChargedBy, LineKind
from weighbridge.schemas.tables import UNASSIGNED

_KEY = ("attempt_hi", "attempt_lo")
_BY = ("tenant", "provider", "named", "task", "route", "currency")


@dataclass(slots=True)
class Sum:
    """What a team has of something; money is null once any part of it is unknown."""

    tokens: int = 0
    money: Decimal | None = Decimal(0)
    rows: int = 0

    def add(self, tokens: int | None, money: Decimal | None, rows: int = 1) -> None:
        """Add some calls."""
        self.tokens = countable(self.tokens + (tokens or 0))
        self.money = None if self.money is None or money is None else self.money + money
        self.rows += rows


Sums = dict[tuple[str, str | None, str | None], Sum]
# (team, how it came to it, provider, currency) -> what it bears of the bill.
Borne = dict[tuple[str, AllocatedAs, str | None, str | None], Sum]


@exactly
def used(lake: Records, rules: Sequence[Rule], month: str, key: bytes) -> Sums:
    """(team, provider, currency) -> its usage of a UTC month at list prices."""
    out: defaultdict[tuple[str, str | None, str | None], Sum] = defaultdict(Sum)
    providers = lake.scan("reading", columns=["provider"]).unique().collect()["provider"].drop_nulls().sort()
    for provider in providers:
        for (team, _, currency), each in _by_model(lake, rules, provider, span_of(month, "UTC"), {}, key).items():
            out[team, provider, currency].add(each.tokens, each.money, each.rows)
    return dict(sorted(out.items(), key=repr))


@exactly
def invoiced(lake: Records, rules: Sequence[Rule], month: str, key: bytes, contracts: Mapping[str, Contract]) -> Borne:
    """What each team bears of the bills of a month, after discounts, credits, minimums and all else that is on them.

    Args:
        lake: bills as they were reconciled last.
        rules: whose calls are whose.
        month: the billing month.
        key: the installation's pseudonym key.
        contracts: provider -> what was agreed, for its billing zone and names of models.
    """
    cells = lake.scan("invoice_gap").filter(
        pl.col("period") == month, pl.col("against") == str(ChargedBy.INVOICE), pl.col("unit") != "tokens"
    )
    out: defaultdict[tuple[str, AllocatedAs, str | None, str | None], Sum] = defaultdict(Sum)
    billed = cells.filter(pl.col("lines") > 0).collect()
    for (provider, currency), own in sorted(billed.partition_by("provider", "unit", as_dict=True).items()):
        contract = contracts.get(str(provider)) or Contract(str(provider))
        span = span_of(month, contract.zone)
        usage = _by_model(lake, rules, str(provider), span, contract.models, key, charged=True)
        for (model, kind), paid, lines in _charged(own):
            how = AllocatedAs.DIRECT if kind == LineKind.TOKENS and model is not None else AllocatedAs.SHARED
            none = paid is None or kind == LineKind.OTHER_SERVICE
            weights = None if none else _weights(usage, model if how is AllocatedAs.DIRECT else None)
            parts: Mapping[str, Decimal | None] = {UNASSIGNED: paid}
            if paid is not None and weights:
                parts = divided(paid, weights)
            for team, part in parts.items():
                about = team, AllocatedAs.UNASSIGNED if team == UNASSIGNED else how, str(provider), str(currency)
                out[about].add(0, part, lines)
    return dict(sorted(out.items(), key=repr))


def _charged(cells: pl.DataFrame) -> Iterator[tuple[tuple[str | None, str | None], Decimal | None, int]]:
    """(model, kind) -> what its lines charge, null where any of them is not known, and how many they are."""
    found: dict[tuple[str | None, str | None], tuple[Decimal | None, int]] = {}
    for row in cells.sort("cell").iter_rows(named=True):
        about = row["model"], row["kind"]
        paid, lines = found.get(about, (Decimal(0), 0))
        known = None if paid is None or row["charged"] is None else paid + row["charged"]
        found[about] = known, lines + row["lines"]
    for about, (paid, lines) in sorted(found.items(), key=repr):
        yield about, paid, lines


def _weights(usage: Mapping[tuple[str, str | None, str | None], Sum], model: str | None) -> dict[str, Decimal | int]:
    """Team -> what its usage cost, of a model or of all; none where any of it is not known, or currencies are mixed."""
    own = {about: each for about, each in usage.items() if model is None or about[1] == model}
    if any(each.money is None for each in own.values()) or len({currency for _, _, currency in own}) != 1:
        return {}
    weights: dict[str, Decimal | int] = {}
    for (team, _, _), each in own.items():
        weights[team] = weights.get(team, 0) + (each.money or 0)
    return weights if any(weights.values()) and min(weights.values()) >= 0 else {}


def _by_model(
    lake: Records,
    rules: Sequence[Rule],
    provider: str,
    span: Span,
    models: Mapping[str, str],
    key: bytes,
    *,
    charged: bool = False,
) -> dict[tuple[str, str | None, str | None], Sum]:
    """(team, model, currency) -> its usage at list prices; `charged`: only of calls that are charged as agreed."""
    out: defaultdict[tuple[str, str | None, str | None], Sum] = defaultdict(Sum)
    about = _attempts(lake, span)
    named = [_named(rule, key) for rule in rules]
    for frame in call_days(lake, provider, span, models, ("total",)):
        kept = frame.filter(~pl.col("failed") & ~pl.col("superseded")) if charged else frame
        known = guarded(kept.join(about, on=list(_KEY), how="left"), "total").pipe(summable, ("amount",), "costs")
        held = known.group_by(_BY, maintain_order=True).agg(
            tokens=pl.col("total").sum(),
            money=pl.when(pl.col("amount").null_count() == 0).then(pl.col("amount").sum()),
            rows=pl.len().cast(pl.Int64),
        )
        for row in held.iter_rows(named=True):
            team = _first(named, {**row, "model": row["named"]})
            out[team, row["named"], row["currency"]].add(row["tokens"], row["money"], row["rows"])
    return dict(out)


def _attempts(lake: Records, span: Span) -> pl.DataFrame:
    """Task and route of attempts, last revisions: of the first source by name that knows one."""
    rows = lake.scan("attempt", columns=["attempt_hi", "attempt_lo", "source", "revision", "task", "route", "day"])
    inside = rows.filter(pl.col("day").is_between(span[0].date(), span[1].date()))
    latest = inside.sort("source", "revision").unique([*_KEY, "source"], keep="last", maintain_order=True)
    return latest.group_by(_KEY, maintain_order=True).agg(_known("task"), _known("route")).collect()


def _known(name: str) -> pl.Expr:
    """The first value that says anything; `unassigned` where some source says that and none more."""
    told = pl.col(name).drop_nulls()
    return pl.coalesce(told.filter(told != UNASSIGNED).first(), told.first()).alias(name)


def team_of(rules: Sequence[Rule], row: Mapping[str, object], key: bytes) -> str:
    """The team of the first rule that fits; nobody's is unassigned."""
    return _first([_named(rule, key) for rule in rules], row)


def _named(rule: Rule, key: bytes) -> tuple[str, dict[str, frozenset[str]]]:
    """The team of a rule, and what its calls have: names of tenants as their pseudonyms."""
    about = {name: frozenset(_values(name, told, key)) for name, told in rule.about.items()}
    return rule.team, about


def _first(rules: Sequence[tuple[str, Mapping[str, frozenset[str]]]], row: Mapping[str, object]) -> str:
    for team, about in rules:
        if all(row.get(name) in told for name, told in about.items()):
            return team
    return UNASSIGNED


def _values(name: str, told: Sequence[str], key: bytes) -> Sequence[str]:
    assert name in ABOUT
    return [tenant(key, each) for each in told] if name == "tenant" else told


def how_of(team: str) -> AllocatedAs:
    """How usage comes to a team."""
    return AllocatedAs.UNASSIGNED if team == UNASSIGNED else AllocatedAs.DIRECT
