"""Cost pages of providers' own accounts: OpenAI's organization costs and Anthropic's cost report.

    {"object": "page", "data": [{"object": "bucket", "start_time": 1775001600, "end_time": 1775088000, "results": [
        {"object": "organization.costs.result", "amount": {"value": 0.06, "currency": "usd"},
         "line_item": "gpt-4o-2024-08-06, input", "project_id": "proj_abc"}]}], "has_more": false}
    {"data": [{"starting_at": "2026-04-01T00:00:00Z", "ending_at": "2026-04-02T00:00:00Z", "results": [
        {"amount": "123.78912", "currency": "USD", "cost_type": "tokens", "model": "claude-opus-4-6",
         "token_type": "uncached_input_tokens", ...}]}], "has_more": false}

OpenAI's amount is a JSON number in whole currency units: its digits are taken as they stand. Anthropic's is a decimal
text in cents. The same bucket and grouping fetched again is a revision, of which the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from weighbridge.pipeline.ingest.charges.charge import Charge, ChargeRows, refusal
from weighbridge.pipeline.ingest.charges.figures import amount
from weighbridge.pipeline.ingest.charges.skus import Sku, sku
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.record_fields import epoch_time, iso_time
from weighbridge.schemas.enumerations import ChargeCategory, LineKind, Modality, QuarantineReason, TokenClass
from weighbridge.schemas.leaves import Refusal

NAME = "cost-pages"
PAGES_MISSING = "pages_missing"
_CENTS = Decimal(100)
_OPENAI = "organization.costs.result"
_ABOUT = (
    *("line_item", "project_id", "project_name", "organization_id", "api_key_id", "description", "cost_type"),
    *("token_type", "model", "workspace_id", "service_tier", "context_window", "inference_geo"),
)
# Anthropic's own words for what is charged.
_TOKEN_TYPES = {
    "uncached_input_tokens": TokenClass.INPUT_UNCACHED,
    "output_tokens": TokenClass.OUTPUT_VISIBLE,
    "cache_read_input_tokens": TokenClass.CACHE_READ,
    "cache_creation.ephemeral_5m_input_tokens": TokenClass.CACHE_WRITE_5M,
    "cache_creation.ephemeral_1h_input_tokens": TokenClass.CACHE_WRITE_1H,
}
_COST_TYPES = {"web_search": LineKind.TOOL_FEE, "code_execution": LineKind.TOOL_FEE}


def _results(record: Mapping[str, object]) -> Iterator[tuple[Mapping[str, object], object]]:
    buckets = record.get("data")
    for bucket in buckets if isinstance(buckets, list) else []:
        results = bucket.get("results") if isinstance(bucket, dict) else None
        for result in results if isinstance(results, list) else []:
            yield bucket, result


def _recognises(path: Path) -> bool:
    return recognised(path, read_records, _is_page) and not recognised(path, read_records, _has_usage)


def _has_usage(record: Mapping[str, object]) -> bool:
    """Whether a page tells counts: a file with any is one of `usage_pages`, which refuses the costs in it."""
    return any(isinstance(result, dict) and "amount" not in result for _, result in _results(record))


def _is_page(record: Mapping[str, object]) -> bool:
    return "has_more" in record and any(
        isinstance(result, dict) and "amount" in result and (result.get("object") == _OPENAI or "starting_at" in bucket)
        for bucket, result in _results(record)
    )


def _check(source: Source) -> Heading:
    return heading(source.path, read_records, "cost page", "Fetch it again")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    rows = ChargeRows(source, NAME)
    lines = list(read_records(source.path))
    for line in lines:
        if line.value is None:
            rows.add(Refusal("", line.reason or QuarantineReason.NOT_JSON))
            continue
        if not isinstance(line.value.get("data"), list):
            rows.add(Refusal("data", QuarantineReason.MISSING_FIELD))
            continue
        missing = (PAGES_MISSING,) if line.value.get("has_more") is True and line is lines[-1] else ()
        for bucket, result in _results(line.value):
            rows.add(_charge(bucket, result, source, missing))
    return rows.staged()


def _charge(bucket: Mapping[str, object], result: object, source: Source, notes: tuple[str, ...]) -> Charge | Refusal:
    if not isinstance(result, dict):
        return Refusal("data.results", QuarantineReason.SCHEMA)
    start = epoch_time(bucket.get("start_time")) or iso_time(bucket.get("starting_at"))
    end = epoch_time(bucket.get("end_time")) or iso_time(bucket.get("ending_at"))
    if start is None or end is None or end <= start:
        return refusal("period_start", QuarantineReason.BAD_TIME)
    of_openai = isinstance(result.get("amount"), dict) or result.get("object") == _OPENAI
    return _openai(result, source, start, end, notes) if of_openai else _anthropic(result, source, start, end, notes)


def _openai(
    result: Mapping[str, object], source: Source, start: datetime, end: datetime, notes: tuple[str, ...]
) -> Charge | Refusal:
    told = result.get("amount")
    told = told if isinstance(told, dict) else {}
    paid = amount(told.get("value"))
    if paid.value is None:
        return refusal("amount", paid.reason or QuarantineReason.MISSING_FIELD)
    item = _text(result, "line_item")
    model, _, words = (item or "").rpartition(",")
    quantity = amount(result.get("quantity")).value
    # A line item of a model names it, then a comma and the class; without one it is a tool, or a group of models.
    meant = sku(f"{words} tokens" if model else item or "", None, ChargeCategory.USAGE)
    return Charge(
        provider=source.provider or "openai",
        start=start,
        end=end,
        amount=paid.value,
        about=_about(result),
        currency=_text(told, "currency"),
        kind=meant.kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or (model.strip() or None if meant.kind is LineKind.TOKENS else None),
        service_tier=meant.service_tier,
        sku=item,
        project=_text(result, "project_id"),
        api_key=_text(result, "api_key_id"),
        quantity=quantity,
        unit="tokens" if quantity is not None and meant.kind is LineKind.TOKENS else None,
        notes=(*notes, *([paid.note] if paid.note else [])),
    )


def _anthropic(
    result: Mapping[str, object], source: Source, start: datetime, end: datetime, notes: tuple[str, ...]
) -> Charge | Refusal:
    paid = amount(result.get("amount"))
    if paid.value is None:
        return refusal("amount", paid.reason or QuarantineReason.MISSING_FIELD)
    meant = _meant(result)
    tier = _text(result, "service_tier") or meant.service_tier
    return Charge(
        provider=source.provider or "anthropic",
        start=start,
        end=end,
        amount=amount(paid.value / _CENTS).value or Decimal(0),
        about=_about(result),
        currency=_text(result, "currency"),
        kind=meant.kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or _text(result, "model"),
        service_tier=tier,
        region=_text(result, "inference_geo"),
        sku=_text(result, "token_type") or _text(result, "cost_type"),
        project=_text(result, "workspace_id"),
        notes=(*notes, *([paid.note] if paid.note else [])),
    )


def _meant(result: Mapping[str, object]) -> Sku:
    """What a result charges: its own words, else those of its description."""
    token_class = _TOKEN_TYPES.get(_text(result, "token_type") or "")
    if token_class is not None:
        return Sku(LineKind.TOKENS, token_class, Modality.TEXT)
    kind = _COST_TYPES.get(_text(result, "cost_type") or "")
    return Sku(kind) if kind else sku(_text(result, "description") or "", None, ChargeCategory.USAGE)


def _about(result: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"{name}={result[name]}" for name in _ABOUT if result.get(name) is not None)


def _text(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and value else None


IMPORTER = Importer(
    name="cost_pages",
    doc="OpenAI's organization costs and Anthropic's cost report: lines of what was charged, by day.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
