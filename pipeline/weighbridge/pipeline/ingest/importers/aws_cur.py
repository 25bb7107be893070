"""AWS Cost and Usage Reports: CUR 2.0 of Data Exports, and the legacy names with a slash (CSV, Parquet).

    bill_billing_entity,bill_billing_period_start_date,bill_payer_account_id,line_item_usage_type,line_item_unblended_cost

The unblended cost is what is billed. Usage types name model and class (`USE1-Claude3.5Sonnet-input-tokens`); what AWS
calls a model there is kept as its name, and a contract says which of our models that is. An invoice id is there only
once the bill is issued: until then the period is open.
"""

from __future__ import annotations

import re

from weighbridge.pipeline.ingest.charges.charge import Charge, refusal
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
from weighbridge.pipeline.ingest.importers.focus import provider_of
from weighbridge.schemas.enumerations import BillingStatus, ChargeCategory, LineKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

NAME = "aws-cur"


def _both(table: str, name: str) -> tuple[str, ...]:
    return (f"{table}_{name}", f"{table}/{name}")


SHAPE = Shape(
    columns={
        "amount": _both("line_item", "unblended_cost"),
        "currency": _both("line_item", "currency_code"),
        "start": _both("line_item", "usage_start_date"),
        "end": _both("line_item", "usage_end_date"),
        "type": _both("line_item", "line_item_type"),
        "usage_type": _both("line_item", "usage_type"),
        "operation": _both("line_item", "operation"),
        "code": _both("line_item", "product_code"),
        "service": ("product_servicecode", "product/servicecode"),
        "words": _both("line_item", "line_item_description"),
        "entity": _both("line_item", "legal_entity"),
        "sub_account": _both("line_item", "usage_account_id"),
        "resource": _both("line_item", "resource_id"),
        "quantity": _both("line_item", "usage_amount"),
        "unit": _both("pricing", "unit"),
        "rate": _both("pricing", "rate_code"),
        "list_amount": _both("pricing", "public_on_demand_cost"),
        "effective_amount": _both("line_item", "net_unblended_cost"),
        "account": _both("bill", "payer_account_id"),
        "billing_start": _both("bill", "billing_period_start_date"),
        "billing_end": _both("bill", "billing_period_end_date"),
        "invoice": _both("bill", "invoice_id"),
        "bill": _both("bill", "bill_type"),
        "region": ("product_region_code", "product/regionCode", "product/region"),
    },
    needed=("amount", "start", "end", "type", "usage_type", "billing_start"),
    about=(
        *("sub_account", "code", "usage_type", "operation", "type", "bill", "resource", "rate", "words", "unit"),
        "entity",
    ),
)
_USAGE = frozenset("usage discountedusage savingsplancoveredusage".split())
_CATEGORIES = {
    **dict.fromkeys(_USAGE, (ChargeCategory.USAGE, None)),
    "tax": (ChargeCategory.TAX, LineKind.TAX),
    "credit": (ChargeCategory.CREDIT, LineKind.CREDIT),
    "refund": (ChargeCategory.CREDIT, LineKind.CREDIT),
    "fee": (ChargeCategory.PURCHASE, LineKind.COMMITMENT),
    "rifee": (ChargeCategory.PURCHASE, LineKind.COMMITMENT),
    "savingsplanupfrontfee": (ChargeCategory.PURCHASE, LineKind.COMMITMENT),
    "savingsplanrecurringfee": (ChargeCategory.PURCHASE, LineKind.COMMITMENT),
    "savingsplannegation": (ChargeCategory.ADJUSTMENT, LineKind.COMMITMENT),
    **dict.fromkeys(
        "discount bundleddiscount edpdiscount privateratediscount".split(),
        (ChargeCategory.ADJUSTMENT, LineKind.DISCOUNT),
    ),
}
_MODEL = re.compile(
    r"(?:[A-Z]{2,5}\d?-)?(?P<model>[A-Za-z][A-Za-z0-9.]*(?:-[A-Za-z0-9.]+)*?)-"
    r"(?:input|output|cache|cached|text|image|audio|batch|flex|priority)\b.*",
    re.IGNORECASE,
)


def _charge(row: Row, source: Source) -> Charge | list[Refusal]:
    found, refused = measured(row)
    category, kind = _CATEGORIES.get((text(row, "type") or "").replace(" ", "").lower(), (None, None))
    if category is None:
        refused.append(refusal("category", QuarantineReason.SCHEMA))
    if refused or category is None:
        return refused
    usage = text(row, "usage_type") or ""
    unit = text(row, "unit")
    meant = sku(usage, unit, category) if category is ChargeCategory.USAGE else Sku(kind)
    named = _MODEL.fullmatch(usage) if meant.kind is LineKind.TOKENS else None
    invoice = text(row, "invoice")
    return Charge(
        provider=source.provider or provider_of("aws", text(row, "service") or text(row, "code")),
        **found,  # type: ignore[arg-type]
        about=about(row, SHAPE),
        currency=text(row, "currency"),
        category=category,
        kind=meant.kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or (named["model"] if named else None),
        service_tier=meant.service_tier,
        region=text(row, "region"),
        sku=usage or None,
        service=text(row, "service") or text(row, "code"),
        account=text(row, "account"),
        project=text(row, "sub_account"),
        unit=unit,
        billing_status=BillingStatus.CLOSED if invoice else BillingStatus.OPEN,
        invoice_id=invoice,
    )


IMPORTER = Importer(
    name="aws_cur",
    doc="AWS Cost and Usage Reports, CUR 2.0 and the legacy names, as CSV or Parquet.",
    recognises=lambda path: recognises(path, SHAPE),
    check=lambda source: checked(source, SHAPE),
    read=lambda source, _: read_charges(source, SHAPE, NAME, _charge).staged(),
)
