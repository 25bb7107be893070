"""What prices show: answers that name another cost than ours, and tiers that were not the ones asked for.

    charged 0.0133176, at our prices 0.0033176    charged_cost_differs: 0.01 more, most likely a fee
    priority asked for, default served            service_tier_differs: the default tier is what it costs

Both are of a month, for each provider and model. Amounts that we do not know are not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.bounds import EXACT, summable
from weighbridge.pipeline.price.terms import AUTO
from weighbridge.schemas.enumerations import FindingOrigin, PriceBasis, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import AttemptKey

CHARGED = "charged_cost_differs"
TIER = "service_tier_differs"
CODES = (CHARGED, TIER)
_KEY = ("attempt_hi", "attempt_lo")
_REPORT = (*_KEY, "source", "report")
_CURES: Mapping[str, str] = {
    CHARGED: "Compare the terms of the answer (tier, tools, own key) with the row of the price book; add what is "
    "missing to a price file of your own, or dispute the charge.",
    TIER: "The tier it was served on is what it costs; ask the provider why it was another one, or stop asking for it.",
}


def refresh_findings(lake: Lake, days: Collection[date]) -> None:
    """Find anew what prices show in the months of these days.

    Raises:
        LakeError: the lake cannot be read or written.
    """
    months = sorted({f"{day:%Y-%m}" for day in days})
    found = [finding for month in months for finding in findings(lake, month)]
    write_findings(lake, found, origin=FindingOrigin.PRICE, periods=months, where=pl.col("code").is_in(CODES))


def findings(records: Records, month: str) -> list[Finding]:
    """The findings of one UTC month, in a fixed order."""
    found = [*_charged(records, month), *_tiers(records, month)]
    return sorted(found, key=lambda finding: finding.finding_id)


def _of(records: Records, table: str, month: str, columns: Collection[str]) -> pl.LazyFrame:
    begin = date.fromisoformat(f"{month}-01")
    end = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    frame = records.scan(table, first=begin, last=end, columns=sorted({*columns, "day"}))
    return frame.filter(pl.col("day").is_between(begin, end, closed="left"))


def _charged(records: Records, month: str) -> Iterator[Finding]:
    named = ("provider", "model", "charged", "charged_currency", "child", "revision", "segment")
    told = _of(records, "reading", month, (*_REPORT, *named)).filter(pl.col("charged").is_not_null()).collect()
    if told.is_empty():
        return
    amounts = _of(records, "priced_amount", month, (*_REPORT, "child", "amount", "currency", "basis", "revision"))
    ours = (
        amounts.filter(pl.col("basis") == str(PriceBasis.REPORTED))
        .join(told.lazy().select(_REPORT), on=list(_REPORT), how="semi")
        .filter(pl.col("revision") == pl.col("revision").max().over(*_REPORT))
        .collect()
        .pipe(summable, ("amount",), "amounts of reports that name their charge")
        .group_by(_REPORT)
        .agg(
            amount=pl.when(pl.col("amount").null_count() == 0).then(pl.col("amount").sum()),
            currency=pl.when(pl.col("currency").n_unique() == 1).then(pl.col("currency").first()),
        )
    )
    last = told.filter(pl.col("revision") == pl.col("revision").max().over(*_REPORT))
    differing = last.join(ours, on=list(_REPORT)).filter(
        (pl.col("currency") == pl.col("charged_currency")) & (pl.col("amount") != pl.col("charged"))
    )
    for (provider, model, currency), rows in _grouped(differing, ("provider", "model", "currency")):
        difference = reduce(EXACT.add, rows["charged"], Decimal(0))
        difference = reduce(EXACT.subtract, rows["amount"], difference)
        yield _finding(CHARGED, month, {"provider": provider, "model": model}, rows, difference, currency)


def _tiers(records: Records, month: str) -> Iterator[Finding]:
    asked = _of(records, "attempt", month, (*_KEY, "source", "revision", "tier_requested"))
    wanted = (
        asked.filter(pl.col("tier_requested").is_not_null() & (pl.col("tier_requested") != AUTO))
        .filter(pl.col("revision") == pl.col("revision").max().over(*_KEY, "source"))
        .select(*_KEY, "tier_requested")
        .unique()
        .collect()
    )
    if wanted.is_empty():
        return
    named = (*_REPORT, "revision", "provider", "model", "service_tier", "child", "segment")
    last = _of(records, "reading", month, named).filter(
        (pl.col("child") == 0) & (pl.col("revision") == pl.col("revision").max().over(*_REPORT, "child"))
    )
    served = last.filter(pl.col("service_tier").is_not_null() & (pl.col("service_tier") != AUTO))
    both = served.join(wanted.lazy(), on=list(_KEY)).collect()
    differing = both.filter(pl.col("service_tier") != pl.col("tier_requested"))
    by = ("provider", "model", "tier_requested", "service_tier")
    for (provider, model, tier, other), rows in _grouped(differing, by):
        subject = {"provider": provider, "model": model, "requested": tier, "served": other}
        yield _finding(TIER, month, subject, rows, None, None)


def _grouped(rows: pl.DataFrame, by: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    ordered = rows.sort(*by, *_KEY, nulls_last=True)
    yield from ordered.partition_by(by, as_dict=True, maintain_order=True).items()


def _finding(
    code: str,
    month: str,
    subject: Mapping[str, str | None],
    rows: pl.DataFrame,
    amount: Decimal | None,
    currency: str | None,
) -> Finding:
    ids = rows.select(_KEY).unique(maintain_order=True).head(EVIDENCE_ROWS)
    return Finding(
        code=code,
        severity=Severity.WARNING if code == CHARGED else Severity.NOTICE,
        period=month,
        subject={name: value for name, value in subject.items() if value is not None},
        rows=rows.height,
        cure=_CURES[code],
        unit="reports",
        cause="service_tier" if code == TIER else None,
        amount=amount,
        currency=currency,
        evidence=tuple(sorted(AttemptKey(*key).to_hex() for key in ids.iter_rows())),
        segments=tuple(rows["segment"].drop_nulls().unique().sort().head(EVIDENCE_ROWS)),
        first_day=rows["day"].min(),  # type: ignore[arg-type]
        last_day=rows["day"].max(),  # type: ignore[arg-type]
        origin=FindingOrigin.PRICE,
    )
