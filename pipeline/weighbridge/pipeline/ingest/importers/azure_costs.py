"""Cost exports of Azure Cost Management (actual cost; CSV, Parquet), of enterprise and customer agreements alike.

    BillingAccountId,BillingPeriodStartDate,Date,MeterName,MeterCategory,Quantity,UnitOfMeasure,CostInBillingCurrency

A row is of one UTC day. Meters name model and class (`gpt-4o-0806-Inp-glbl Tokens`); a unit such as `1K` is one of
tokens where the meter charges tokens.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from weighbridge.pipeline.ingest.charges.charge import Charge
from weighbridge.pipeline.ingest.charges.skus import Sku, sku
from weighbridge.pipeline.ingest.charges.tables import (
    Row,
    Shape,
    about,
    checked,
    measured,
    read_charges,
    recognises,
    text,
)
from weighbridge.pipeline.ingest.importer import Importer, Source
from weighbridge.schemas.enumerations import ChargeCategory, LineKind
from weighbridge.schemas.leaves import Refusal

NAME = "azure-costs"
SHAPE = Shape(
    columns={
        "amount": ("CostInBillingCurrency", "Cost", "PreTaxCost"),
        "currency": ("BillingCurrency", "BillingCurrencyCode", "Currency"),
        "start": ("Date", "UsageDate", "UsageDateTime"),
        "type": ("ChargeType",),
        "account": ("BillingAccountId",),
        "billing_start": ("BillingPeriodStartDate",),
        "billing_end": ("BillingPeriodEndDate",),
        "meter": ("MeterName", "Meter"),
        "meter_id": ("MeterId",),
        "meter_category": ("MeterCategory",),
        "meter_sub": ("MeterSubCategory",),
        "product": ("ProductName", "Product"),
        "resource": ("ResourceId", "InstanceId"),
        "sub_account": ("SubscriptionId", "SubscriptionGuid"),
        "region": ("ResourceLocation", "MeterRegion"),
        "quantity": ("Quantity", "UsageQuantity"),
        "unit": ("UnitOfMeasure",),
        "list_amount": ("PaygCostInBillingCurrency",),
        "pricing_currency": ("PricingCurrency", "PricingCurrencyCode"),
        "pricing_amount": ("CostInPricingCurrency",),
        "frequency": ("Frequency",),
        "pricing_model": ("PricingModel",),
        "reservation": ("ReservationId",),
        "term": ("Term",),
        "invoice": ("InvoiceId",),
        "reference_invoice": ("PreviousInvoiceId",),
    },
    needed=("amount", "start", "meter", "quantity", "unit"),
    about=(
        *("sub_account", "meter_id", "meter", "meter_category", "resource", "region", "type", "frequency"),
        *("pricing_model", "reservation", "term", "product"),
    ),
)
_CATEGORIES = {
    "usage": ChargeCategory.USAGE,
    "purchase": ChargeCategory.PURCHASE,
    "unusedreservation": ChargeCategory.PURCHASE,
    "unusedsavingsplan": ChargeCategory.PURCHASE,
    "refund": ChargeCategory.CREDIT,
    "adjustment": ChargeCategory.ADJUSTMENT,
    "roundingadjustment": ChargeCategory.ADJUSTMENT,
    "tax": ChargeCategory.TAX,
}
_MODEL = re.compile(
    r"(?P<model>[A-Za-z][A-Za-z0-9.]*(?:[- ][A-Za-z0-9.]+)*?)[- ]+(?:cchd|cached|cch|inp|inpt|input|outp|outpt|opt|"
    r"output|batch|aud|img|txt|text)\b.*",
    re.IGNORECASE,
)


def _charge(row: Row, source: Source) -> Charge | list[Refusal]:
    found, refused = measured(row, end="start")
    if refused:
        return refused
    kind = (text(row, "type") or "usage").replace(" ", "").lower()
    category = _CATEGORIES.get(kind, ChargeCategory.ADJUSTMENT)
    meter, unit = text(row, "meter") or "", text(row, "unit")
    meant = Sku(LineKind.ROUNDING) if kind == "roundingadjustment" else sku(_words(row, meter), unit, category)
    named = _MODEL.fullmatch(meter) if meant.kind is LineKind.TOKENS else None
    charge = Charge(
        provider=source.provider or "azure",
        **found,  # type: ignore[arg-type]
        about=about(row, SHAPE),
        currency=text(row, "currency"),
        category=category,
        kind=meant.kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or (re.sub(r"\s+", "-", named["model"]) if named else None),
        service_tier=meant.service_tier,
        region=text(row, "region"),
        sku=meter or text(row, "meter_id"),
        service=text(row, "meter_category"),
        account=text(row, "account"),
        project=text(row, "sub_account"),
        unit=unit,
        pricing_currency=text(row, "pricing_currency"),
        invoice_id=text(row, "invoice"),
        reference_invoice=text(row, "reference_invoice"),
    )
    return replace(charge, end=charge.start + timedelta(days=1))


def _words(row: Row, meter: str) -> str:
    """The meter's words, and of a service for models that they are of tokens."""
    where = f"{text(row, 'meter_category') or ''} {text(row, 'meter_sub') or ''} {text(row, 'product') or ''}".lower()
    of_models = any(word in where for word in ("openai", "foundry models", "cognitive services"))
    return (
        f"{meter} tokens" if of_models and (text(row, "unit") or "").strip().lower() in {"1k", "1m", "1000"} else meter
    )


IMPORTER = Importer(
    name="azure_costs",
    doc="Cost exports of Azure Cost Management (actual cost), as CSV or Parquet.",
    recognises=lambda path: recognises(path, SHAPE),
    check=lambda source: checked(source, SHAPE),
    read=lambda source, _: read_charges(source, SHAPE, NAME, _charge).staged(),
)
