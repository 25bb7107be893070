"""Strategies side by side: what was billed, computed and attended under each, and what the latest comparison says."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from weighbridge.pipeline.report.exact import ratio, tokens
from weighbridge.pipeline.report.facts import readable
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Row, Sheet, Value
from weighbridge.pipeline.report.view import ATTEMPT, View, collect
from weighbridge.schemas.comparison_run import ACTED

_COUNTS = ("input_computed", "output_computed", "forward", "attended", "attended_dense", "kv_appended", "kv_evicted")
# A share is that of attempts of which both are known: a sum over some attempts is no part of one over all.
_SHARES = {"attended_share": ("attended", "attended_dense"), "kv_share": ("kv_evicted", "kv_appended")}
_PLACES = Decimal("0.0001")
STRATEGIES = (
    Column("strategy", "Strategy"),
    Column("strategy_id", "Id", Kind.CODE, short=8),
    Column("attempts", "Attempts", Kind.COUNT),
    Column("billed", "Billed", Kind.COUNT),
    Column("computed", "Computed", Kind.COUNT),
    Column("forward", "Forward passes", Kind.COUNT),
    Column("attended", "Attended", Kind.COUNT),
    Column("attended_dense", "Attended if dense", Kind.COUNT),
    Column("attended_share", "of it", Kind.SHARE),
    Column("kv_evicted", "KV entries evicted", Kind.COUNT),
    Column("kv_share", "of those written", Kind.SHARE),
)
COMPARISON = (
    Column("strategy", "Strategy"),
    Column("judgement", "Judgement", Kind.BADGE),
    Column("recommended", "Recommended"),
    Column("pairs", "Prompts", Kind.COUNT),
    Column("acted", "of them acted on", Kind.COUNT),
    Column("measure", "Decided by", Kind.CODE),
    Column("loss", "Loss", Kind.CHANGE),
    Column("loss_low", "at least", Kind.CHANGE),
    Column("loss_high", "at most", Kind.CHANGE),
    Column("margin", "Margin", Kind.SHARE),
    Column("resource", "Saves", Kind.CODE),
    Column("saved", "how much", Kind.CHANGE),
    Column("computed", "Forward passes", Kind.COUNT),
    Column("attended", "Attended", Kind.COUNT),
    Column("attended_dense", "Attended if dense", Kind.COUNT, page=False),
    Column("kv_entries", "KV entries at the end", Kind.COUNT, page=False),
    Column("kv_bytes", "KV bytes at peaks", Kind.COUNT),
    Column("seconds", "Seconds", Kind.DECIMAL),
    Column("amount", "Costs", Kind.MONEY, currency_in="currency"),
    Column("currency", "Currency", page=False),
    Column("unshown", "No effect shown", Kind.COUNT, sparse=True),
    Column("model", "Model", page=False),
    Column("parameters", "Parameters", Kind.CODE, page=False),
    Column("implementation", "Implementation", Kind.CODE, page=False),
    Column("comparison_id", "Comparison", Kind.CODE, page=False),
)
RECOMMENDATIONS = (
    Column("strategy", "Strategy"),
    Column("model", "Model"),
    Column("state", "State", Kind.BADGE),
    Column("on", "Since", Kind.DAY),
    Column("parameters", "Parameters", Kind.CODE),
    Column("resource", "Saves", Kind.CODE),
    Column("saved", "how much", Kind.CHANGE),
    Column("loss", "Loss", Kind.CHANGE),
    Column("recommendation_id", "Id", Kind.CODE, short=8),
)


def strategies(view: View) -> Sheet:
    """Per strategy what its attempts of the period were billed, computed and attended; most attended first."""
    seen = (
        view.dated("attempt", [*ATTEMPT, "day", "source", "strategy_id", *_COUNTS])
        .sort("source")
        .group_by(ATTEMPT)
        .agg(*(pl.col(name).drop_nulls().first() for name in ("strategy_id", *_COUNTS)))
        .drop_nulls("strategy_id")
    )
    told = (
        view.dated("reading", [*ATTEMPT, "day", "verdict", "total"])
        .filter(readable())
        .group_by(ATTEMPT)
        .agg(tokens("total").alias("billed"))
    )
    grouped = (
        seen.join(told, on=ATTEMPT, how="left")
        .with_columns(
            *(
                pl.when(pl.col(part).is_not_null() & pl.col(whole).is_not_null())
                .then(pl.col(name))
                .alias(f"{share} {name}")
                for share, (part, whole) in _SHARES.items()
                for name in (part, whole)
            ),
            computed=pl.col("input_computed") + pl.col("output_computed"),
        )
        .group_by("strategy_id")
        .agg(
            pl.len().cast(pl.Int64).alias("attempts"),
            *(tokens(name) for name in ("billed", "computed", *_COUNTS[2:])),
            *(tokens(f"{share} {name}") for share, both in _SHARES.items() for name in both),
        )
    )
    names = _names(view)
    rows = collect(grouped).sort(pl.col("attended").fill_null(-1), "strategy_id", descending=[True, False])
    return Sheet(
        name="strategies",
        title="Billed, computed and attended, by strategy",
        columns=STRATEGIES,
        rows=tuple(_of_strategy(row, names) for row in rows.iter_rows(named=True)),
        unit="tokens; keys attended",
        sources=("attempt", "reading", "comparison"),
        empty="No attempt of this period says under which strategy it was computed.",
        note="Billed is what usage reports say, computed what the engine verified, attended how many keys attention "
        "read: three scales, never one. Attempts that name no strategy are left out; off is a strategy as well.",
    )


def _names(view: View) -> dict[str, str]:
    """Strategies that comparisons of the period know by name."""
    rows = view.read("comparison", ["day", "made_at", "strategy", "strategy_id"]).drop_nulls("strategy_id")
    held = collect(rows).sort("made_at", "strategy")
    return dict(zip(held["strategy_id"], held["strategy"], strict=True))


def _of_strategy(row: dict[str, Any], names: dict[str, str]) -> Row:
    shares = {share: ratio(row[f"{share} {part}"], row[f"{share} {whole}"]) for share, (part, whole) in _SHARES.items()}
    told = {**row, **shares, "strategy": names.get(row["strategy_id"], BLANK)}
    return tuple(told[column.name] for column in STRATEGIES)


def comparison(view: View) -> Sheet:
    """The latest comparison of the period: its baseline, then its strategies, most saving first."""
    wanted = list(dict.fromkeys(["day", "made_at", "baseline", *_names_of(COMPARISON)]))
    rows = view.read("comparison", wanted).filter(pl.col("day").is_between(view.period.first, view.period.last))
    held = collect(rows)
    if held.height:
        last = held.sort("made_at", "comparison_id")["comparison_id"][-1]
        held = held.filter(pl.col("comparison_id") == last)
    whole = {row["strategy"]: row["saved"] for row in held.iter_rows(named=True)}

    def place(row: dict[str, Any]) -> tuple[object, ...]:
        name = row["strategy"].removesuffix(ACTED)
        saved = whole.get(name)
        return (not row["baseline"], saved is None, -(saved or 0.0), name, row["strategy"])

    order = sorted(held.iter_rows(named=True), key=place)
    return Sheet(
        name="comparison",
        title="The latest comparison: what strategies save and what they lose",
        columns=COMPARISON,
        rows=tuple(_of_comparison(row) for row in order),
        sources=("comparison",),
        empty="No strategy was compared with its baseline in this period; `weighbridge compare run` does it.",
        note="The first row is the baseline. A loss is that of the measure that decides, with its interval; below zero "
        "the strategy is better. Of a strategy that acted on some prompts only, as state events or counts of the run "
        "say, those are a row of their own: it is not worse where its loss is inside of the margin on both. "
        "Recommended is what saves most among those that are not worse and that nobody refused.",
    )


def _names_of(columns: Sequence[Column]) -> list[str]:
    """The columns that are read; what it acted on is what is left of all."""
    return [column.name for column in columns if column.name != "acted"]


def _of_comparison(row: dict[str, Any]) -> Row:
    row = row | {"acted": None if row["baseline"] or row["unshown"] is None else row["pairs"] - row["unshown"]}
    told: dict[str, Value] = {column.name: row[column.name] for column in COMPARISON}
    if row["strategy"].endswith(ACTED):
        told["strategy"] = f"{row['strategy'].removesuffix(ACTED)}, where it acted"
    for name in ("loss", "loss_low", "loss_high", "margin", "saved", "seconds"):
        told[name] = _exact(row[name])
    for name in ("judgement", "measure", "resource", "model", "implementation", "currency"):
        told[name] = BLANK if row[name] is None else row[name]
    told["judgement"] = "baseline" if row["baseline"] else told["judgement"]
    told["recommended"] = "yes" if row["recommended"] else BLANK
    return tuple(told[column.name] for column in COMPARISON)


def recommendations(view: View) -> Sheet:
    """What became of every recommendation, as it stood when the period ended."""
    rows = collect(view.whole("recommendation")).with_columns(on=pl.col("changed_at").dt.date())
    held = rows.filter(pl.col("on") <= view.period.last).sort("recommendation_id", "change")
    last = held.group_by("recommendation_id", maintain_order=True).last()
    order = last.sort("on", "strategy", "recommendation_id", descending=[True, False, False])
    return Sheet(
        name="recommendations",
        title="What became of recommended strategies",
        columns=RECOMMENDATIONS,
        rows=tuple(_of_recommendation(row) for row in order.iter_rows(named=True)),
        sources=("recommendation",),
        empty="No strategy was recommended until the end of this period.",
        note="Proposed by a comparison, applied or refused by a person, verified by the next comparison.",
        dated=False,
    )


def _of_recommendation(row: dict[str, Any]) -> Row:
    told: dict[str, Value] = {column.name: row[column.name] for column in RECOMMENDATIONS}
    for name in ("model", "resource"):
        told[name] = BLANK if row[name] is None else row[name]
    return tuple(_exact(value) if isinstance(value, float) else value for value in told.values())


def _exact(value: object) -> Decimal | None:
    """A measured figure to four places: more are no use beside its interval."""
    return Decimal(repr(value)).quantize(_PLACES) if isinstance(value, float) else None
