"""What came to light about closed months: booked as adjustments of the open one, never by opening what is closed.

Report by report the pack of a closed month is held against the lake as it is now:

    only in the lake                late_data            its tokens and amount
    in both, other counts           report_correction    the new ones, less the old ones
    in both, another amount         price_correction     the new amount, less the old one
    in both, another tenant or task attribution          away from the one, to the other
    only in the pack                nothing, where a receipt says it was erased; else the finding `closed_rows_missing`

What earlier adjustments of that month have booked is taken off, so running it again books nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close.changes import LATE, NAMES, PRICES, REPORTS, Changes
from weighbridge.pipeline.close.closed import beside, closes
from weighbridge.pipeline.close.exact import EXACT, in_64_bits, pieces
from weighbridge.pipeline.close.lost import lost
from weighbridge.pipeline.close.pack import Pack, is_pack
from weighbridge.pipeline.close.plain import text_of
from weighbridge.pipeline.close.usage_figures import CELL, REPORT
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.period import checked
from weighbridge.schemas.enumerations import FindingOrigin, PriceStatus, Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import framed

LOST = "closed_rows_missing"
CODES = (LATE, REPORTS, PRICES, NAMES, LOST)
_ABOUT = (*CELL, "currency")
_CURES = {
    LATE: "Rows of a closed month came after its close; they are booked here. Close later, or ask why they came late.",
    REPORTS: "Reports of a closed month were revised or are read otherwise now; the difference is booked here.",
    PRICES: "Prices of a closed month were corrected; the difference is booked here. Look at what changed in the book.",
    NAMES: "Reports of a closed month belong to another tenant or task than was known; they are moved here.",
}

Key = tuple[str, str | None, str | None, str | None, str | None, str | None, bool]


@dataclass(frozen=True, slots=True)
class Adjusted:
    """What was booked.

    Attributes:
        period: the open month it was booked in; null where nothing is closed.
        corrects: closed months that were looked at.
        booked: adjustments that are new.
        findings: about the open month and the closed ones.
    """

    period: str | None
    corrects: tuple[str, ...]
    booked: int
    findings: tuple[Finding, ...]


def adjust(lake: Lake, *, packs: Path, months: Collection[str] | None = None, period: str | None = None) -> Adjusted:
    """Book what came to light about closed months. Run again, it books nothing.

    Args:
        lake: the lake; readings and prices have to be up to date.
        packs: folder of the close packs.
        months: the closed months to look at, of those given; all closed ones where null.
        period: the open month to book in; null: the month after the newest close.

    Raises:
        ConfigError: the month to book in is closed.
        DamagedError: a pack cannot be read; verify it, and restore it.
        LakeBusyError: another process is writing.
    """
    with lake.lock():
        closed = closes(lake)
        if not closed:
            return Adjusted(None, (), 0, ())
        into = checked(period) if period else beside(max(closed))[1]
        if into in closed:
            raise ConfigError(f"{into} is closed itself; book in a later month, or leave the month out")
        looked_at = [month for month in closed if months is None or month in months]
        booked = 0
        missing: list[Finding] = []
        for month in looked_at:
            pack = Pack(packs / month)
            if not is_pack(pack.folder):
                continue
            changes = Changes.between(pack, lake, month)
            missing += _lost(month, lost(pack, lake.scan("receipt").collect(), changes.gone))
            rows = list(_new(lake, month, into, changes))
            lake.append("adjustment", pl.DataFrame(rows, schema=polars_schema("adjustment")))
            booked += len(rows)
        told = list(_told(lake, into))
        write_findings(lake, told, origin=FindingOrigin.CLOSE, periods=[into])
        write_findings(lake, missing, origin=FindingOrigin.CLOSE, periods=looked_at, where=pl.col("code") == LOST)
        return Adjusted(into, tuple(looked_at), booked, (*missing, *told))


def totals(changes: Changes) -> dict[Key, dict[str, Any]]:
    """What the changes of a month come to, by reason and by what they are about.

    Returns:
        (reason, provider, model, tenant, task, currency, whether the amount is known) -> tokens, amount, rows,
        segments.
    """
    parts = []
    for suffix, sign in (("_before", -1), ("", 1)):
        priced = pl.col(f"status{suffix}") == str(PriceStatus.PRICED)
        moves = pl.col("reason") != PRICES
        there = pl.lit(value=True) if sign > 0 else pl.col("day_before").is_not_null()
        parts.append(
            changes.rows.filter(there).select(
                *REPORT,
                "reason",
                "segment",
                *(pl.col(f"{name}{suffix}").alias(name) for name in _ABOUT),
                known=priced.fill_null(value=False),
                tokens=pl.when(moves).then(_tokens(suffix) * sign).otherwise(0),
                amount=pl.when(priced).then(pl.col(f"amount{suffix}") * sign),
            )
        )
    by = ["reason", *_ABOUT, "known"]
    sums = (
        pl.concat(parts)
        .group_by(by)
        .agg(
            tokens=pl.when(pl.col("tokens").count() > 0).then(pl.col("tokens").cast(pl.Int128).sum()),
            amount=pl.when(pl.col("amount").count() > 0).then(pl.col("amount").sum()),
            rows=pl.struct(REPORT).n_unique().cast(pl.Int64),
            segments=pl.col("segment").drop_nulls().unique().sort().head(EVIDENCE_ROWS),
        )
        .sort(by)
    )
    return {tuple(row.pop(name) for name in by): row for row in sums.to_dicts()}


def _tokens(suffix: str) -> pl.Expr:
    """The tokens of a report: what is known of either direction, null where neither is."""
    sides = [pl.col(f"{side}_total{suffix}").cast(pl.Int128) for side in ("input", "output")]
    return pl.when(pl.any_horizontal(side.is_not_null() for side in sides)).then(pl.sum_horizontal(sides))


def _new(lake: Lake, month: str, into: str, changes: Changes) -> Iterator[dict[str, Any]]:
    """The adjustments that are not booked yet."""
    found = totals(changes)
    earlier: dict[Key, list[dict[str, Any]]] = {}
    for row in lake.scan("adjustment").filter(pl.col("corrects") == month).collect().to_dicts():
        key = (row["reason"], *(row[name] for name in _ABOUT), row["amount"] is not None)
        earlier.setdefault(key, []).append(row)
    for key in sorted({*found, *earlier}, key=lambda key: [str(part or "") for part in key]):
        now = found.get(key, {"tokens": None, "amount": None, "rows": 0, "segments": []})
        before = earlier.get(key, [])
        tokens = _less(now["tokens"], [row["tokens"] for row in before])
        amount = _less(now["amount"], [row["amount"] for row in before])
        if tokens or amount or (now["rows"] and not before):
            about = dict(zip(("reason", *_ABOUT), key[:-1], strict=True))
            for number, piece in enumerate(pieces(tokens)):
                money = (Decimal(0) if number and amount is not None else amount) if key[-1] else None
                yield {
                    "adjustment_id": _id(into, month, key, piece, money, len(before) + number),
                    "period": into,
                    "corrects": month,
                    **about,
                    "tokens": piece,
                    "amount": money,
                    "rows": 0 if number else now["rows"] or sum(row["rows"] for row in before),
                    "segments": now["segments"],
                }


def _less(now: Any, before: Sequence[Any]) -> Any:
    """What is left to book; null where nothing of it is known."""
    known = [value for value in before if value is not None]
    if now is None and not known:
        return None
    if isinstance(now, Decimal) or any(isinstance(value, Decimal) for value in known):
        left = Decimal(0) if now is None else now
        for value in known:
            left = EXACT.subtract(left, value)
        return left
    return (now or 0) - sum(known)


def _id(into: str, month: str, key: Key, tokens: int | None, amount: Decimal | None, before: int) -> str:
    told = [into, month, *map(str, key), str(tokens), "" if amount is None else text_of(amount), str(before)]
    return hashlib.sha256(framed("adjustment", *told)).hexdigest()[:32]


def _lost(month: str, gone: pl.DataFrame) -> Iterator[Finding]:
    """Reports that were closed and are not in the lake any more, and of which no receipt speaks."""
    if gone.height:
        yield Finding(
            code=LOST,
            severity=Severity.ERROR,
            period=month,
            subject={"closed": month},
            rows=gone.height,
            expected=gone.height,
            observed=0,
            difference=-gone.height,
            unit="reports",
            first_day=gone["day"].min(),  # type: ignore[arg-type]
            last_day=gone["day"].max(),  # type: ignore[arg-type]
            cure="Restore the lake from a backup: these reports were closed and are gone, and no receipt says why.",
            origin=FindingOrigin.CLOSE,
        )


def _told(lake: Lake, into: str) -> Iterator[Finding]:
    """One finding per closed month, reason and currency that the open month has adjustments for.

    It has no amount: that of a finding is what was charged wrongly, and this money is booked as it should be.
    """
    rows = lake.scan("adjustment").filter(pl.col("period") == into)
    by = ["corrects", "reason", "currency"]
    sums = rows.group_by(by).agg(
        tokens=pl.when(pl.col("tokens").count() > 0).then(pl.col("tokens").cast(pl.Int128).sum()),
        rows=pl.col("rows").sum(),
        segments=pl.col("segments").list.explode().drop_nulls().unique().sort().head(EVIDENCE_ROWS),
    )
    for row in sums.sort(by).collect().to_dicts():
        currency = {"currency": row["currency"]} if row["currency"] else {}
        yield Finding(
            code=row["reason"] if row["reason"] in _CURES else LATE,
            severity=Severity.NOTICE,
            period=into,
            subject={"closed": row["corrects"], **currency},
            rows=row["rows"],
            difference=in_64_bits(row["tokens"]),
            cure=_CURES.get(row["reason"], _CURES[LATE]),
            segments=tuple(row["segments"] or ()),
            origin=FindingOrigin.CLOSE,
        )
