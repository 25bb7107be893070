"""From observed to reported: the gap, the causes that explain it, and the residual that is left, in exact integers."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.report.exact import amount, ratio, tokens
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Row, Sheet, rows_of
from weighbridge.pipeline.report.view import ATTEMPT, View, collect
from weighbridge.schemas.enumerations import Confidence, Direction, Status

OBSERVED, RESIDUAL, REPORTED = "observed", "residual", "reported"
COMPARED = ("observed", "reported", "gap", "explained", "residual")

WATERFALL = (
    Column("direction", "Direction"),
    Column("step", "Step", Kind.CODE),
    Column("meaning", "What it is"),
    Column("change", "Change", Kind.SIGNED),
    Column("tokens", "Tokens", Kind.COUNT),
    Column("attempts", "Attempts", Kind.COUNT),
    Column("certain", "of them certain", Kind.COUNT),
)
CAUSE_MONEY = (
    Column("cause", "Cause", Kind.CODE),
    Column("currency", "Currency"),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency"),
    Column("tokens", "Tokens", Kind.SIGNED),
    Column("comparisons", "Comparisons", Kind.COUNT),
)
STATUSES = (
    Column("direction", "Direction"),
    Column("status", "Status", Kind.BADGE),
    Column("grade", "Grade"),
    Column("attempts", "Attempts", Kind.COUNT, adds=True),
    Column("observed", "Observed", Kind.COUNT, adds=True),
    Column("reported", "Reported", Kind.COUNT, adds=True),
    Column("gap", "Gap", Kind.SIGNED, adds=True),
    Column("explained", "Explained", Kind.SIGNED, adds=True),
    Column("residual", "Residual", Kind.SIGNED, adds=True),
)
OUTCOMES = (
    Column("status", "Status", Kind.BADGE),
    Column("meaning", "Meaning"),
    Column("attempts", "Attempts", Kind.COUNT, adds=True),
    Column("share", "Share", Kind.SHARE, adds=True),
)
STATUS_WORDS = {
    Status.UNEXPLAINED: "a residual is left that no cause explains",
    Status.PROVISIONAL: "the period is open, data may still come",
    Status.EXPLAINED: "named causes add up to the gap",
    Status.MATCHED: "both sides agree to the token",
    Status.NOT_COMPARED: "only one side exists",
}
_WORST_FIRST = tuple(STATUS_WORDS)
BY_MODEL = (
    Column("model", "Model"),
    Column("provider", "Provider"),
    Column("direction", "Direction"),
    Column("attempts", "Attempts compared", Kind.COUNT, adds=True),
    *STATUSES[4:],
)


def reconciled(view: View) -> pl.DataFrame:
    """The reconciliation of the period by direction, provider, model, status and grade."""
    wanted = [*ATTEMPT, "day", "direction", "provider", "model", "grade", "status", *COMPARED]
    grouped = (
        view.dated("reconciled", wanted)
        .with_columns(compared=pl.col("gap").is_not_null())
        .group_by("direction", "provider", "model", "status", "grade", "compared")
        .agg(pl.len().cast(pl.Int64).alias("attempts"), *(tokens(name) for name in COMPARED))
    )
    return collect(grouped)


def causes(view: View) -> pl.DataFrame:
    """The causes of the period by direction, cause and currency: tokens, attempts, how many are certain, amount."""
    wanted = [*ATTEMPT, "day", "direction", "cause", "tokens", "confidence", "amount", "currency"]
    certain = pl.col("confidence") == str(Confidence.CERTAIN)
    grouped = view.dated("gap_cause", wanted).group_by("direction", "cause", "currency")
    return collect(
        grouped.agg(
            tokens("tokens"),
            pl.len().cast(pl.Int64).alias("attempts"),
            certain.sum().cast(pl.Int64).alias("certain"),
            amount(pl.col("amount")).alias("amount"),
        )
    )


def _again(frame: pl.DataFrame, by: list[str], names: tuple[str, ...]) -> pl.DataFrame:
    """Group sums once more."""
    return frame.group_by(by).agg(*(tokens(name) for name in names))


def waterfall(view: View) -> Sheet:
    """Per direction: observed, each cause, the residual, reported. The steps between the ends add up to the gap."""
    rows = [row for direction in Direction for row in _steps(view, str(direction))]
    return Sheet(
        name="waterfall",
        title="From observed to reported",
        columns=WATERFALL,
        rows=tuple(rows),
        unit="tokens of compared attempts",
        sources=("reconciled", "gap_cause"),
        empty="Nothing was compared in this period.",
        note="Only attempts whose gap is known are in here. A side that is missing although it was expected stands "
        "for no tokens, and its cause says so.",
        shown=60,
    )


def _steps(view: View, direction: str) -> list[Row]:
    sides = view.get(reconciled).filter((pl.col("direction") == direction) & pl.col("compared"))
    if sides.is_empty():
        return []
    ends = sides.select(pl.col("attempts").sum(), *(pl.col(name).sum() for name in COMPARED)).row(0, named=True)
    reasons = _again(
        view.get(causes).filter(pl.col("direction") == direction), ["cause"], ("tokens", "attempts", "certain")
    ).sort(pl.col("tokens").abs(), "cause", descending=[True, False])
    level, compared = ends["observed"], ends["attempts"]
    titles = {cause.code: cause.title for cause in all_causes()}
    rows: list[Row] = [(direction, OBSERVED, "Counted independently", BLANK, level, compared, BLANK)]
    for name, size, attempts, certain in reasons.rows():
        level += size
        rows.append((direction, name, titles.get(name, name), size, level, attempts, certain))
    level += ends["residual"]
    left = _sum_of(sides, pl.col("status") == str(Status.UNEXPLAINED))
    rows.append((direction, RESIDUAL, "Explained by no cause", ends["residual"], level, left, BLANK))
    rows.append((direction, REPORTED, "Stated by usage reports", BLANK, ends["reported"], compared, BLANK))
    return rows


def cause_money(view: View) -> Sheet:
    """What the causes cost, at the price of the class of their tokens."""
    frame = view.get(causes)
    grouped = frame.group_by("cause", "currency").agg(
        tokens("tokens"), pl.col("attempts").sum().alias("comparisons"), amount(pl.col("amount")).alias("amount")
    )
    size = [pl.col("amount").abs(), pl.col("tokens").abs(), pl.col("cause"), pl.col("currency")]
    ranked = grouped.sort(size, descending=[True, True, False, False], nulls_last=True)
    return Sheet(
        name="cause_money",
        title="What the causes cost",
        columns=CAUSE_MONEY,
        rows=rows_of(ranked.with_columns(pl.col("currency").fill_null(BLANK)), CAUSE_MONEY),
        sources=("gap_cause",),
        empty="No gap has a cause in this period.",
        note="Positive: reported above what was observed. An amount is unknown where the tokens have no price. "
        "A comparison is one attempt in one direction.",
    )


def statuses(view: View) -> Sheet:
    """What became of each comparison, by what it rests on."""
    order = {str(direction): place for place, direction in enumerate(Direction)}
    rank = {str(status): place for place, status in enumerate(Status)}
    frame = _again(view.get(reconciled), ["direction", "status", "grade"], ("attempts", *COMPARED))
    ranked = frame.sort(
        pl.col("direction").replace_strict(order, return_dtype=pl.Int64),
        pl.col("status").replace_strict(rank, return_dtype=pl.Int64),
        "grade",
        nulls_last=True,
    )
    return Sheet(
        name="statuses",
        title="Outcome of each comparison",
        columns=STATUSES,
        rows=rows_of(ranked.with_columns(pl.col("grade").fill_null(BLANK)), STATUSES),
        unit="tokens",
        sources=("reconciled",),
        empty="This period has not been reconciled.",
        note="An attempt that was not compared has only one side, and none other was expected.",
    )


def gap_by_model(view: View) -> Sheet:
    """Observed against reported for every model, largest gap first."""
    frame = view.get(reconciled).filter(pl.col("compared"))
    grouped = _again(frame, ["model", "provider", "direction"], ("attempts", *COMPARED)).sort(
        pl.col("gap").abs(), "model", "provider", "direction", descending=[True, False, False, False], nulls_last=True
    )
    return Sheet(
        name="gap_by_model",
        title="Gap by model",
        columns=BY_MODEL,
        rows=rows_of(grouped, BY_MODEL),
        unit="tokens",
        sources=("reconciled",),
        empty="Nothing was compared in this period.",
        shown=12,
    )


def outcome(view: View) -> dict[str, int]:
    """Attempts that were reconciled, those of them whose gap is known, and attempts by the worse of their outcomes."""
    wanted = [*ATTEMPT, "day", "status", "gap"]
    rank = {str(status): place for place, status in enumerate(_WORST_FIRST)}
    frame = (
        view.dated("reconciled", wanted)
        .with_columns(worst=pl.col("status").replace_strict(rank, return_dtype=pl.Int64))
        .group_by(ATTEMPT)
        .agg(compared=pl.col("gap").is_not_null().any(), worst=pl.col("worst").min())
    )
    counts = collect(frame.group_by("worst", "compared").agg(pl.len().cast(pl.Int64).alias("attempts")))
    held = {str(status): _sum_of(counts, pl.col("worst") == place) for place, status in enumerate(_WORST_FIRST)}
    return {"attempts": _sum_of(counts, pl.lit(value=True)), "compared": _sum_of(counts, pl.col("compared")), **held}


def _sum_of(counts: pl.DataFrame, condition: pl.Expr) -> int:
    return int(counts.filter(condition)["attempts"].sum())


def outcomes(view: View) -> Sheet:
    """Every attempt once, under the worse outcome of its two directions."""
    counts = view.get(outcome)
    rows = [
        (str(status), STATUS_WORDS[status], counts[str(status)], ratio(counts[str(status)], counts["attempts"]))
        for status in _WORST_FIRST
        if counts["attempts"]
    ]
    return Sheet(
        name="outcomes",
        title="Outcome by attempt",
        columns=OUTCOMES,
        rows=tuple(rows),
        total=("All", "", counts["attempts"], ratio(counts["attempts"], counts["attempts"])) if rows else None,
        sources=("reconciled",),
        empty="This period has not been reconciled.",
        note="An attempt stands under the worse outcome of its two directions.",
    )
