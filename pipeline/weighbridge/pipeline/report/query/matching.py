"""How attempts and reports met, and what the residuals may cost."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.report.exact import amount, tokens
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Sheet, rows_of
from weighbridge.pipeline.report.view import ATTEMPT, View, collect
from weighbridge.schemas.enumerations import Direction, MatchedBy

MATCHES = (
    Column("matched_by", "Met by", Kind.CODE),
    Column("meaning", "What that is"),
    Column("attempts", "Attempts", Kind.COUNT, adds=True),
)
RESIDUALS = (
    Column("provider", "Provider"),
    Column("model", "Model"),
    Column("direction", "Direction"),
    Column("currency", "Currency"),
    Column("low", "At least", Kind.MONEY, currency_in="currency"),
    Column("high", "At most", Kind.MONEY, currency_in="currency"),
    Column("residual", "Residual", Kind.SIGNED),
    Column("comparisons", "Comparisons", Kind.COUNT),
)
MATCH_WORDS = {
    MatchedBy.KEY: "one recorder wrote both sides, or its id was carried along",
    MatchedBy.ALIAS: "two sources know one identifier of another system",
    MatchedBy.REQUEST: "two sources know the request, or it is a further try of one that was seen",
    MatchedBy.TIME: "an identifier was used several times; time and parameters leave one partner",
    MatchedBy.AMBIGUOUS: "several partners are possible; their ids are kept with the attempt",
}


def matches(view: View) -> Sheet:
    """How many attempts met their reports by what; those with one side only are in no row."""
    told = view.dated("reconciled", [*ATTEMPT, "day", "direction", "matched_by"])
    own = told.filter(pl.col("matched_by").is_not_null()).group_by(ATTEMPT).agg(pl.col("matched_by").max())
    counts = dict(collect(own.group_by("matched_by").agg(pl.len().cast(pl.Int64))).iter_rows())
    rows = [(str(how), words, counts[str(how)]) for how, words in MATCH_WORDS.items() if str(how) in counts]
    return Sheet(
        name="matches",
        title="How attempts and reports met",
        columns=MATCHES,
        rows=tuple(rows),
        total=("All", "", sum(counts.values())) if rows else None,
        sources=("reconciled",),
        empty="No attempt has both sides in this period.",
        note="Attempts with one side only, and none that it may have met, are not in here.",
    )


def residual_money(view: View) -> Sheet:
    """What residuals may cost: their class is not known, so from the cheapest class of their price to the dearest."""
    wanted = ["provider", "model", "direction", "residual", "residual_low", "residual_high", "residual_currency"]
    left = view.dated("reconciled", [*ATTEMPT, "day", *wanted]).filter(pl.col("residual") != 0)
    grouped = left.group_by("provider", "model", "direction", currency="residual_currency").agg(
        tokens("residual"),
        pl.len().cast(pl.Int64).alias("comparisons"),
        amount(pl.col("residual_low")).alias("low"),
        amount(pl.col("residual_high")).alias("high"),
    )
    order = {str(direction): place for place, direction in enumerate(Direction)}
    ranked = collect(grouped).sort(
        pl.col("high").abs(),
        pl.col("residual").abs(),
        "provider",
        "model",
        pl.col("direction").replace_strict(order, return_dtype=pl.Int64),
        "currency",
        descending=[True, True, False, False, False, False],
        nulls_last=True,
    )
    return Sheet(
        name="residual_money",
        title="What the residuals may cost",
        columns=RESIDUALS,
        rows=rows_of(ranked.with_columns(pl.col("currency").fill_null(BLANK)), RESIDUALS),
        sources=("reconciled",),
        empty="No residual is left in this period.",
        note="A residual is of no known class: at least is by the cheapest class its price row has, at most by the "
        "dearest. Where no price is known both are unknown.",
    )
