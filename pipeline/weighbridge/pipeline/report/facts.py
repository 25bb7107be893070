"""One row per attempt: where it belongs, what was reported, what the engine counted, what it costs.

An attempt may be described by several sources (the serving host, the caller, an import). They are merged: the first
source by name that knows a figure gives it. All usage reports of an attempt count, repeated ones too, for that is what
was claimed, and what the reconciliation compares; a report that contradicts itself has no figure that could count.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.report.exact import amount, tokens
from weighbridge.pipeline.report.view import ATTEMPT, View, collect
from weighbridge.schemas.enumerations import AttemptStatus, PriceBasis, PriceStatus, Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES
from weighbridge.schemas.tables import UNASSIGNED

UNKNOWN = "unknown"
_NAMES = ("provider", "model_served", "model_requested", "tenant", "task", "route", "status")
_ENGINE = ("input_computed", "output_computed", "output_delivered", "attended")
_RECOUNT = ("input_recounted", "output_recounted")
COUNTS = (*_ENGINE, *_RECOUNT)
CLASSES = tuple(str(name) for name in REPORTED_CLASSES)
CELLS = tuple(cell.name for cell in CROSSED_CELLS)
REPORT = (*ATTEMPT, "source", "child", "report")
# Words of a name column that say nothing, so that another source's word is taken instead.
_BLANK = (UNASSIGNED, str(AttemptStatus.UNKNOWN))


def attempts(view: View) -> pl.LazyFrame:
    """The attempts of the period, sources merged: names, engine counts and recounts, `on`, `undated`."""
    wanted = [*ATTEMPT, "day", "source", "revision", *_NAMES, *COUNTS, "usage_expected", "undated"]
    frame = _latest(view, "attempt", view.dated("attempt", wanted), [*ATTEMPT, "source"])
    several = collect(frame.select(ATTEMPT).group_by(ATTEMPT).len().filter(pl.col("len") > 1))
    single = frame.drop("day", "source", "revision")
    if several.is_empty():
        return single
    crowd = frame.join(several.lazy(), on=ATTEMPT, how="semi").sort("source").group_by(ATTEMPT).agg(*_merged())
    return pl.concat([single.join(several.lazy(), on=ATTEMPT, how="anti"), crowd], how="diagonal")


def _merged() -> list[pl.Expr]:
    said = [pl.col(name).filter(~pl.col(name).is_in(_BLANK)).drop_nulls() for name in _NAMES]
    return [
        *(pl.coalesce(known.first(), pl.col(name).first()) for name, known in zip(_NAMES, said, strict=True)),
        *(pl.col(name).drop_nulls().first() for name in COUNTS),
        pl.col("usage_expected").max(),
        pl.col("undated").all(),
        pl.col("on").min(),
    ]


def _latest(view: View, table: str, frame: pl.LazyFrame, key: list[str]) -> pl.LazyFrame:
    """The last revision of each key. A table in which nothing was revised, nearly every one, is left as it is."""
    highest = collect(view.read(table, ["revision"]).select(pl.col("revision").max())).item()
    if not highest:
        return frame
    return frame.sort("revision").group_by(key).last()


def readings(view: View, columns: Sequence[str]) -> pl.LazyFrame:
    """The readings of the period, last revisions, with `on`."""
    wanted = [*REPORT, "day", "revision", *columns]
    return _latest(view, "reading", view.dated("reading", wanted), [*REPORT])


def amounts(view: View, columns: Sequence[str]) -> pl.LazyFrame:
    """What the readings of the period cost, with `on`; one row per reading, on the basis of reported usage."""
    wanted = list(dict.fromkeys([*REPORT, "day", "revision", "basis", "currency", "status", *columns]))
    frame = view.dated("priced_amount", wanted).filter(pl.col("basis") == str(PriceBasis.REPORTED))
    return _latest(view, "priced_amount", frame, [*REPORT])


def readable() -> pl.Expr:
    """Whether a reading's counts can be used: no contradiction in them, and a dialect that reads them."""
    return pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])


def currencies(view: View) -> list[str]:
    """The currencies amounts of the period are in, in alphabetical order."""
    frame = amounts(view, ()).filter(priced()).select("currency").drop_nulls().unique()
    return sorted(collect(frame)["currency"])


def priced() -> pl.Expr:
    """Whether an amount is known."""
    return pl.col("status") == str(PriceStatus.PRICED)


def in_currency(column: str, currency: str) -> pl.Expr:
    """The known amounts of a column in one currency."""
    return amount(pl.col(column).filter(priced() & (pl.col("currency") == currency)))


def money_column(currency: str) -> str:
    """The name of the amount column of a currency: `amount_usd`."""
    return f"amount_{currency.lower()}"


def facts(view: View) -> pl.DataFrame:
    """One row per attempt of the period, whether it was observed, reported on, or both."""
    reported = (
        readings(view, ("provider", "model", "verdict", "input_total", "output_total", "total"))
        .with_columns(pl.when(readable()).then(pl.col(name)) for name in ("input_total", "output_total", "total"))
        .group_by(ATTEMPT)
        .agg(
            pl.col("provider").max().alias("report_provider"),
            # Of the answer itself: calls beside it may be of other models.
            pl.coalesce(pl.col("model").filter(child=0).max(), pl.col("model").max()).alias("report_model"),
            pl.col("on").min().alias("report_on"),
            pl.len().cast(pl.Int64).alias("reports"),
            tokens("input_total").alias("input"),
            tokens("output_total").alias("output"),
            tokens("total").alias("tokens"),
        )
    )
    seen = attempts(view).with_columns(observed=pl.lit(value=True))
    frame = seen.join(reported, on=ATTEMPT, how="full", coalesce=True).join(_money(view), on=ATTEMPT, how="left")
    return collect(frame.select(*_facts(view)))


def _money(view: View) -> pl.LazyFrame:
    return (
        amounts(view, ("amount",))
        .group_by(ATTEMPT)
        .agg(
            priced().sum().cast(pl.Int64).alias("priced"),
            (~priced()).sum().cast(pl.Int64).alias("unpriced"),
            *(in_currency("amount", name).alias(money_column(name)) for name in view.get(currencies)),
        )
    )


def _facts(view: View) -> list[pl.Expr]:
    return [
        *(pl.col(name) for name in ATTEMPT),
        pl.coalesce("on", "report_on").alias("on"),
        pl.coalesce("report_provider", "provider", pl.lit(UNKNOWN)).alias("provider"),
        pl.coalesce("report_model", "model_served", "model_requested", pl.lit(UNKNOWN)).alias("model"),
        *(pl.col(name).fill_null(UNASSIGNED) for name in ("tenant", "task", "route")),
        pl.col("status").fill_null(str(AttemptStatus.UNKNOWN)),
        pl.col("observed").fill_null(value=False),
        pl.col("undated").fill_null(value=False),
        pl.col("usage_expected"),
        *(pl.col(name) for name in COUNTS),
        *(pl.col(name).fill_null(0) for name in ("reports", "priced", "unpriced")),
        *(pl.col(name) for name in ("input", "output", "tokens")),
        *(pl.col(money_column(name)) for name in view.get(currencies)),
    ]
