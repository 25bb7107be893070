"""Any bill that is a table (CSV, JSON Lines, Parquet), with a mapping file that says what its columns mean.

The mapping file has a section `[charges]` (see `charges.mapping`); one without is a mapping of calls, for `mapped`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from pathlib import Path
from typing import TypeVar

import polars as pl

from weighbridge.pipeline.ingest.charges.charge import Charge, ChargeRows, refusal
from weighbridge.pipeline.ingest.charges.days import ZONE, a_day_after, begin_of
from weighbridge.pipeline.ingest.charges.mapping import ChargeMapping, load_charges
from weighbridge.pipeline.ingest.charges.skus import sku
from weighbridge.pipeline.ingest.charges.tables import Row, Shape, about, category, measured, rows_of, text
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.moments import moments
from weighbridge.pipeline.ingest.tabular import check
from weighbridge.schemas.enumerations import (
    BillingStatus,
    ChargeCategory,
    LineKind,
    Modality,
    QuarantineReason,
    TokenClass,
)
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.segment import sha256_file

M = TypeVar("M", LineKind, TokenClass, Modality, BillingStatus)
UTC = "UTC"
_TIMES = ("start", "end", "billing_start", "billing_end", "issued_at")
_ABOUT = (
    *("sku", "words", "model", "token_class", "modality", "service_tier", "region", "project", "api_key"),
    *("category", "kind", "unit", "line_id"),
)
_NOT_USAGE = {
    LineKind.TAX: ChargeCategory.TAX,
    LineKind.CREDIT: ChargeCategory.CREDIT,
    LineKind.DISCOUNT: ChargeCategory.ADJUSTMENT,
    LineKind.ROUNDING: ChargeCategory.ADJUSTMENT,
    LineKind.COMMITMENT: ChargeCategory.PURCHASE,
    LineKind.MINIMUM: ChargeCategory.PURCHASE,
}


def _mapping(source: Source) -> ChargeMapping:
    if source.mapping is None:
        raise ConfigError(
            f"{source.path} needs a mapping file: name it with --mapping. It says which column is what, as in "
            '[source] name = "acme", [charges] amount = "net", start = "from".'
        )
    return load_charges(source.mapping)


def _shape(mapping: ChargeMapping) -> Shape:
    return Shape({ours: (theirs,) for ours, theirs in mapping.columns.items()}, (), _ABOUT)


def _recognises(path: Path) -> bool:  # noqa: ARG001 - a table says nothing of what its columns mean
    return False


def _check(source: Source) -> Heading:
    mapping = _mapping(source)
    check(source.path, mapping.layout, list(dict.fromkeys(mapping.columns.values())))
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    mapping = _mapping(source)
    shape = _shape(mapping)
    rows = ChargeRows(source, mapping.name)
    read_ = list(rows_of(source, shape, mapping.layout))
    told = [row for _, row in read_ if not isinstance(row, QuarantineReason)]
    times = {name: _times(told, name, mapping) for name in _TIMES if name in mapping.columns}
    place = 0
    for line, row in read_:
        if isinstance(row, QuarantineReason):
            rows.add(Refusal("", row), line)
            continue
        at = {name: found[place] for name, found in times.items()}
        place += 1
        rows.add(_charge({**row, **at}, source, mapping, shape), line)
    return rows.staged()


def _times(rows: list[Row], name: str, mapping: ChargeMapping) -> list[object]:
    """A column of times as ISO text in UTC; one that cannot be read stays as it is, which is no time."""
    column = pl.Series([text(row, name) for row in rows], dtype=pl.String)
    local = moments(column, mapping.time_format, mapping.zone).values
    plain = moments(column, mapping.time_format, UTC).values
    found = [_moment(*each, mapping.zone) for each in zip(local, plain, strict=True)]
    return [told if each is None else each.isoformat() for each, told in zip(found, column, strict=True)]


def _moment(local: object, plain: object, zone: str) -> datetime | None:
    """A time in UTC; a midnight that a zone has twice, or not at all, is the moment its day begins at."""
    if isinstance(local, datetime):
        return local
    return begin_of(plain.date(), zone) if isinstance(plain, datetime) and plain.time() == time() else None


def _charge(row: Row, source: Source, mapping: ChargeMapping, shape: Shape) -> Charge | list[Refusal]:
    found, refused = measured(row, end="end" if "end" in mapping.columns else "start")
    named = _named(row, mapping)
    kind = _member(LineKind, named.get("kind"), "kind", refused)
    token_class = _member(TokenClass, named.get("token_class"), "token_class", refused)
    modality = _member(Modality, named.get("modality"), "modality", refused)
    told = text(row, "category")
    what = category(told) or (_NOT_USAGE.get(kind, ChargeCategory.USAGE) if kind else ChargeCategory.USAGE)
    if told is not None and category(told) is None:
        refused.append(refusal("category", QuarantineReason.SCHEMA))
    status = _member(BillingStatus, (text(row, "billing_status") or "").capitalize() or None, "billing_status", refused)
    provider = source.provider or text(row, "provider") or mapping.standing.get("provider")
    if provider is None:
        refused.append(refusal("provider", QuarantineReason.MISSING_FIELD))
    if refused or provider is None:
        return refused
    meant = sku(f"{text(row, 'sku') or ''} {text(row, 'words') or ''}", text(row, "unit"), what)
    if "end" not in mapping.columns:
        found["end"] = a_day_after(found["start"], mapping.zone)  # type: ignore[arg-type]
    if mapping.zone != UTC:
        found["notes"] = (*found["notes"], f"{ZONE}{mapping.zone}")  # type: ignore[misc]
    return Charge(
        provider=provider,
        **found,  # type: ignore[arg-type]
        about=about(row, shape),
        currency=text(row, "currency") or mapping.standing.get("currency"),
        category=what,
        kind=kind or meant.kind,
        token_class=token_class or meant.token_class,
        modality=modality or meant.modality,
        model=source.model or named.get("model"),
        service_tier=named.get("service_tier") or meant.service_tier,
        region=text(row, "region"),
        sku=text(row, "sku"),
        account=text(row, "account") or mapping.standing.get("account"),
        project=text(row, "project"),
        api_key=text(row, "api_key"),
        unit=text(row, "unit"),
        pricing_currency=text(row, "pricing_currency"),
        payment_currency=text(row, "payment_currency"),
        billing_status=status,
        invoice_id=text(row, "invoice_id"),
        line_id=text(row, "line_id"),
        reference_invoice=text(row, "reference_invoice"),
    )


def _named(row: Row, mapping: ChargeMapping) -> Mapping[str, str]:
    """Kind, class, modality, model and tier: as the columns say, else as the mapping says of the SKU."""
    of_sku = mapping.skus.get(text(row, "sku") or "", {})
    names = ("kind", "token_class", "modality", "model", "service_tier")
    said = {name: told for name in names if (told := text(row, name))}
    return {**{k: v for k, v in mapping.standing.items() if k == "kind"}, **of_sku, **said}


def _member(kind: type[M], told: str | None, name: str, refused: list[Refusal]) -> M | None:
    if told is None:
        return None
    try:
        return kind(told)
    except ValueError:
        refused.append(refusal(name, QuarantineReason.SCHEMA))
        return None


IMPORTER = Importer(
    name="mapped_charges",
    doc="Bills as CSV, JSON Lines or Parquet, with a mapping file whose section [charges] says what each column means.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
