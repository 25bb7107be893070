"""Bills: every line once, every digit, under a pseudonym; what cannot be read is told, what is not known stays null."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.bill_samples import (
    AZURE,
    CUR,
    as_json,
    azure_row,
    cents,
    cost,
    costs,
    cur_row,
    focus,
    focus_row,
    google,
    report,
)

from weighbridge.pipeline.ingest.charges.figures import amount, moment
from weighbridge.pipeline.ingest.charges.skus import Sku, sku, tokens_of
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.validate import validate
from weighbridge.schemas.enumerations import ChargeCategory, LineKind, Modality, QuarantineReason, TokenClass
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import pseudonym

Take = Callable[..., IngestResult]


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(lake: Lake) -> pl.DataFrame:
    return lake.scan("invoice_line").collect().sort("segment_row", "line_id", "revision")


@pytest.mark.parametrize(
    ("written", "value", "note"),
    [
        (Decimal("0.06"), "0.06", None),
        ("-0.00000080000", "-0.0000008", None),
        ("0", "0", None),
        (Decimal("1E-7"), "0.0000001", None),
        (0.1, "0.1", "float_amount"),
        ("0.1234567890123456785", "0.123456789012345678", "rounded_to_18_places"),
        ("99999999999999999999", "99999999999999999999", None),
    ],
)
def test_amounts_keep_every_digit(written: object, value: str, note: str | None) -> None:
    found = amount(written)
    assert (found.value, found.reason, found.note) == (Decimal(value), None, note)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("1,5", QuarantineReason.TYPE),
        ("NaN", QuarantineReason.NOT_A_NUMBER),
        (float("inf"), QuarantineReason.NOT_A_NUMBER),
        (True, QuarantineReason.TYPE),
        ("1e30", QuarantineReason.RANGE),
        ("100000000000000000000", QuarantineReason.RANGE),
        (["1"], QuarantineReason.TYPE),
    ],
)
def test_what_is_no_amount_is_refused(written: object, reason: QuarantineReason) -> None:
    assert amount(written) == (None, reason, None)


def test_times_of_bills() -> None:
    first = datetime(2025, 4, 1, tzinfo=UTC)
    for text in (
        "4/1/25",
        "04/01/2025",
        "2025-04-01",
        "20250401",
        "2025-04-01 00:00:00 UTC",
        "2025-04-01T02:00:00+02:00",
    ):
        assert moment(text) == first, text
    for other in ("13/1/25", "1.4.2025", "", "25", None, "2025-02-30"):
        assert moment(other) is None


@pytest.mark.parametrize(
    ("words", "unit", "expected"),
    [
        ("Input Tokens", "Tokens", Sku(LineKind.TOKENS, TokenClass.INPUT_UNCACHED, Modality.TEXT)),
        ("cached input tokens", None, Sku(LineKind.TOKENS, TokenClass.CACHE_READ, Modality.TEXT)),
        ("USW2-ClaudeSonnet4-cache-write-input-token-count", "1K tokens",
         Sku(LineKind.TOKENS, TokenClass.CACHE_WRITE_UNKNOWN, Modality.TEXT)),
        ("cache write 1h tokens", None, Sku(LineKind.TOKENS, TokenClass.CACHE_WRITE_1H, Modality.TEXT)),
        ("Claude output-tokens-batch", "1K tokens",
         Sku(LineKind.TOKENS, TokenClass.OUTPUT_VISIBLE, Modality.TEXT, "batch")),
        ("Gemini Audio Input tokens", "count", Sku(LineKind.TOKENS, TokenClass.INPUT_UNCACHED, Modality.AUDIO)),
        ("Gemini Thinking Text Output tokens", "count", Sku(LineKind.TOKENS, TokenClass.REASONING, Modality.TEXT)),
        ("Web search tool calls", None, Sku(LineKind.TOOL_FEE)),
        ("vector storage", "GB-Months", Sku(LineKind.STORAGE)),
        ("Token Consumption - Q Widget SKU", "Execution", Sku()),
        ("output power", "kW", Sku()),
    ],
)  # fmt: skip
def test_what_words_say_of_a_usage_line(words: str, unit: str | None, expected: Sku) -> None:
    assert sku(words, unit, ChargeCategory.USAGE) == expected


def test_quantities_are_tokens_only_in_units_of_tokens() -> None:
    told = [("41.5", "1K tokens"), ("2", "1000000 Tokens"), ("0.5", "Tokens"), ("7", "GB"), ("12", "1K"), ("3", None)]
    found = [tokens_of(Decimal(number), unit, LineKind.TOKENS) for number, unit in told]
    assert found == [41_500, 2_000_000, None, None, 12_000, None]
    assert tokens_of(Decimal(12), "1K", None) is None
    assert tokens_of(Decimal(2**63), "tokens", LineKind.TOKENS) is None


def test_openai_s_costs_are_dollars_digit_by_digit(lake: Lake, take: Take, tmp_path: Path, key: bytes) -> None:
    page = costs(
        cost("0.1234567890123"),
        cost("0", line_item="gpt-4o-2024-08-06, cached input"),
        cost("2.5", line_item="web search tool calls", project_id=None),
        cost("-1", line_item="something new"),
    )
    (file,) = take([put(tmp_path, "costs.json", as_json(page))], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("cost_pages", 4, 4)
    rows = lines(lake)
    assert rows["amount"].to_list() == [Decimal(a) for a in ("0.1234567890123", "0", "2.5", "-1")]
    assert rows["kind"].to_list() == ["tokens", "tokens", "tool_fee", None]
    assert rows["token_class"].to_list() == ["input_uncached", "cache_read", None, None]
    assert rows["model"].to_list() == ["gpt-4o-2024-08-06", "gpt-4o-2024-08-06", None, None]
    assert rows["project"].to_list() == [pseudonym(key, "project", "proj_1")] * 2 + [
        None,
        pseudonym(key, "project", "proj_1"),
    ]
    assert set(rows["currency"]) == {"USD"}
    assert rows["invoice_id"].unique().to_list() == ["openai:2026-04"]
    assert rows["period_start"][0] == datetime(2026, 4, 1, tzinfo=UTC)


def test_anthropic_s_costs_are_cents(lake: Lake, take: Take, tmp_path: Path) -> None:
    page = report(
        cents(),
        cents("0.5", token_type="cache_creation.ephemeral_1h_input_tokens", service_tier="batch"),
        cents("1000", cost_type="web_search", token_type=None, model=None, description="Web Search Usage"),
    )
    take([put(tmp_path, "report.json", as_json(page))], lake)
    rows = lines(lake)
    assert rows["amount"].to_list() == [Decimal("1.2378912"), Decimal("0.005"), Decimal(10)]
    assert rows["kind"].to_list() == ["tokens", "tokens", "tool_fee"]
    assert rows["token_class"].to_list() == ["input_uncached", "cache_write_1h", None]
    assert rows["service_tier"].to_list() == ["standard", "batch", "standard"]


def test_the_same_bucket_fetched_later_is_a_revision_of_its_lines(lake: Lake, take: Take, tmp_path: Path) -> None:
    take([put(tmp_path, "one.json", as_json(costs(cost("0.06"), cost("1", line_item="o3, output"))))], lake)
    (again,) = take(
        [put(tmp_path, "two.json", as_json(costs(cost("0.07"), cost("1", line_item="o3, output"))))], lake
    ).files
    assert (again.rows_in, again.rows_out, again.rows_duplicate) == (2, 1, 1)
    held = lines(lake).select("line_id", "amount", "revision").sort("amount").rows()
    assert [(paid, revision) for _, paid, revision in held] == [
        (Decimal("0.06"), 0),
        (Decimal("0.07"), 1),
        (Decimal(1), 0),
    ]
    assert held[0][0] == held[1][0] != held[2][0]


def test_lines_about_the_same_are_told_apart_by_their_order(lake: Lake, take: Take, tmp_path: Path) -> None:
    (file,) = take([put(tmp_path, "f.csv", focus(focus_row("1"), focus_row("1"), focus_row("2")))], lake).files
    assert (file.rows_in, file.rows_out) == (3, 3)
    assert lines(lake)["amount"].sum() == 4


def test_a_focus_line(lake: Lake, take: Take, tmp_path: Path, key: bytes) -> None:
    told = focus_row("-3", ChargeClass="Correction", ListCost="4", EffectiveCost="-2")
    take([put(tmp_path, "f.csv", focus(told))], lake)
    row = lines(lake).row(0, named=True)
    assert (row["provider"], row["model"], row["token_class"], row["tokens"]) == (
        "openai",
        "gpt-4o",
        "input_uncached",
        600_000,
    )
    assert (row["amount"], row["list_amount"], row["effective_amount"]) == (Decimal(-3), Decimal(4), Decimal(-2))
    assert row["account"] == pseudonym(key, "account", "acct-1")
    assert row["project"] == pseudonym(key, "project", "proj_1")
    assert row["correction"] is True
    assert (row["billing_start"], row["billing_end"]) == (
        datetime(2026, 4, 1, tzinfo=UTC),
        datetime(2026, 5, 1, tzinfo=UTC),
    )


def test_a_line_without_a_currency_is_kept_and_says_so(lake: Lake, take: Take, tmp_path: Path) -> None:
    take(
        [put(tmp_path, "f.csv", focus(focus_row(BillingCurrency=""), focus_row("2", BillingCurrency="Credits")))], lake
    )
    rows = lines(lake).sort("amount")
    assert rows["currency"].to_list() == [None, None]
    assert rows["notes"].to_list() == [["currency_missing"], ["currency_unknown"]]


def test_lines_that_cannot_be_read_are_told_with_their_place(lake: Lake, take: Take, tmp_path: Path) -> None:
    bad = [
        focus_row(""),
        focus_row("lots", EffectiveCost="1", ListCost="1"),
        focus_row(ChargeCategory="Gift"),
        focus_row(ChargePeriodStart="yesterday"),
        focus_row(ChargePeriodEnd="2026-03-01T00:00:00Z"),
    ]
    (file,) = take([put(tmp_path, "f.csv", focus(*bad, focus_row("0")))], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (6, 1, 5)
    held = lake.scan("quarantine").collect().sort("line")
    assert held.select("line", "reason", "path").rows() == [
        (0, "missing_field", "invoice_line.amount"),
        (1, "type", "invoice_line.amount"),
        (2, "schema", "invoice_line.category"),
        (3, "bad_time", "invoice_line.period_start"),
        (4, "bad_time", "invoice_line.period_end"),
    ]
    assert not any("lots" in str(value) or "Gift" in str(value) for row in held.rows() for value in row)


def test_invoice_details_and_billing_periods_are_no_charges(lake: Lake, take: Take, tmp_path: Path) -> None:
    detail = (
        "InvoiceDetailId,InvoiceId,InvoiceIssueDate,InvoiceIssueStatus,BilledCost,BillingCurrency,BillingAccountId,"
        "BillingPeriodStart,BillingPeriodEnd,ChargeCategory,PaymentCurrency,PaymentCurrencyBilledCost,ReferenceInvoiceId,"
        "InvoiceIssuerName\nd-1,inv-7,2026-05-03,Issued,12.5,USD,acct-1,2026-04-01,2026-05-01,Usage,EUR,11.5,inv-6,OpenAI\n"
    )
    names = "BillingPeriodStart,BillingPeriodEnd,BillingPeriodStatus,InvoiceIssuerName"
    period = f"{names}\n2026-04-01,2026-05-01,Closed,OpenAI\n"
    files = take([put(tmp_path, "d.csv", detail), put(tmp_path, "p.csv", period)], lake).files
    assert [(file.importer, file.rows_out) for file in files] == [("focus", 1), ("focus", 1)]
    assert lake.rows("invoice_line") == 0
    rows = lake.scan("invoice_detail").collect().sort("detail_id")
    assert rows["detail_id"].to_list() == ["billing-period", "d-1"]
    assert rows["billing_status"].to_list() == ["Closed", None]
    assert (rows["amount"][1], rows["payment_amount"][1], rows["payment_currency"][1]) == (
        Decimal("12.5"),
        Decimal("11.5"),
        "EUR",
    )
    assert (rows["invoice_id"][1], rows["reference_invoice"][1], rows["invoice_status"][1]) == (
        "inv-7",
        "inv-6",
        "Issued",
    )


def test_aws_usage_types_name_model_and_class(lake: Lake, take: Take, tmp_path: Path) -> None:
    rows = (
        cur_row("USE1-Claude3.5Sonnet-input-tokens", "41.5", "0.1245"),
        cur_row("USW2-ClaudeSonnet4-cache-read-input-token-count", "2", "0.0006"),
        cur_row("USE1-BoxUsage", "1", "-0.2", kind="EdpDiscount", invoice="9"),
        cur_row("Tax", "1", "0.3", kind="Tax"),
        cur_row("USE1-Claude3.5Sonnet-output-tokens", "x", "1"),
    )
    (file,) = take([put(tmp_path, "cur.csv", "\n".join((CUR, *rows)) + "\n")], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (5, 4, 1)
    found = lines(lake)
    assert found["provider"].unique().to_list() == ["bedrock"]
    assert found.select("model", "token_class", "kind", "tokens").rows() == [
        ("Claude3.5Sonnet", "input_uncached", "tokens", 41_500),
        ("ClaudeSonnet4", "cache_read", "tokens", 2_000),
        (None, None, "discount", None),
        (None, None, "tax", None),
    ]
    assert found["billing_status"].to_list() == ["Open", "Open", "Closed", "Open"]


def test_azure_meters_name_model_and_class(lake: Lake, take: Take, tmp_path: Path) -> None:
    rows = (
        azure_row("gpt-4o-0806-cchd-Inp-glbl Tokens", "12", "0.03"),
        azure_row("gpt 4o 0513 Output global", "3", "0.03"),
        azure_row("Rounding", "1", "0.000001", unit="1", kind="RoundingAdjustment"),
    )
    take([put(tmp_path, "azure.csv", "\n".join((AZURE, *rows)) + "\n")], lake)
    found = lines(lake)
    assert found.select("model", "token_class", "kind", "tokens").rows() == [
        ("gpt-4o-0806", "cache_read", "tokens", 12_000),
        ("gpt-4o-0513", "output_visible", "tokens", 3_000),
        (None, None, "rounding", None),
    ]
    assert found["period_end"][0] == datetime(2026, 4, 2, tzinfo=UTC)


def test_credits_inside_a_row_of_google_are_lines_of_their_own(lake: Lake, take: Take, tmp_path: Path) -> None:
    credit = {"type": "DISCOUNT", "name": "deal", "amount": "#-0.001#"}
    late = google("1", invoice={"month": "202605"}, credits=[{"type": "PROMOTION", "amount": "#-2#"}])
    bad = google("1", credits=[{"type": "PROMOTION", "amount": "free"}])
    text = "\n".join(map(as_json, (google(credits=[credit]), late, bad)))
    (file,) = take([put(tmp_path, "g.jsonl", text)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (3, 2, 1)
    found = lines(lake).sort("segment_row", "amount", descending=[False, True])
    assert found.select("amount", "kind", "invoice_id").rows() == [
        (Decimal("0.0123"), "tokens", f"{found['account'][0]}:2026-04"),
        (Decimal("-0.001"), "discount", f"{found['account'][0]}:2026-04"),
        (Decimal(1), "tokens", f"{found['account'][0]}:2026-05"),
        (Decimal(-2), "credit", f"{found['account'][0]}:2026-05"),
    ]
    assert (found["model"][0], found["tokens"][0]) == ("gemini-2.5-flash", 41_000)


MAPPING = """
[source]
name = "reseller"
provider = "openai"
currency = "EUR"
separator = ";"
[charges]
amount = "net"
start = "day"
sku = "article"
quantity = "units"
unit = "of"
[time]
format = "%d.%m.%Y"
zone = "Europe/Berlin"
[skus."A-1"]
kind = "tokens"
token_class = "cache_read"
model = "gpt-4o"
"""


def test_any_bill_with_a_mapping(lake: Lake, take: Take, tmp_path: Path) -> None:
    text = "day;article;units;of;net\n01.04.2026;A-1;5;1K tokens;0.5\n01.04.2026;B-2;1;piece;-3\n31.02.2026;A-1;1;x;1\n"
    told = put(tmp_path, "m.toml", MAPPING)
    (file,) = take([put(tmp_path, "b.csv", text)], lake, mapping=told).files
    assert (file.importer, file.rows_in, file.rows_out, file.rows_quarantined) == ("mapped_charges", 3, 2, 1)
    found = lines(lake)
    assert found.select("model", "token_class", "kind", "tokens", "currency").rows() == [
        ("gpt-4o", "cache_read", "tokens", 5_000, "EUR"),
        (None, None, None, None, "EUR"),
    ]
    assert found["period_start"][0] == datetime(2026, 3, 31, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("was", "becomes", "match"),
    [
        ('amount = "net"', 'amuont = "net"', "did you mean 'amount'"),
        ('amount = "net"\n', "", "names no column for amount"),
        ('kind = "tokens"', 'kind = "tokns"', "allowed are tokens"),
        ('provider = "openai"\n', "", "who charges"),
        ("Europe/Berlin", "Mars", "no IANA time zone"),
        ("[time]", "[tiem]", "did you mean 'time'"),
    ],
)
def test_a_mapping_that_cannot_be_used_says_what_is_allowed(
    take: Take, lake: Lake, tmp_path: Path, was: str, becomes: str, match: str
) -> None:
    told = put(tmp_path, "m.toml", MAPPING.replace(was, becomes))
    with pytest.raises(ConfigError, match=match):
        take([put(tmp_path, "b.csv", "day;article;units;of;net\n")], lake, mapping=told)


def test_rates_of_days_without_one_stay_out(lake: Lake, take: Take, tmp_path: Path) -> None:
    wide = "Date,USD,JPY,\n2026-04-01,1.0812,161.5,\n2026-04-02,1.09,N/A,\n2026-04-03,-1,2,\n"
    long = "base,quote,date,rate\nGBP,USD,2026-04-01,1.25\n"
    first, second = take([put(tmp_path, "w.csv", wide), put(tmp_path, "l.csv", long)], lake).files
    assert (first.rows_in, first.rows_out, first.rows_quarantined) == (3, 2, 1)
    assert second.rows_out == 1
    held = lake.scan("currency_rate").collect().sort("base", "quote", "rate_day")
    assert held.select("base", "quote", "rate_day", "rate").rows() == [
        ("EUR", "JPY", date(2026, 4, 1), Decimal("161.5")),
        ("EUR", "USD", date(2026, 4, 1), Decimal("1.0812")),
        ("EUR", "USD", date(2026, 4, 2), Decimal("1.09")),
        ("GBP", "USD", date(2026, 4, 1), Decimal("1.25")),
    ]


@pytest.mark.real
def test_the_real_sample_is_read_to_the_last_row_and_digit(lake: Lake, take: Take, shared_real: Path) -> None:
    (file,) = take([shared_real / "billing" / "focus_1_0_sample.csv"], lake).files
    assert (file.importer, file.rows_in, file.rows_out, file.rows_quarantined) == ("focus", 1000, 1000, 0)
    rows = lines(lake)
    assert rows["amount"].sum() == Decimal("20.520226728990000000")
    assert (rows.filter(pl.col("amount") < 0).height, rows.filter(pl.col("amount") == 0).height) == (13, 329)
    assert dict(rows["category"].value_counts().iter_rows()) == {"Usage": 997, "Adjustment": 2, "Credit": 1}
    assert rows["notes"].null_count() == 1000
    assert validate(lake, today=date(2026, 1, 20), tables=["invoice_line", "segment"]).violations == ()


@pytest.mark.real
def test_the_examples_of_the_specification(lake: Lake, take: Take, shared_real: Path) -> None:
    """Virtual currencies stand beside the money, and their `tokens` are none of a model.

    The examples tell of the same charges at other prices: the last of them changes one line of the one before.
    """
    files = take([shared_real / "billing" / "focus_spec_examples"], lake).files
    assert [(file.rows_in, file.rows_out) for file in files] == [(1, 1), (3, 3), (1, 1), (3, 3), (3, 1), (2, 2)]
    rows = lake.scan("invoice_line").collect()
    assert rows["pricing_currency"].value_counts().sort("pricing_currency").rows() == [("Token", 7), ("USD", 4)]
    assert rows["tokens"].null_count() == rows.height == 11
    bought = rows.filter(pl.col("kind") == "commitment")
    assert sorted(bought["amount"]) == [Decimal(n) for n in (3_000, 50_000, 100_000, 200_000)]
    assert rows["period_start"].min() == datetime(2025, 4, 1, tzinfo=UTC)
