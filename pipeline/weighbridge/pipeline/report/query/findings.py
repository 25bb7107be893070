"""What is wrong: the findings of the period with their state, how many are open, and what to do about them first."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.reconcile.life.status import life
from weighbridge.pipeline.report.exact import amount, tokens
from weighbridge.pipeline.report.facts import money_column
from weighbridge.pipeline.report.sheet import Column, Kind, Sheet, rows_of
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import FindingState, Severity

SHORT = 8
NAMED = 3  # findings that are named for a cure; the others are counted
# States in which a finding still asks for something. A waiver counts until its last day.
LIVE = (FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.DISPUTED)
ALL_PERIODS = "all"

FINDINGS = (
    Column("severity", "Severity", Kind.BADGE),
    Column("code", "Finding", Kind.CODE),
    Column("subject", "Subject"),
    Column("rows", "Rows", Kind.COUNT),
    Column("expected", "Expected", Kind.COUNT),
    Column("observed", "Observed", Kind.COUNT),
    Column("difference", "Difference", Kind.SIGNED),
    Column("unit", "Unit"),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency"),
    Column("currency", "Currency"),
    Column("confidence", "Confidence"),
    Column("state", "State", Kind.BADGE),
    Column("waived_until", "Waived until", Kind.DAY, page=False),
    Column("short_id", "Id", Kind.CODE),
    Column("cure", "What to do", Kind.PROSE),
    Column("cause", "Cause", Kind.CODE, page=False),
    Column("grade", "Grade", page=False),
    Column("first_day", "First day", Kind.DAY, page=False),
    Column("last_day", "Last day", Kind.DAY, page=False),
    Column("finding_id", "Full id", Kind.CODE, page=False),
)
OPEN = (
    Column("severity", "Severity", Kind.BADGE),
    Column("open_findings", "Open findings", Kind.COUNT, adds=True),
    Column("rows", "Rows they stand for", Kind.COUNT, adds=True),
    Column("other_findings", "Waived, credited or closed", Kind.COUNT, adds=True),
)
AT_STAKE = (
    Column("currency", "Currency"),
    Column("charged_too_much", "Charged too much", Kind.MONEY, currency_in="currency"),
    Column("charged_too_little", "Charged too little", Kind.MONEY, currency_in="currency"),
    Column("findings", "Open findings", Kind.COUNT),
)
_WORST_FIRST = {str(severity): place for place, severity in enumerate(reversed(Severity))}


def held(view: View) -> pl.DataFrame:
    """The findings about the months of the period, and those about no month, with state and rank; worst first."""
    periods = [*view.period.months, ALL_PERIODS]
    # As it stood at the end of the period: a waiver that ended before is over, and the finding is open again.
    held = life(view.lake, view.period.last).filter(pl.col("period").is_in(periods))
    waived = pl.col("state") == str(FindingState.WAIVED)
    frame = held.with_columns(waived_until=pl.when(waived).then(pl.col("expires_on")))
    live = pl.col("state").is_in([str(state) for state in LIVE])
    return frame.with_columns(
        live=live,
        worst=pl.col("severity").replace_strict(_WORST_FIRST, return_dtype=pl.Int64),
        short_id=short_ids(frame["finding_id"]),
    ).sort(
        pl.col("live"),
        "worst",
        pl.col("amount").abs(),
        pl.col("difference").abs(),
        "code",
        "finding_id",
        descending=[True, False, True, True, False, False],
        nulls_last=True,
    )


def short_ids(ids: pl.Series, least: int = SHORT) -> pl.Series:
    """The shortest prefix, one length for all, that tells every id from the others."""
    length = least
    full = ids.n_unique()
    while length < 32 and ids.str.slice(0, length).n_unique() < full:
        length += 1
    return ids.str.slice(0, length)


def findings(view: View) -> Sheet:
    """Every finding of the period."""
    return Sheet(
        name="findings",
        title="Findings",
        columns=FINDINGS,
        rows=rows_of(view.get(held), FINDINGS),
        sources=("finding", "finding_status"),
        empty="No findings for this period.",
        shown=30,
    )


def open_findings(view: View) -> Sheet:
    """How many findings are open, by severity."""
    frame = view.get(held)
    live = pl.col("live")
    sums = frame.group_by("severity").agg(
        live.sum().cast(pl.Int64).alias("open_findings"),
        pl.col("rows").filter(live).cast(pl.Int128).sum().alias("rows"),
        (~live).sum().cast(pl.Int64).alias("other_findings"),
    )
    every = pl.DataFrame({"severity": [str(severity) for severity in reversed(Severity)]})
    filled = every.join(sums, on="severity", how="left", maintain_order="left").fill_null(0)
    return Sheet(
        name="open_findings",
        title="Open findings by severity",
        columns=OPEN,
        rows=rows_of(filled, OPEN),
        total=("all", *(int(filled[name].sum()) for name in ("open_findings", "rows", "other_findings"))),
        sources=("finding", "finding_status"),
        empty="No findings for this period.",
    )


def at_stake(view: View) -> Sheet:
    """Money in open findings, by currency and sign."""
    frame = view.get(held).filter(pl.col("live") & pl.col("amount").is_not_null())
    money = pl.col("amount")
    sums = frame.group_by("currency").agg(
        money.filter(money > 0).sum().alias("charged_too_much"),
        (-money.filter(money < 0)).sum().alias("charged_too_little"),
        pl.len().cast(pl.Int64).alias("findings"),
    )
    return Sheet(
        name="money_at_stake",
        title="Money in open findings",
        columns=AT_STAKE,
        rows=rows_of(sums.sort("currency"), AT_STAKE),
        sources=("finding", "finding_status"),
        empty="No open finding has a known amount.",
    )


def priorities(view: View) -> Sheet:
    """What to do next, one row per cure: most money first, then most tokens. Made from open findings only."""
    frame = view.get(held).filter(pl.col("live") & (pl.col("severity") != str(Severity.INFO)))
    found = _currencies(frame)
    columns = _priority_columns(found)
    return Sheet(
        name="priorities",
        title="What to do next month",
        columns=columns,
        rows=rows_of(_ranked(_by_cure(frame, found), found), columns),
        sources=("finding", "finding_status"),
        empty="No open finding asks for anything.",
        note=_NOTE + (_NOTE_SEVERAL if len(found) > 1 else ""),
        shown=15,
    )


_NOTE = "Most money first, then most tokens. A negative amount was charged too little."
_NOTE_SEVERAL = " Currencies are not compared: the one with most findings goes first."


def _currencies(frame: pl.DataFrame) -> list[str]:
    """The currencies of known amounts, the one with most findings first."""
    counted = frame.drop_nulls(["amount", "currency"]).group_by("currency").len()
    return list(counted.sort("len", "currency", descending=[True, False])["currency"])


def _priority_columns(found: Sequence[str]) -> tuple[Column, ...]:
    return (
        Column("rank", "Rank", Kind.COUNT),
        Column("cure", "What to do", Kind.PROSE),
        Column("code", "Finding", Kind.CODE),
        Column("severity", "Severity", Kind.BADGE),
        *(Column(money_column(name), f"Amount, {name}", Kind.MONEY, currency=name) for name in found),
        Column("tokens", "Tokens", Kind.COUNT),
        Column("findings", "Findings", Kind.COUNT, adds=True),
        Column("rows", "Rows", Kind.COUNT, adds=True),
        Column("about", "About, worst first", Kind.PROSE, page=False),
        Column("first_id", "First id", Kind.CODE),
    )


def _by_cure(frame: pl.DataFrame, found: Sequence[str]) -> pl.DataFrame:
    size = pl.when(pl.col("unit") == "tokens").then(pl.col("difference").abs())
    # A group keeps the order of its rows, which is worst first.
    of = pl.format("{} ({})", "short_id", pl.col("subject").str.replace_all("=", " ", literal=True))
    named = pl.when(pl.col("subject") == "").then("short_id").otherwise(of)
    return (
        frame.with_columns(size=size)
        .group_by("cure", "code")
        .agg(
            pl.col("worst").min(),
            *(amount(pl.col("amount").filter(pl.col("currency") == name)).alias(money_column(name)) for name in found),
            tokens("size").alias("tokens"),
            pl.len().cast(pl.Int64).alias("findings"),
            pl.col("rows").cast(pl.Int128).sum().alias("rows"),
            named.head(NAMED).str.join(", ").alias("about"),
            pl.col("short_id").first().alias("first_id"),
        )
    )


def _ranked(sums: pl.DataFrame, found: Sequence[str]) -> pl.DataFrame:
    names = {place: severity for severity, place in _WORST_FIRST.items()}
    money = [pl.col(money_column(name)).abs() for name in found]
    keys = [*money, pl.col("tokens"), pl.col("worst"), pl.col("rows"), pl.col("code"), pl.col("cure")]
    falling = [*(True for _ in money), True, False, True, False, False]
    frame = sums.with_columns(severity=pl.col("worst").replace_strict(names, return_dtype=pl.String))
    ranked = frame.sort(keys, descending=falling, nulls_last=True)
    return ranked.with_row_index("rank", offset=1).with_columns(pl.col("rank").cast(pl.Int64))
