"""Small bills in the shape of each provider."""

from __future__ import annotations

import json
from pathlib import Path

FOCUS = (
    "BilledCost,BillingAccountId,BillingCurrency,BillingPeriodEnd,BillingPeriodStart,ChargeCategory,ChargeClass,"
    "ChargeDescription,ChargePeriodEnd,ChargePeriodStart,ConsumedQuantity,ConsumedUnit,SkuMeter,SkuPriceDetails,"
    "ServiceProviderName,SubAccountId,SkuId,EffectiveCost,ListCost"
)
CUR = (
    "bill_invoice_id,bill_payer_account_id,bill_billing_period_start_date,bill_billing_period_end_date,"
    "line_item_usage_start_date,line_item_usage_end_date,line_item_line_item_type,line_item_usage_type,"
    "line_item_usage_amount,pricing_unit,line_item_unblended_cost,line_item_currency_code,product_servicecode,"
    "line_item_usage_account_id"
)
AZURE = (
    "BillingAccountId,BillingPeriodStartDate,BillingPeriodEndDate,Date,SubscriptionId,MeterName,MeterCategory,Quantity,"
    "UnitOfMeasure,CostInBillingCurrency,BillingCurrency,ChargeType"
)


def focus(*rows: str) -> str:
    """FOCUS rows under their names."""
    return "\n".join((FOCUS, *rows)) + "\n"


def focus_row(cost: str = "1.5", **changes: str) -> str:
    """One FOCUS row: input tokens of a day of April 2026."""
    row = {
        "BilledCost": cost,
        "BillingAccountId": "acct-1",
        "BillingCurrency": "USD",
        "BillingPeriodEnd": "2026-05-01T00:00:00Z",
        "BillingPeriodStart": "2026-04-01T00:00:00Z",
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargeDescription": "",
        "ChargePeriodEnd": "2026-04-02T00:00:00Z",
        "ChargePeriodStart": "2026-04-01T00:00:00Z",
        "ConsumedQuantity": "600000",
        "ConsumedUnit": "Tokens",
        "SkuMeter": "Input Tokens",
        "SkuPriceDetails": '"{""ModelId"": ""gpt-4o""}"',
        "ServiceProviderName": "OpenAI",
        "SubAccountId": "proj_1",
        "SkuId": "sku-1",
        "EffectiveCost": cost,
        "ListCost": cost,
    }
    return ",".join((row | changes)[name] for name in FOCUS.split(","))


def costs(*results: dict[str, object], start: int = 1_775_001_600) -> dict[str, object]:
    """A page of OpenAI's organization costs: one bucket, the day that begins at `start` (1 April 2026)."""
    bucket = {"object": "bucket", "start_time": start, "end_time": start + 86_400, "results": list(results)}
    return {"object": "page", "data": [bucket], "has_more": False}


def cost(value: str = "0.06", **changes: object) -> dict[str, object]:
    """One result: its amount is put into the text of the page digit by digit by `as_json`."""
    told: dict[str, object] = {
        "object": "organization.costs.result",
        "amount": {"value": f"#{value}#", "currency": "usd"},
        "line_item": "gpt-4o-2024-08-06, input",
        "project_id": "proj_1",
    }
    return told | changes


def as_json(page: object) -> str:
    """The text of a page, with amounts as the JSON numbers they are written as."""
    return json.dumps(page).replace('"#', "").replace('#"', "")


def cents(amount: str = "123.78912", **changes: object) -> dict[str, object]:
    """One result of Anthropic's cost report, in cents."""
    told: dict[str, object] = {
        "amount": amount,
        "currency": "USD",
        "cost_type": "tokens",
        "token_type": "uncached_input_tokens",
        "model": "claude-opus-4-6",
        "service_tier": "standard",
        "workspace_id": "wrkspc_1",
        "context_window": "0-200k",
        "description": "Claude Opus 4.6 Usage - Input Tokens",
    }
    return told | changes


def report(*results: dict[str, object]) -> dict[str, object]:
    """A page of Anthropic's cost report: 1 April 2026."""
    bucket = {"starting_at": "2026-04-01T00:00:00Z", "ending_at": "2026-04-02T00:00:00Z", "results": list(results)}
    return {"data": [bucket], "has_more": False}


def google(cost: str = "0.0123", **changes: object) -> dict[str, object]:
    """One row of Google's export."""
    row: dict[str, object] = {
        "billing_account_id": "01-AB",
        "service": {"description": "Vertex AI"},
        "sku": {"id": "1A-2B", "description": "Gemini 2.5 Flash Text Input - Predictions"},
        "usage_start_time": "2026-04-01 07:00:00 UTC",
        "usage_end_time": "2026-04-01 08:00:00 UTC",
        "project": {"id": "proj-g"},
        "cost": f"#{cost}#",
        "currency": "USD",
        "usage": {"amount": "#41000#", "unit": "count"},
        "invoice": {"month": "202604"},
        "credits": [],
    }
    return row | changes


def cur_row(usage: str, quantity: str, cost: str, kind: str = "Usage", invoice: str = "") -> str:
    """One row of a CUR."""
    times = "2026-04-01T00:00:00.000Z,2026-05-01T00:00:00.000Z,2026-04-01T00:00:00Z,2026-04-01T01:00:00Z"
    return f"{invoice},1234,{times},{kind},{usage},{quantity},1K tokens,{cost},USD,AmazonBedrock,5678"


def azure_row(meter: str, quantity: str, cost: str, unit: str = "1K", kind: str = "Usage") -> str:
    """One row of an Azure export."""
    where = "acct,04/01/2026,04/30/2026,04/01/2026,sub-1"
    return f"{where},{meter},Azure OpenAI,{quantity},{unit},{cost},USD,{kind}"


def bills(folder: Path) -> dict[str, Path]:
    """One bill for each importer of charges, with two records."""
    texts = {
        "aws_cur": ("cur.csv", "\n".join((CUR, cur_row("USE1-Claude3.5Sonnet-input-tokens", "41.5", "0.1245"),
                                          cur_row("USE1-Claude3.5Sonnet-output-tokens", "2", "0.03"))) + "\n"),
        "azure_costs": ("azure.csv", "\n".join((AZURE, azure_row("gpt-4o-0806-Inp-glbl Tokens", "12", "0.03"),
                                                azure_row("gpt-4o-0806-Outp-glbl Tokens", "3", "0.03"))) + "\n"),
        "cost_pages": ("costs.json", as_json(costs(cost(), cost("0.5", line_item="gpt-4o-2024-08-06, output")))),
        "currency_rates": ("rates.csv", "Date,USD,JPY\n2026-04-01,1.0812,161.5\n2026-04-02,1.09,N/A\n"),
        "focus": ("focus.csv", focus(focus_row(), focus_row("2", SkuMeter="Output Tokens", SkuId="sku-2"))),
        "google_billing": ("google.jsonl", "\n".join(as_json(google(c)) for c in ("0.0123", "0.5")) + "\n"),
        "mapped_charges": ("bill.csv", "in,on,to\n1.5,2026-04-01,a\n2,2026-04-01,b\n"),
    }  # fmt: skip
    paths = {}
    for name, (file, text) in texts.items():
        paths[name] = folder / file
        paths[name].write_text(text, encoding="utf-8")
    return paths
