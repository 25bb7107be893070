"""Where the tokens and the money go: by task, route, model and tenant."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.report.exact import MEAN_PLACES, percentile, ratio, tokens
from weighbridge.pipeline.report.facts import currencies, facts, money_column
from weighbridge.pipeline.report.query.totals import amount_in, money_columns, without_price
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet
from weighbridge.pipeline.report.view import View


def by_task(view: View) -> Sheet:
    """By task type."""
    return _scenario(view, "by_task", "By task", (Column("task", "Task"),))


def by_route(view: View) -> Sheet:
    """By route."""
    return _scenario(view, "by_route", "By route", (Column("route", "Route"),))


def by_model(view: View) -> Sheet:
    """By model and who answered."""
    return _scenario(view, "by_model", "By model", (Column("model", "Model"), Column("provider", "Provider")))


def by_tenant(view: View) -> Sheet:
    """By tenant, under its pseudonym."""
    return _scenario(view, "by_tenant", "By tenant", (Column("tenant", "Tenant", Kind.CODE),))


def _columns(view: View, names: Sequence[Column]) -> tuple[Column, ...]:
    money = [
        column
        for amount, currency in zip(money_columns(view), view.get(currencies), strict=True)
        for column in (amount, Column(f"share_{currency.lower()}", f"Share of {currency}", Kind.SHARE, adds=True))
    ]
    return (
        *names,
        Column("attempts", "Attempts", Kind.COUNT, adds=True),
        Column("input_tokens", "Input", Kind.COUNT, adds=True),
        Column("output_tokens", "Output", Kind.COUNT, adds=True),
        Column("tokens", "Tokens", Kind.COUNT, adds=True),
        Column("token_share", "Share of tokens", Kind.SHARE, adds=True),
        *money,
        Column("tokens_average", "Average", Kind.MEAN),
        Column("tokens_p50", "p50", Kind.COUNT),
        Column("tokens_p95", "p95", Kind.COUNT),
        Column("attempts_without_usage", "Without usage", Kind.COUNT, adds=True, sparse=True),
        Column("attempts_without_price", "Without price", Kind.COUNT, adds=True, sparse=True),
    )


def _sums(view: View) -> list[pl.Expr]:
    return [
        pl.len().cast(pl.Int64).alias("attempts"),
        tokens("input").alias("input_tokens"),
        tokens("output").alias("output_tokens"),
        tokens("tokens"),
        pl.col("tokens").count().cast(pl.Int64).alias("known"),
        percentile("tokens", 50).alias("tokens_p50"),
        percentile("tokens", 95).alias("tokens_p95"),
        (pl.col("reports") == 0).sum().cast(pl.Int64).alias("attempts_without_usage"),
        without_price().alias("attempts_without_price"),
        *(amount_in(name) for name in view.get(currencies)),
    ]


def _scenario(view: View, name: str, title: str, names: tuple[Column, ...]) -> Sheet:
    frame, sums, columns = view.get(facts), _sums(view), _columns(view, names)
    keys = [column.name for column in names]
    grouped = frame.group_by(keys).agg(sums)
    whole = frame.select(sums).row(0, named=True)
    found = view.get(currencies)
    lead = [money_column(found[0])] if len(found) == 1 else []
    order = [*lead, "tokens", "attempts"]
    ranked = grouped.sort([*order, *keys], descending=[True] * len(order) + [False] * len(keys), nulls_last=True)
    rows = tuple(_row(values, whole, columns) for values in ranked.iter_rows(named=True))
    labels: dict[str, object] = {key: ("All" if key == keys[0] else "") for key in keys}
    return Sheet(
        name=name,
        title=title,
        columns=columns,
        rows=rows,
        total=_row({**whole, **labels}, whole, columns) if rows else None,
        unit="reported tokens; average, p50 and p95 per attempt",
        sources=("attempt", "reading", "priced_amount"),
        empty="No attempts in this period.",
        shown=12,
    )


def _row(values: dict[str, object], whole: dict[str, object], columns: Sequence[Column]) -> Row:
    derived: dict[str, object] = {
        "token_share": ratio(values["tokens"], whole["tokens"]),
        "tokens_average": ratio(values["tokens"], values["known"], MEAN_PLACES),
    }
    for column in columns:
        if column.currency:
            derived[f"share_{column.currency.lower()}"] = ratio(values[column.name], whole[column.name])
    return tuple({**values, **derived}[column.name] for column in columns)  # type: ignore[misc]
