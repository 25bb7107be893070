"""Their side: the lines of a provider's bills, last revisions, with what the contract says of SKUs and names.

A line of usage belongs to the month its charge period begins in, by the clock of the billing zone, whatever bill it
stands on: usage that is billed late so joins the month it is of. Every other line belongs to its billing month.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from weighbridge.pipeline.ingest.charges.charge import catalogued
from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.zones import month_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import BillingStatus, ChargeCategory, LineKind
from weighbridge.schemas.identity import pseudonym

# Kinds of lines that charge use; the others belong to a month as a whole.
OF_USE = (LineKind.TOKENS, LineKind.TOOL_FEE, LineKind.REQUEST_FEE, LineKind.STORAGE)
_OF_MODELS = (str(LineKind.TOKENS), str(LineKind.TOOL_FEE), str(LineKind.REQUEST_FEE))
CHARGES: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("kind", "model", "tenant", "token_class", "service_tier", "region", "modality"), pl.String()),
    "currency": pl.String(),
    **dict.fromkeys(("start", "end", "issued_at"), pl.Datetime("us", "UTC")),
    "tokens": pl.Int64(),
    **dict.fromkeys(("amount", "list_amount"), pl.Decimal(38, 18)),
    **dict.fromkeys(("open", "closed", "unmapped", "withdrawn"), pl.Boolean()),
    **dict.fromkeys(("category", "month", "segment", "sku", "service", "invoice_id"), pl.String()),
}


def latest_lines(lake: Records) -> pl.DataFrame:
    """The last revision of every line."""
    rows = lake.scan("invoice_line").sort("revision")
    return rows.unique(["provider", "invoice_id", "line_id"], keep="last", maintain_order=True).collect()


def importers_of(lake: Records) -> dict[str, str]:
    """Digest of a file -> what read it."""
    rows = lake.scan("segment", columns=["segment", "importer"]).unique().sort("segment", "importer").collect()
    return dict(rows.iter_rows())


def providers_of(lines: pl.DataFrame) -> list[str]:
    """Who charges anything, in alphabetical order."""
    return sorted(lines["provider"].unique())


def calls_of(lake: Records, provider: str) -> bool:
    """Whether any reading is of a provider."""
    found = lake.scan("reading", columns=["provider"]).filter(pl.col("provider") == provider).head(1).collect()
    return not found.is_empty()


def charges(
    lines: pl.DataFrame, contract: Contract, key: bytes | None, called: Callable[[], bool] = lambda: False
) -> pl.DataFrame:
    """The lines of one provider as `CHARGES`: what is charged, of whom, when, and in which month it belongs.

    Args:
        lines: rows of `invoice_line`, last revisions.
        contract: what was agreed.
        key: the installation's pseudonym key, for projects and tenants the contract names by their names.
        called: whether any call of ours was answered by the provider; asked where no line is known to be of a model.
    """
    of_sku = _of_skus(contract)
    tenants = tenants_of(contract, key)
    own = lines.filter(pl.col("provider") == contract.provider)
    rows = [_charge(row, contract, of_sku, tenants) for row in own.iter_rows(named=True)]
    made = _other_services(pl.DataFrame(rows, schema=CHARGES, infer_schema_length=None), called)
    return made.sort("start", "end", "kind", "model", "token_class", "amount", "tokens", "segment", nulls_last=True)


def _other_services(made: pl.DataFrame, called: Callable[[], bool]) -> pl.DataFrame:
    """The charges, with use of services that serve no model told as such.

    A service of which no line charges tokens or a tool, or names a model, is none of models: the bill of a cloud has
    machines and disks beside. Its lines are held against nothing. Where no line of any service is known to be of a
    model, and calls of ours were answered by this provider, nobody can say which service they are on: none is other.
    """
    of_models = pl.col("kind").is_in(_OF_MODELS) | pl.col("model").is_not_null()
    services = made.filter(of_models.fill_null(value=False))["service"].drop_nulls().unique()
    if services.is_empty() and called():
        return made
    unknown = pl.col("kind").is_null() | (pl.col("kind") == str(LineKind.STORAGE))
    of_use = pl.col("category") == str(ChargeCategory.USAGE)
    other = pl.col("service").is_not_null() & ~pl.col("service").is_in(services.implode()) & unknown & of_use
    told = pl.when(other).then(pl.lit(str(LineKind.OTHER_SERVICE))).otherwise("kind")
    return made.with_columns(kind=told)


def tenants_of(contract: Contract, key: bytes | None) -> dict[str, str]:
    """Pseudonym of a project, or of a key, -> pseudonym of a tenant, as the contract names them."""
    if key is None:
        return {**contract.projects, **contract.keys}
    named = (("project", contract.projects), ("key", contract.keys))
    return {_hidden(key, kind, theirs): tenant(key, ours) for kind, told in named for theirs, ours in told.items()}


def _hidden(key: bytes, kind: str, name: str) -> str:
    return name if name.startswith("p_") else pseudonym(key, kind, name)


def _of_skus(contract: Contract) -> dict[str, Mapping[str, str]]:
    return {name: told for sku, told in contract.skus.items() for name in (sku, catalogued(sku) or sku)}


def _charge(
    row: Mapping[str, Any], contract: Contract, of_sku: Mapping[str, Mapping[str, str]], tenants: Mapping[str, str]
) -> dict[str, Any]:
    told = of_sku.get(row["sku"] or "", {})
    kind = told.get("kind") or row["kind"]
    model = told.get("model") or row["model"]
    status = row["billing_status"]
    of_use = kind in OF_USE or (kind is None and row["category"] == ChargeCategory.USAGE)
    dated: datetime = row["period_start"] if of_use else row["billing_start"] or row["period_start"]
    return {
        "kind": kind,
        "model": contract.models.get(model, model) if model else None,
        "tenant": tenants.get(row["api_key"] or "") or tenants.get(row["project"] or ""),
        "token_class": told.get("token_class") or row["token_class"],
        "service_tier": told.get("service_tier") or row["service_tier"],
        "region": row["region"],
        "modality": row["modality"],
        "currency": row["currency"],
        "start": row["period_start"],
        "end": row["period_end"],
        "issued_at": row["issued_at"],
        "tokens": row["tokens"] if kind == LineKind.TOKENS else None,
        "amount": row["amount"],
        "list_amount": row["list_amount"],
        "open": status == BillingStatus.OPEN,
        "closed": status == BillingStatus.CLOSED,
        "unmapped": kind is None,
        "withdrawn": WITHDRAWN in (row["notes"] or ()),
        "category": row["category"],
        "month": month_of(dated, contract.zone),
        "segment": row["segment"],
        "sku": row["sku"],
        "service": row["service"],
        "invoice_id": row["invoice_id"],
    }
