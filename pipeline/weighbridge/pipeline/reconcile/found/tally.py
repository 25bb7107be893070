"""Rows counted by what a finding is about. Tallies of several batches add up to the tally of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import told_of_sums
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.schemas.enumerations import Confidence, Grade, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import AttemptKey

MONEY = pl.Decimal(38, 18)
# What a row brings to a tally. Each is optional; what is left out is null.
MEASURES: dict[str, pl.DataType] = {
    "expected": pl.Int64(),
    "observed": pl.Int64(),
    "amount": MONEY,
    "low": MONEY,
    "high": MONEY,
    "currency": pl.String(),
    "grade": pl.String(),
    "confidence": pl.String(),
}
_CONFIDENCES = tuple(Confidence)
_NOTHING = Decimal(0)
_WEAKNESS = {str(confidence): place for place, confidence in enumerate(_CONFIDENCES)}


def tallied(rows: pl.LazyFrame, by: Sequence[str], *, once: bool = False) -> pl.DataFrame:
    """Count rows by the columns `by`.

    Args:
        rows: one row per thing to be counted: attempt_lo, attempt_hi (null where no attempt is known), day, and any
            of `MEASURES`.
        by: what the finding is about, in the order of its subject.
        once: several rows of an attempt count once, though the measures of all of them are added.

    Returns:
        Per group: rows, the sums expected and observed (null where no row has one), amount (its sum) with `unpriced`
        (rows that have none), its limits low and high with `unlimited`, the currencies, the weakest grade and
        confidence, the days, and the lowest ids.
    """
    present = rows.collect_schema().names()
    lacking = [pl.lit(None, dtype=kind).alias(name) for name, kind in MEASURES.items() if name not in present]
    weak = pl.col("confidence").replace_strict(_WEAKNESS, return_dtype=pl.Int64)
    full = rows.with_columns(lacking).select(*by, *KEY, "day", *MEASURES).with_columns(confidence=weak)
    held = full.collect(engine="streaming")
    if held.is_empty():  # nothing is found of most things in most months
        return _no_groups(tuple((name, held.schema[name]) for name in by)).clone()
    sums = (
        held.lazy()
        .group_by(by)
        .agg(
            rows=(pl.struct(KEY).n_unique() if once else pl.len()).cast(pl.Int64),
            expected=_sum("expected"),
            observed=_sum("observed"),
            amount=pl.col("amount").sum(),
            unpriced=pl.col("amount").null_count().cast(pl.Int64),
            low=pl.col("low").sum(),
            high=pl.col("high").sum(),
            unlimited=pl.max_horizontal(pl.col("low", "high").null_count()).cast(pl.Int64),
            currency=pl.col("currency").min(),
            other_currency=pl.col("currency").max(),
            grade=pl.col("grade").max(),
            confidence=pl.col("confidence").max(),
            first_day=pl.col("day").min(),
            last_day=pl.col("day").max(),
        )
    )
    with told_of_sums():
        summed = sums.collect()
    return summed.join(_lowest_ids(held, by), on=list(by), how="left", nulls_equal=True)


@cache
def _no_groups(by: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    """The tally of no rows."""
    counts = dict.fromkeys(("rows", "expected", "observed"), pl.Int64())
    money = {"amount": MONEY, "unpriced": pl.Int64(), "low": MONEY, "high": MONEY, "unlimited": pl.Int64()}
    words = dict.fromkeys(("currency", "other_currency", "grade"), pl.String())
    days = dict.fromkeys(("first_day", "last_day"), pl.Date())
    measures = counts | money | words | {"confidence": pl.Int64()} | days | {"ids": pl.List(pl.String())}
    return pl.DataFrame(schema={**dict(by), **measures})


def added(tallies: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """The tally of all batches. No attempt is in two of them."""
    every = pl.concat(tallies)
    with told_of_sums():
        out = every.group_by(by).agg(
            *(pl.col(name).sum() for name in ("rows", "amount", "unpriced", "low", "high", "unlimited")),
            *(_sum(name) for name in ("expected", "observed")),
            pl.col("currency", "first_day").min(),
            pl.col("other_currency", "grade", "confidence", "last_day").max(),
            pl.col("ids").explode().drop_nulls().sort().head(EVIDENCE_ROWS),
        )
    return out.select(every.columns)


def _sum(name: str) -> pl.Expr:
    """The sum where any is known; one beyond 64 bits is an error when it is computed."""
    exact = pl.col(name).cast(pl.Int128).sum().cast(pl.Int64)
    return pl.when(pl.col(name).count() > 0).then(exact).alias(name)


def _lowest_ids(held: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Per group the ids of its attempts that come first in the order of their digits."""
    # The first half nearly decides. With its sign bit turned, signed numbers sort as their digits do.
    first = pl.col("attempt_hi").xor(pl.lit(-(2**63), dtype=pl.Int64))
    keyed = held.lazy().drop_nulls(KEY).select(*by, *KEY, first=first)
    limit = keyed.group_by(by).agg(limit=pl.col("first").unique().bottom_k(EVIDENCE_ROWS).max())
    near = keyed.join(limit, on=list(by), how="inner", nulls_equal=True).filter(pl.col("first") <= pl.col("limit"))
    ids = near.select(*by, *KEY).unique().collect().with_columns(id=hexadecimal())
    return ids.group_by(by).agg(ids=pl.col("id").sort().head(EVIDENCE_ROWS))


