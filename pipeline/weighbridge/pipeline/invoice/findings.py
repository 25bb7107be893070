"""What was found about bills: causes that put money in question, residuals, and lines nobody can compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.compare import TOKENS, Compared, MonthResult
from weighbridge.pipeline.invoice.contradictory import both
from weighbridge.pipeline.invoice.ledger import Spoiled
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.theirs.doubles import TWO_BILLS, TWO_EDITIONS, once
from weighbridge.pipeline.invoice.theirs.lines import importers_of
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, month_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import ChargedBy, Confidence, FindingOrigin, LineKind, Severity, Status
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import AttemptKey

UNEXPLAINED, NOT_CHARGED = "invoice_unexplained", "usage_not_charged"
OTHER_CURRENCY = "invoice_other_currency"
UNKNOWN, CURRENCY, TOTAL, PROVISIONAL = (
    "invoice_not_compared", "currency_missing", "invoice_total_differs", "invoice_provisional",
)  # fmt: skip
OTHER_SERVICE = "other_service"
CONTRADICTORY, GRAIN = "contradictory_not_compared", "grouping_not_compared"
_OWN = (
    OTHER_SERVICE,
    *(TWO_EDITIONS, TWO_BILLS, CONTRADICTORY, GRAIN, WITHDRAWN, UNEXPLAINED, NOT_CHARGED, UNKNOWN, CURRENCY),
    *(OTHER_CURRENCY, TOTAL, PROVISIONAL),
)
CODES = frozenset({*_OWN, *(cause.code for cause in all_causes())})
_CURES = {
    UNEXPLAINED: "Show the cells with `weighbridge invoice show`, hold the largest against the provider's own page, "
    "and dispute what nobody can explain.",
    NOT_CHARGED: "Nothing is to be done: it was used and not charged; expect it on a later bill.",
    UNKNOWN: "Give the price that is missing in a price file, or the rate of the currency, and reconcile again.",
    CURRENCY: "Import these lines with a mapping that gives their currency; until then they are in no sum.",
    OTHER_SERVICE: "Nothing, where it serves no model; else say in the contract what its SKUs charge, as [skus.<SKU>].",
    OTHER_CURRENCY: "Say in the contract what the provider bills in, as currency; lines in another one are in no sum.",
    WITHDRAWN: "Ask why these lines vanished from the invoice; where they still hold, import an export that has them.",
    TWO_EDITIONS: "Nothing is counted twice: the finer of the two is in the sums. Import only one of them from now on.",
    TWO_BILLS: "Nothing is counted twice: the line is of the earlier bill. Ask for it to be taken off the later one.",
    CONTRADICTORY: "Look at the reports of these calls with `weighbridge readings explain`: they are in no sum, and "
    "what they cost lies within these limits.",
    TOTAL: "Fetch the bill again: lines are missing from it, or it was made while they still came.",
    PROVISIONAL: "Wait until the billing period is closed and its lateness is over, then fetch the bill again and "
    "reconcile.",
}
_NOT_TOLD = "The bill states it and calls of ours do not, so the model is compared without it: "
_LACKS = {
    "calls": {
        "tenant": f"{_NOT_TOLD}give every call a tenant, by a header or by its key.",
        "service_tier": f"{_NOT_TOLD}`auto` is no tier; log the one the answer names.",
        "region": f"{_NOT_TOLD}log where calls are served, in the words of the bill.",
        "modality": f"{_NOT_TOLD}log the details of modalities that answers carry.",
    },
    "lines": {
        "tenant": "Some lines are of projects or keys that the contract does not name: name them under [projects] or "
        "[keys], and reconcile again.",
        "service_tier": "Some lines name no service tier: import them with a mapping that does.",
        "region": "Some lines name no region: import them with a mapping that does.",
        "modality": "Some lines name no modality: import them with a mapping that does.",
    },
}


@dataclass(slots=True)
class _Group:
    """Cells that make one finding."""

    cells: list[Compared] = field(default_factory=list)
    tokens: int = 0
    money: Decimal | None = Decimal(0)
    confidence: list[Confidence] = field(default_factory=list)


def findings_of(result: MonthResult) -> Iterator[Finding]:
    """Everything that was found in a month with a provider."""
    yield from _of_causes(result)
    yield from _of_status(result)
    yield from _of_contradictory(result)
    yield from _of_grain(result)
    yield from _of_doubles(result)
    lines = result.notes.get("lines")
    if isinstance(lines, pl.DataFrame):
        yield from _of_lines(result, lines)


def _of_causes(result: MonthResult) -> Iterator[Finding]:
    groups: defaultdict[str, _Group] = defaultdict(_Group)
    for cell in result.cells:
        if cell.explained is None or cell.status is Status.PROVISIONAL:
            continue
        for share in cell.explained.shares:
            group = groups[share.cause]
            group.cells.append(cell)
            group.tokens += share.tokens
            group.money = None if group.money is None else group.money + share.money
            group.confidence.append(cell.explained.confidence)
    for cause in all_causes():
        if cause.code not in groups or (cause.code == "unmapped_line" and "lines" in result.notes):
            continue
        group = groups[cause.code]
        yield _finding(
            result,
            cause.code,
            group,
            severity=cause.severity,
            cure=cause.cure_for(result.ledger.contract.provider),
            cause=cause.code,
            at_stake=cause.at_stake,
            evidence=_evidence(result, cause.code),
        )


def _of_contradictory(result: MonthResult) -> Iterator[Finding]:
    """Calls that are in no sum because their reports contradict themselves, by model, with what they may cost."""
    ledger = result.ledger
    by_model: dict[str, tuple[Spoiled, list[Span]]] = {}
    for (span, model), calls in ledger.spoiled.items():
        before = by_model.get(model or "")
        told = calls if before is None else both(before[0], calls)
        by_model[model or ""] = told, [*(before[1] if before else ()), span]
    zone = ledger.contract.zone
    for model, (calls, spans) in sorted(by_model.items()):
        limited = calls.money is not None and ledger.currency == calls.currency is not None
        yield Finding(
            code=CONTRADICTORY,
            severity=Severity.WARNING,
            period=ledger.month,
            subject={"provider": ledger.contract.provider, "against": str(ledger.against), **_about(model)},
            rows=calls.calls,
            unit="attempts",
            currency=calls.currency if limited else None,
            amount_low=Decimal(0) if limited else None,
            amount_high=calls.money if limited else None,
            confidence=Confidence.NONE,
            evidence=calls.attempts,
            segments=calls.segments,
            first_day=min(day_of(start, zone) for start, _ in spans),
            last_day=max(last_day_of(start, end, zone) for start, end in spans),
            cure=_CURES[CONTRADICTORY],
            origin=FindingOrigin.INVOICE,
        )


def _of_doubles(result: MonthResult) -> Iterator[Finding]:
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
            segments=_files(each.segments),
            first_day=each.first_day,
            last_day=each.last_day,
            cure=_CURES[each.code],
            origin=FindingOrigin.INVOICE,
        )


def _files(segments: Sequence[str]) -> tuple[str, ...]:
    """Some of them, the first and the last at any rate."""
    return (*segments[: EVIDENCE_ROWS - 1], *segments[-1:]) if len(segments) > EVIDENCE_ROWS else tuple(segments)


def _of_grain(result: MonthResult) -> Iterator[Finding]:
    """What a bill states, by model, and could not be compared by."""
    ledger = result.ledger
    for each in ledger.lacking:
        about = {"provider": ledger.contract.provider, "against": str(ledger.against), **_about(each.model)}
        yield Finding(
            code=GRAIN,
            severity=Severity.NOTICE,
            period=ledger.month,
            subject={**about, "grouped_by": each.dimension},
            rows=each.lines + each.calls,
            unit="attempts" if each.calls else "rows",
            cure=_LACKS["calls" if each.calls else "lines"][each.dimension],
            origin=FindingOrigin.INVOICE,
        )


def _about(model: str | None) -> dict[str, str]:
    return {"model": model} if model else {}


def _of_status(result: MonthResult) -> Iterator[Finding]:
    groups: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)
    for cell in result.cells:
        code = _code(cell)
        if code is not None:
            group = groups[code, cell.key.model or ""]
            group.cells.append(cell)
            _add(group, cell)
    for (code, model), group in sorted(groups.items()):
        severity = {UNEXPLAINED: Severity.ERROR, UNKNOWN: Severity.WARNING}.get(code, Severity.NOTICE)
        if code == UNEXPLAINED and result.ledger.against is ChargedBy.USAGE_PAGE:
            severity = Severity.WARNING
        about = {"model": model} if model else {}
        stake = code == UNEXPLAINED
        yield _finding(result, code, group, severity=severity, cure=_CURES[code], about=about, at_stake=stake)


def _code(cell: Compared) -> str | None:
    if cell.status is Status.PROVISIONAL:
        return PROVISIONAL
    if cell.status is Status.UNEXPLAINED:
        return NOT_CHARGED if cell.lines == 0 else UNEXPLAINED
    unheld = cell.key.kind in {LineKind.TAX, LineKind.OTHER_SERVICE}
    return UNKNOWN if cell.status is Status.NOT_COMPARED and not unheld else None


def _add(group: _Group, cell: Compared) -> None:
    ours, theirs = cell.expected, cell.charged
    if ours.tokens is not None and theirs.tokens is not None:
        group.tokens += theirs.tokens - ours.tokens
    known = None if ours.money is None or theirs.money is None else theirs.money - ours.money
    group.money = None if group.money is None or known is None else group.money + known
    group.confidence.append(Confidence.NONE)


def _finding(
    result: MonthResult, code: str, group: _Group, *, severity: Severity, cure: str, cause: str | None = None,
    about: Mapping[str, str] | None = None, at_stake: bool = True, evidence: Sequence[str] = (),
) -> Finding:  # fmt: skip
    ledger = result.ledger
    sides = [(cell.expected.tokens, cell.charged.tokens) for cell in group.cells]
    known = all(a is not None and b is not None for a, b in sides)
    ambiguous = Confidence.AMBIGUOUS in group.confidence
    confidence = Confidence.AMBIGUOUS if ambiguous else group.confidence[0]
    money = group.money if at_stake and ledger.currency else None
    zone = ledger.contract.zone
    return Finding(
        code=code,
        severity=severity,
        period=ledger.month,
        subject={"provider": ledger.contract.provider, "against": str(ledger.against), **(about or {})},
        rows=sum(cell.attempts + cell.lines for cell in group.cells),
        expected=sum(a or 0 for a, _ in sides) if known else None,
        observed=sum(b or 0 for _, b in sides) if known else None,
        difference=sum((b or 0) - (a or 0) for a, b in sides) if known else None,
        unit=TOKENS,
        cause=cause,
        confidence=confidence,
        amount=money,
        currency=ledger.currency if money is not None else None,
        evidence=tuple(evidence),
        segments=tuple(sorted({each for cell in group.cells for each in cell.segments}))[:EVIDENCE_ROWS],
        first_day=min(day_of(cell.key.start, zone) for cell in group.cells),
        last_day=max(last_day_of(cell.key.start, cell.key.end, zone) for cell in group.cells),
        cure=cure,
        origin=FindingOrigin.INVOICE,
    )


def _evidence(result: MonthResult, code: str) -> list[str]:
    """The ids of the calls a cause is about, where it is about some of them."""
    column = {"failed_but_billed": "failed", "retry_billed": "superseded"}.get(code)
    if column is None:
        return []
    calls = result.ledger.calls
    own = [bundle.number for bundle in calls if getattr(bundle, column)]
    keys = calls.members.filter(pl.col("number").is_in(own)).select("attempt_hi", "attempt_lo").unique()
    return sorted(AttemptKey(hi, lo).to_hex() for hi, lo in keys.iter_rows())[:EVIDENCE_ROWS]


def _of_lines(result: MonthResult, lines: pl.DataFrame) -> Iterator[Finding]:
    """Lines without a currency, and lines nobody can place, by SKU."""
    cause = next(each for each in all_causes() if each.code == "unmapped_line")
    currency = result.ledger.currency
    provider, month, zone = result.ledger.contract.provider, result.ledger.month, result.ledger.contract.zone
    gone = lines.filter(pl.col("withdrawn"))
    if gone.height:
        yield _of(gone, WITHDRAWN, Severity.WARNING, _CURES[WITHDRAWN], provider, month, zone, {})
    lines = lines.filter(~pl.col("withdrawn"))
    none = lines.filter(pl.col("currency").is_null())
    if none.height:
        yield _of(none, CURRENCY, Severity.ERROR, _CURES[CURRENCY], provider, month, zone, {})
    others = lines.filter(pl.col("currency") != currency)
    for (told,), own in sorted(others.partition_by("currency", as_dict=True).items(), key=lambda each: str(each[0])):
        about = {"currency": str(told)}
        yield _of(own, OTHER_CURRENCY, Severity.ERROR, _CURES[OTHER_CURRENCY], provider, month, zone, about)
    named = result.ledger.grouping
    fits = pl.Series(
        [named.fits(*row) for row in lines.select("kind", "model", "token_class").iter_rows()], dtype=pl.Boolean
    )
    services = lines.filter(pl.col("kind") == str(LineKind.OTHER_SERVICE), pl.col("currency") == currency)
    for (service,), own in sorted(services.partition_by("service", as_dict=True).items(), key=repr):
        about = {"service": str(service)}
        yield _of(own, OTHER_SERVICE, Severity.INFO, _CURES[OTHER_SERVICE], provider, month, zone, about)
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
    paid = sum((Decimal(str(each)) for each in lines["amount"]), start=Decimal(0)) if known else None
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
    kept = [once(own, importers, zones.get(own["provider"][0], "UTC"))[0] for own in of_each]
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
                cure=_CURES[TOTAL],
                origin=FindingOrigin.INVOICE,
            )


def _known_sum(name: str) -> pl.Expr:
    """A sum that is not known where any part of it is not."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
