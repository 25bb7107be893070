"""Bills as FOCUS 1.0 to 1.4 writes them (CSV, Parquet): charges, totals of InvoiceDetail, states of BillingPeriod.

    BilledCost,BillingCurrency,BillingPeriodStart,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,...

Times without a zone are UTC, as FOCUS demands; month/day/year of its own examples is read too. Prices in a virtual
currency (`PricingCurrency` is no ISO code) stay beside what is billed in real money. What a line charges is told by
`SkuMeter`, `ConsumedUnit`, `SkuPriceDetails` and, of a service for models, its description, which is not kept.
"""

from __future__ import annotations

from pathlib import Path

from weighbridge.pipeline.ingest.charges.charge import DETAIL, Charge, ChargeRows, currency, refusal
from weighbridge.pipeline.ingest.charges.figures import amount, moment
from weighbridge.pipeline.ingest.charges.skus import sku
from weighbridge.pipeline.ingest.charges.tables import (
    Row,
    Shape,
    about,
    category,
    checked,
    details,
    measured,
    read_charges,
    recognises,
    rows_of,
    text,
)
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.record_fields import name_of
from weighbridge.schemas.enumerations import BillingStatus, QuarantineReason
from weighbridge.schemas.identity import keyed_key
from weighbridge.schemas.leaves import Refusal

NAME = "focus"
_COMMON = {
    "amount": ("BilledCost",),
    "currency": ("BillingCurrency",),
    "account": ("BillingAccountId",),
    "billing_start": ("BillingPeriodStart",),
    "billing_end": ("BillingPeriodEnd",),
    "issuer": ("InvoiceIssuerName", "InvoiceIssuer"),
    "payment_currency": ("PaymentCurrency",),
    "payment_amount": ("PaymentCurrencyBilledCost",),
    "reference_invoice": ("ReferenceInvoiceId",),
    "issued_at": ("InvoiceIssueDate",),
    "invoice": ("InvoiceId",),
}
CHARGES = Shape(
    columns={
        **_COMMON,
        "start": ("ChargePeriodStart",),
        "end": ("ChargePeriodEnd",),
        "category": ("ChargeCategory",),
        "class": ("ChargeClass",),
        "words": ("ChargeDescription",),
        "provider": ("ServiceProviderName", "ProviderName"),
        "host": ("HostProviderName",),
        "service": ("ServiceName",),
        "sub_account": ("SubAccountId",),
        "sku": ("SkuId",),
        "sku_price": ("SkuPriceId",),
        "meter": ("SkuMeter",),
        "details": ("SkuPriceDetails",),
        "resource": ("ResourceId",),
        "region": ("RegionId", "Region"),
        "quantity": ("ConsumedQuantity",),
        "unit": ("ConsumedUnit",),
        "priced_quantity": ("PricingQuantity",),
        "priced_unit": ("PricingUnit",),
        "pricing_category": ("PricingCategory",),
        "commitment": ("CommitmentDiscountId",),
        "list_amount": ("ListCost",),
        "contracted_amount": ("ContractedCost",),
        "effective_amount": ("EffectiveCost",),
        "pricing_currency": ("PricingCurrency",),
        "pricing_amount": ("PricingCurrencyEffectiveCost",),
    },
    needed=("amount", "category", "start", "end", "billing_start"),
    about=(
        *("sub_account", "service", "sku", "sku_price", "meter", "resource", "region", "class", "words"),
        *("pricing_category", "commitment", "unit"),
    ),
)
DETAILS = Shape(
    columns={
        **_COMMON,
        "detail": ("InvoiceDetailId",),
        "status": ("InvoiceIssueStatus", "InvoiceStatus"),
        "category": ("ChargeCategory",),
    },
    needed=("detail", "invoice"),
)
PERIODS = Shape(
    columns={**_COMMON, "status": ("BillingPeriodStatus",)},
    needed=("billing_start", "billing_end", "status"),
)
_STATUS = {"open": BillingStatus.OPEN, "closed": BillingStatus.CLOSED}


def _shape(path: Path) -> Shape | None:
    """Which of the three a file is; null where none."""
    return next((shape for shape in (DETAILS, CHARGES, PERIODS) if recognises(path, shape)), None)