def hexadecimal() -> pl.Expr:
    """The 32 digits of an attempt's id."""
    return pl.struct("attempt_hi", "attempt_lo").map_elements(_digits, return_dtype=pl.String)


def _digits(key: Mapping[str, int]) -> str:
    return AttemptKey(key["attempt_hi"], key["attempt_lo"]).to_hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all findings of one code have in common.

    Attributes:
        code, severity, unit, cure: as in `Finding`.
        cause: the code of the cause behind it, null where it is no part of a gap or has no known cause.
        confidence: where no row has one.
        at_stake: whether what its rows cost is in question; if not, nothing is, whatever they cost.
    """

    code: str
    severity: Severity
    unit: str
    cure: str
    cause: str | None = None
    confidence: Confidence = Confidence.CERTAIN
    at_stake: bool = True


def findings(kind: Kind, tally: pl.DataFrame, by: Sequence[str], period: str) -> list[Finding]:
    """One finding per group of a tally; names that are null are left out of its subject."""
    return [
        _finding(kind, row, {n: str(row[n]) for n in by if row[n] is not None}, period)
        for row in tally.iter_rows(named=True)
    ]


def _finding(kind: Kind, row: Mapping[str, Any], subject: Mapping[str, str], period: str) -> Finding:
    known = row["currency"] is not None and row["currency"] == row["other_currency"]
    priced = known and (row["unpriced"] == 0 or not kind.at_stake)
    amount = row["amount"] if kind.at_stake else _NOTHING
    limited = known and kind.at_stake and row["unlimited"] == 0
    both = row["expected"] is not None and row["observed"] is not None
    return Finding(
        code=kind.code,
        severity=kind.severity,
        period=period,
        subject=subject,
        rows=row["rows"],
        expected=row["expected"],
        observed=row["observed"],
        difference=row["observed"] - row["expected"] if both else None,
        unit=kind.unit,
        cause=kind.cause,
        grade=None if row["grade"] is None else Grade(row["grade"]),
        confidence=kind.confidence if row["confidence"] is None else _CONFIDENCES[row["confidence"]],
        amount=amount if priced else None,
        currency=row["currency"] if priced or limited else None,
        amount_low=row["low"] if limited else None,
        amount_high=row["high"] if limited else None,
        evidence=tuple(row["ids"] or ()),
        first_day=row["first_day"],
        last_day=row["last_day"],
        cure=kind.cure,
    )
