"""Google's billing export to BigQuery, as JSON or JSON Lines of its rows, or as CSV of joined names.

    {"billing_account_id": "01-AB", "service": {"description": "Vertex AI"}, "sku": {"id": "1A", "description":
     "Gemini 2.5 Flash Text Input - Predictions"}, "usage_start_time": "2026-04-01 07:00:00 UTC",
     "usage_end_time": "2026-04-01 08:00:00 UTC", "cost": 0.0123, "currency": "USD",
     "credits": [{"amount": -0.001, "type": "DISCOUNT"}], "invoice": {"month": "202604"},
     "usage": {"amount": 41000, "unit": "count"}, "project": {"id": "p"}}

Credits stand inside the row they are about, so a row is one line with the cost before them, and each kind of credit
is a line of its own. The month of the invoice decides the bill, and usage of its last hours may stand in the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from weighbridge.pipeline.ingest.charges.charge import Charge, ChargeRows, refusal
from weighbridge.pipeline.ingest.charges.figures import amount, moment
from weighbridge.pipeline.ingest.charges.skus import sku
from weighbridge.pipeline.ingest.charges.tables import (
    LAYOUT,
    Shape,
    checked,
    folded,
    measured,
    recognises,
    rows_of,
    text,
)
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import parse_list
from weighbridge.pipeline.ingest.json_records import is_json, read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.record_fields import at
from weighbridge.schemas.enumerations import ChargeCategory, LineKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

NAME = "google-billing"
_PATHS: Mapping[str, tuple[str, ...]] = {
    "amount": ("cost",),
    "currency": ("currency",),
    "account": ("billing_account_id",),
    "service": ("service", "description"),
    "sku": ("sku", "id"),
    "words": ("sku", "description"),
    "start": ("usage_start_time",),
    "end": ("usage_end_time",),
    "project": ("project", "id"),
    "resource": ("resource", "name"),
    "region": ("location", "region"),
    "quantity": ("usage", "amount"),
    "unit": ("usage", "unit"),
    "list_amount": ("cost_at_list",),
    "month": ("invoice", "month"),
    "type": ("cost_type",),
    "adjustment": ("adjustment_info", "type"),
    "credits": ("credits",),
}
SHAPE = Shape(
    columns={ours: ("_".join(path), ".".join(path)) for ours, path in _PATHS.items()},
    needed=("amount", "account", "words", "start", "end"),
)
_TYPES = {
    "regular": ChargeCategory.USAGE,
    "tax": ChargeCategory.TAX,
    "adjustment": ChargeCategory.ADJUSTMENT,
    "rounding_error": ChargeCategory.ADJUSTMENT,
}
_ABOUT = ("service", "sku", "words", "project", "resource", "region", "unit", "type", "adjustment", "month")
_MODEL = re.compile(
    r"(?P<model>[A-Za-z][A-Za-z0-9.]*(?: [A-Za-z0-9.]+)*?) (?:ga |preview )?(?:long |thinking |batch |text |audio |"
    r"image |video |cached |caching |input|output|prompt|response).*",
    re.IGNORECASE,
)


def _recognises(path: Path) -> bool:
    if is_json(path):
        return recognised(path, read_records, _is_row)
    return recognises(path, SHAPE)


def _is_row(record: Mapping[str, object]) -> bool:
    return all(at(record, *_PATHS[name]) is not None for name in SHAPE.needed)


def _check(source: Source) -> Heading:
    if is_json(source.path):
        return heading(source.path, read_records, "row of Google's billing export", "Export it again")
    return checked(source, SHAPE, LAYOUT)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    rows = ChargeRows(source, NAME)
    for line, row in _rows(source):
        if isinstance(row, QuarantineReason):
            rows.add(Refusal("", row), line)
            continue
        charge = _charge(row, source)
        beside = _credits(charge, row.get("credits")) if isinstance(charge, Charge) else []
        if isinstance(beside, Refusal):
            rows.add(beside, line)
            continue
        rows.add(charge, line)
        for credit in beside:
            rows.add_beside(credit, line)
    return rows.staged()


def _rows(source: Source) -> Iterator[tuple[int, Mapping[str, object] | QuarantineReason]]:
    if not is_json(source.path):
        yield from rows_of(source, SHAPE)
        return
    for record in read_records(source.path):
        if record.value is None:
            yield record.number, record.reason or QuarantineReason.NOT_JSON
        else:
            yield record.number, {ours: at(record.value, *path) for ours, path in _PATHS.items()}


def _charge(row: Mapping[str, object], source: Source) -> Charge | list[Refusal]:
    found, refused = measured(row)
    if refused:
        return refused
    told = (text(row, "type") or "regular").lower()
    category = _TYPES.get(told, ChargeCategory.ADJUSTMENT)
    words, unit = text(row, "words") or "", text(row, "unit")
    of_models = any(name in words.lower() for name in ("gemini", "claude", "llama", "mistral", "gemma", "deepseek"))
    meant = sku(f"{words} tokens" if of_models else words, unit, category)
    kind = LineKind.ROUNDING if told == "rounding_error" else meant.kind
    named = _MODEL.fullmatch(words) if kind is LineKind.TOKENS else None
    found["billing_start"], found["billing_end"] = _month(text(row, "month"))
    # Its unit for tokens is `count`.
    counted = kind is LineKind.TOKENS and folded(unit or "") in {"count", "token", "tokens"}
    return Charge(
        provider=source.provider or "google",
        **found,  # type: ignore[arg-type]
        about=tuple(f"{name}={text(row, name) or ''}" for name in _ABOUT),
        currency=text(row, "currency"),
        category=category,
        kind=kind,
        token_class=meant.token_class,
        modality=meant.modality,
        model=source.model or (named["model"].strip().lower().replace(" ", "-") if named else None),
        service_tier=meant.service_tier,
        region=text(row, "region"),
        sku=text(row, "sku"),
        service=text(row, "service"),
        account=text(row, "account"),
        project=text(row, "project"),
        unit="tokens" if counted else unit,
    )


def _credits(charge: Charge, told: object) -> list[Charge] | Refusal:
    """The credits of a row as lines; one of which the amount cannot be read refuses the row as a whole."""
    found = []
    for credit in parse_list(told.encode()) or [] if isinstance(told, str) else told if isinstance(told, list) else []:
        paid = amount(at(credit, "amount"))
        if paid.value is None:
            return refusal("amount", paid.reason or QuarantineReason.MISSING_FIELD)
        kind = LineKind.DISCOUNT if "DISCOUNT" in str(at(credit, "type") or "").upper() else LineKind.CREDIT
        about = (*charge.about, f"credit={at(credit, 'type')}", f"id={at(credit, 'id')}", f"of={at(credit, 'name')}")
        line = replace(charge, amount=paid.value, category=ChargeCategory.CREDIT, kind=kind, about=about)
        found.append(replace(line, quantity=None, token_class=None, modality=None, money={}))
    return found


def _month(text_: str | None) -> tuple[datetime | None, datetime | None]:
    """Begin and end of the month of an invoice, `202604`."""
    digits = (text_ or "").strip()
    start = moment(f"{digits}01") if len(digits) == len("202604") else None
    if start is None:
        return None, None
    following = start + timedelta(days=32)
    return start, following.replace(day=1)


IMPORTER = Importer(
    name="google_billing",
    doc="Google's billing export to BigQuery, as JSON, JSON Lines, CSV or Parquet of its rows.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