def _check(source: Source) -> Heading:
    return checked(source, _shape(source.path) or CHARGES)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    shape = _shape(source.path) or CHARGES
    if shape is CHARGES:
        return read_charges(source, CHARGES, NAME, _charge).staged()
    rows = ChargeRows(source, NAME)
    for line, row in rows_of(source, shape):
        if isinstance(row, QuarantineReason):
            rows.add(Refusal("", row), line)
        else:
            _total(rows, row, line)
    return rows.staged()


def _charge(row: Row, source: Source) -> Charge | list[Refusal]:
    found, refused = measured(row)
    told = category(text(row, "category"))
    if told is None:
        refused.append(refusal("category", QuarantineReason.SCHEMA))
    if refused or told is None:
        return refused
    inside = details(text(row, "details"))
    words = " ".join(filter(None, (text(row, "meter"), text(row, "words"))))
    unit = text(row, "unit") or text(row, "priced_unit")
    meant = sku(words, text(row, "unit"), told)
    model = next((str(inside[name]) for name in ("ModelId", "ModelVersion", "ModelFamily") if inside.get(name)), None)
    correction = text(row, "class")
    return Charge(
        provider=source.provider or provider_of(text(row, "provider"), text(row, "service")),
        **found,  # type: ignore[arg-type]
        about=about(row, CHARGES),
        currency=text(row, "currency"),
        category=told,
        kind=meant.kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or model,
        service_tier=meant.service_tier,
        region=text(row, "region"),
        sku=text(row, "sku") or text(row, "meter"),
        service=text(row, "service"),
        account=text(row, "account"),
        project=text(row, "sub_account"),
        unit=unit,
        pricing_currency=text(row, "pricing_currency"),
        payment_currency=text(row, "payment_currency"),
        invoice_id=text(row, "invoice"),
        reference_invoice=text(row, "reference_invoice"),
        correction=None if correction is None else correction.lower() == "correction",
    )


def provider_of(name: str | None, service: str | None) -> str:
    """The provider of a line as our own tables name it; a name that is none of these, in small letters."""
    told = f"{name or ''} {service or ''}".lower()
    for ours, words in _PROVIDERS:
        if any(word in told for word in words):
            return ours
    letters = (sign if sign.isascii() and sign.isalnum() else " " for sign in (name or "").lower())
    shown = "-".join("".join(letters).split())
    return shown[:64] or "unknown"


_PROVIDERS = (
    ("bedrock", ("bedrock",)),
    ("openai", ("openai llc", "openai, llc", "openai opco")),
    ("anthropic", ("anthropic",)),
    ("aws", ("aws", "amazon")),
    ("azure", ("azure", "microsoft")),
    ("google", ("google",)),
    ("openai", ("openai",)),
)


def _total(rows: ChargeRows, row: Row, line: int) -> None:
    """A row of InvoiceDetail or BillingPeriod."""
    paid, spent = amount(row.get("amount")), amount(row.get("payment_amount"))
    times = {name: moment(row.get(name)) for name in ("billing_start", "billing_end", "issued_at")}
    bad = [refusal(name, QuarantineReason.BAD_TIME) for name, at in times.items() if at is None and row.get(name)]
    bad += [refusal("amount", each.reason) for each in (paid, spent) if each.reason is not None]
    if bad:
        rows.add(bad, line)
        return
    account, period = rows.hidden("account", text(row, "account")), times["billing_start"]
    month = "unknown" if period is None else f"{period:%Y-%m}"
    provider = rows.source.provider or provider_of(text(row, "issuer"), None)
    told = text(row, "detail") or "billing-period"
    status = text(row, "status") or ""
    named = category(text(row, "category"))
    total = {
        "invoice_id": name_of(text(row, "invoice"), []) or f"{account or provider}:{month}",
        "detail_id": name_of(told, []) or keyed_key(rows.source.key, NAME, told).to_hex(),
        "provider": provider,
        "account": account,
        **times,
        "billing_status": _STATUS.get(status.lower()),
        "invoice_status": name_of(status, []),
        "reference_invoice": name_of(text(row, "reference_invoice"), []),
        "category": named and str(named),
        "amount": paid.value,
        "currency": currency(text(row, "currency"), []),
        "payment_amount": spent.value,
        "payment_currency": currency(text(row, "payment_currency"), []),
    }
    rows.add_rows(DETAIL, [total], line)


IMPORTER = Importer(
    name=NAME,
    doc="Bills as FOCUS 1.0 to 1.4 writes them: charges, InvoiceDetail and BillingPeriod, as CSV or Parquet.",
    recognises=lambda path: _shape(path) is not None,
    check=_check,
    read=_read,
)
