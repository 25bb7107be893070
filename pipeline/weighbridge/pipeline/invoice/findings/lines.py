"""What lines show: those taken in twice, withdrawn, in no currency or another one, and those nobody can place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.compare import MonthResult
from weighbridge.pipeline.invoice.findings.words import CURES, CURRENCY, OTHER_CURRENCY, OTHER_SERVICE, TOTAL
from weighbridge.pipeline.invoice.sums import payable
from weighbridge.pipeline.invoice.theirs.doubles import once
from weighbridge.pipeline.invoice.theirs.lines import importers_of
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, month_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import ChargedBy, FindingOrigin, LineKind, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding


def of_doubles(result: MonthResult) -> Iterator[Finding]:
    """Lines that count once, though they were taken in twice."""
    doubled = result.notes.get("doubled")
    for each in doubled if isinstance(doubled, list) else ():
        yield Finding(
            code=each.code,
            severity=Severity.WARNING,
            period=result.ledger.month,
            subject={"provider": result.ledger.contract.provider, "kept": each.kept, "left_out": each.left},
            rows=each.rows,
            unit="rows",
            amount=each.amount,
            currency=each.currency,
            segments=_files(each.segments),
            first_day=each.first_day,
            last_day=each.last_day,
            cure=CURES[each.code],
            origin=FindingOrigin.INVOICE,
        )


def _files(segments: Sequence[str]) -> tuple[str, ...]:
    """Some of them, the first and the last at any rate."""
    return (*segments[: EVIDENCE_ROWS - 1], *segments[-1:]) if len(segments) > EVIDENCE_ROWS else tuple(segments)


def of_lines(result: MonthResult, lines: pl.DataFrame) -> Iterator[Finding]:
    """Lines without a currency, and lines nobody can place, by SKU."""
    cause = next(each for each in all_causes() if each.code == "unmapped_line")
    currency = pl.lit(result.ledger.currency, pl.String)
    provider, month, zone = result.ledger.contract.provider, result.ledger.month, result.ledger.contract.zone
    gone = lines.filter(pl.col("withdrawn"))
    if gone.height:
        yield _of(gone, WITHDRAWN, Severity.WARNING, CURES[WITHDRAWN], provider, month, zone, {})
    lines = lines.filter(~pl.col("withdrawn"))
    none = lines.filter(pl.col("currency").is_null())
    if none.height:
        yield _of(none, CURRENCY, Severity.ERROR, CURES[CURRENCY], provider, month, zone, {})
    others = lines.filter(pl.col("currency") != currency)
    for (told,), own in sorted(others.partition_by("currency", as_dict=True).items(), key=lambda each: str(each[0])):
        about = {"currency": str(told)}
        yield _of(own, OTHER_CURRENCY, Severity.ERROR, CURES[OTHER_CURRENCY], provider, month, zone, about)
    named = result.ledger.grouping
    fits = pl.Series(
        [named.fits(*row) for row in lines.select("kind", "model", "token_class").iter_rows()], dtype=pl.Boolean
    )
    services = lines.filter(pl.col("kind") == str(LineKind.OTHER_SERVICE), pl.col("currency") == currency)
    for (service,), own in sorted(services.partition_by("service", as_dict=True).items(), key=repr):
        about = {"service": str(service)}
        yield _of(own, OTHER_SERVICE, Severity.INFO, CURES[OTHER_SERVICE], provider, month, zone, about)
    unplaced = lines.filter(~fits & (pl.col("currency") == currency))
    for (sku,), own in sorted(unplaced.partition_by("sku", as_dict=True).items(), key=lambda each: str(each[0])):
        about = {"sku": str(sku)} if sku else {}
        yield _of(own, cause.code, cause.severity, cause.cure, provider, month, zone, about, cause=cause.code)


def _of(
    lines: pl.DataFrame, code: str, severity: Severity, cure: str, provider: str, month: str, zone: str,
    about: Mapping[str, str], *, cause: str | None = None,
) -> Finding:  # fmt: skip
    currencies = lines["currency"].unique().to_list()
    known = len(currencies) == 1 and currencies[0] is not None and not lines["amount"].null_count()
    paid = payable(sum((Decimal(str(each)) for each in lines["amount"]), start=Decimal(0))) if known else None
    return Finding(
        code=code,
        severity=severity,
        period=month,
        subject={"provider": provider, "against": str(ChargedBy.INVOICE), **about},
        rows=lines.height,
        unit="rows",
        cause=cause,
        amount=paid,
        currency=currencies[0] if paid is not None else None,
        segments=tuple(sorted(set(lines["segment"].drop_nulls())))[:EVIDENCE_ROWS],
        first_day=min(day_of(start, zone) for start in lines["start"]),
        last_day=max(last_day_of(start, end, zone) for start, end in lines.select("start", "end").iter_rows()),
        cure=cure,
        origin=FindingOrigin.INVOICE,
    )


def of_details(lake: Records, months: Collection[tuple[str, str, str]]) -> Iterator[Finding]:
    """Invoices whose own total is not what their lines add up to, or that have no line at all.

    Args:
        lake: with bills and their totals.
        months: (provider, month, billing zone) that were compared.
    """
    zones = {provider: zone for provider, _, zone in months}
    compared = {(provider, month) for provider, month, _ in months}
    details = lake.scan("invoice_detail").sort("revision").collect()
    details = details.unique(["provider", "invoice_id", "detail_id"], keep="last", maintain_order=True)
    lines = lake.scan("invoice_line").sort("revision").collect()
    lines = lines.unique(["provider", "invoice_id", "line_id"], keep="last", maintain_order=True)
    lines = lines.filter(~pl.col("notes").list.contains(WITHDRAWN).fill_null(value=False))
    importers = importers_of(lake)
    of_each = lines.partition_by("provider", maintain_order=True)
    kept = [once(own, importers, zones.get(own["provider"][0], "UTC"), by_bill=True)[0] for own in of_each]
    lines = pl.concat(kept) if kept else lines
    by = ["provider", "invoice_number", "currency"]
    totals = (
        details.rename({"invoice_id": "invoice_number"})
        .group_by(by)
        .agg(total=_known_sum("amount"), begin=pl.col("billing_start").min())
    )
    numbered = lines.filter(pl.col("invoice_number").is_not_null())
    sums = numbered.group_by(by).agg(
        lines=pl.len(), summed=_known_sum("amount"), segments=pl.col("segment").unique().sort()
    )
    # Of a provider whose lines name their invoice, an invoice that none of them names has no lines.
    named = totals.filter(
        pl.col("provider").is_in(numbered["provider"].unique().implode()), pl.col("total").is_not_null()
    )
    both = named.join(sums, on=by, how="left").with_columns(
        summed=pl.when(pl.col("lines").is_null()).then(pl.lit(0).cast(pl.Decimal(38, 18))).otherwise("summed")
    )
    for row in both.filter(pl.col("total") != pl.col("summed")).sort(by).iter_rows(named=True):
        zone = zones.get(row["provider"], "UTC")
        month = None if row["begin"] is None else month_of(row["begin"], zone)
        if (row["provider"], month) in compared and month is not None:
            yield Finding(
                code=TOTAL,
                severity=Severity.ERROR,
                period=month,
                subject={"provider": row["provider"], "invoice": row["invoice_number"]},
                rows=row["lines"] or 0,
                unit="rows",
                amount=row["total"] - row["summed"],
                currency=row["currency"],
                segments=tuple((row["segments"] or [])[:EVIDENCE_ROWS]),
                cure=CURES[TOTAL],
                origin=FindingOrigin.INVOICE,
            )


def _known_sum(name: str) -> pl.Expr:
    """A sum that is not known where any part of it is not."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
