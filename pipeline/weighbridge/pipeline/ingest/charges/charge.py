"""One line of a bill, taken apart; and the rows of a file while they are gathered.

Accounts, projects and keys of a bill are names of somebody and become pseudonyms; its descriptions are read for the
words of `skus` and dropped. Bills seldom number their lines: a line is known by what it is about (never by what it
costs), so the same line in a later export of the month is a revision, of which the last one counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.charges.skus import tokens_of
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.record_fields import name_of
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import (
    BillingStatus,
    ChargeCategory,
    LineKind,
    Modality,
    QuarantineReason,
    TokenClass,
)
from weighbridge.schemas.identity import NAME, keyed_key, pseudonym
from weighbridge.schemas.leaves import Refusal

LINE, DETAIL, RATE = "invoice_line", "invoice_detail", "currency_rate"
CURRENCY_MISSING, CURRENCY_UNKNOWN = "currency_missing", "currency_unknown"
_CURRENCY_SIGNS = 3
_LONGEST = 96
_NO_NAME = re.compile(r"[^A-Za-z0-9._:/@-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One line. Names are still those of the provider; what it does not say is null."""

    provider: str
    start: datetime
    end: datetime
    amount: Decimal
    about: tuple[str, ...]
    currency: str | None = None
    category: ChargeCategory = ChargeCategory.USAGE
    kind: LineKind | None = None
    token_class: TokenClass | None = None
    modality: Modality | None = None
    model: str | None = None
    service_tier: str | None = None
    region: str | None = None
    sku: str | None = None
    service: str | None = None
    account: str | None = None
    project: str | None = None
    api_key: str | None = None
    quantity: Decimal | None = None
    unit: str | None = None
    money: Mapping[str, Decimal | None] = field(default_factory=dict)
    pricing_currency: str | None = None
    payment_currency: str | None = None
    billing_start: datetime | None = None
    billing_end: datetime | None = None
    billing_status: BillingStatus | None = None
    issued_at: datetime | None = None
    invoice_id: str | None = None
    line_id: str | None = None
    reference_invoice: str | None = None
    correction: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ChargeRows:
    """The rows of one file."""

    source: Source
    name: str
    records: int = 0
    refused: int = 0
    _rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    _quarantine: list[dict[str, object]] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def add(self, item: Charge | Refusal | list[Refusal], line: int | None = None) -> None:
        """Add a line, or why one cannot be read."""
        number = self.records if line is None else line
        self.records += 1
        if isinstance(item, Charge):
            self._put(LINE, number, self._line(item))
        else:
            self._refuse(number, item if isinstance(item, list) else [item])

    def add_beside(self, charge: Charge, line: int) -> None:
        """Add one more line that a record holds beside its own; the record was counted with that."""
        self._put(LINE, line, self._line(charge))

    def add_rows(self, table: str, rows: Sequence[Mapping[str, object]], line: int) -> None:
        """Add the rows of a record that are no lines: a total of an invoice, or rates of a day."""
        self.records += 1
        for row in rows:
            self._put(table, line, dict(row))

    def hidden(self, kind: str, name: str | None) -> str | None:
        """The pseudonym of an account, project or key; one that is a pseudonym already stays as it is."""
        return None if not name else pseudonym(self.source.key, kind, name)

    def staged(self) -> Staged:
        """Everything that was added."""
        tables = {table: _frame(table, rows) for table, rows in self._rows.items()}
        refused = _frame("quarantine", self._quarantine) if self._quarantine else None
        return Staged(self.records, tables, by_line=True, refused=refused, refused_records=self.refused)

    def _put(self, table: str, number: int, row: dict[str, object]) -> None:
        self._rows.setdefault(table, []).append({"segment_row": number, **row})

    def _refuse(self, number: int, refusals: list[Refusal]) -> None:
        self.refused += 1
        for path, reason in dict.fromkeys(refusals):
            about = {"line": number, "day": self.source.day, "source": self.name, "provider": self.source.provider}
            self._quarantine.append({**about, "reason": str(reason), "path": path, "leaf_shape": ""})

    def _line(self, charge: Charge) -> dict[str, object]:
        notes = list(charge.notes)
        account = self.hidden("account", charge.account or self.source.account)
        month = charge.billing_start or charge.start
        names = {
            name: name_of(getattr(charge, name), notes)
            for name in ("model", "service_tier", "region", "pricing_currency", "reference_invoice")
        }
        names |= {name: catalogued(getattr(charge, name)) for name in ("sku", "unit", "service")}
        number = name_of(charge.invoice_id, notes)
        return {
            "invoice_id": f"{account or charge.provider}:{month:%Y-%m}",
            "line_id": self._id(charge, account),
            "provider": charge.provider,
            "account": account,
            "category": str(charge.category),
            "kind": charge.kind and str(charge.kind),
            **names,
            "invoice_number": number,
            "token_class": charge.token_class and str(charge.token_class),
            "modality": charge.modality and str(charge.modality),
            "period_start": charge.start,
            "period_end": charge.end,
            "quantity": charge.quantity,
            "tokens": tokens_of(charge.quantity, charge.unit, charge.kind),
            "amount": charge.amount,
            "currency": currency(charge.currency, notes),
            "payment_currency": currency(charge.payment_currency, []) if charge.payment_currency else None,
            **charge.money,
            "project": self.hidden("project", charge.project),
            "api_key": self.hidden("key", charge.api_key),
            "billing_start": charge.billing_start,
            "billing_end": charge.billing_end,
            "billing_status": charge.billing_status and str(charge.billing_status),
            "issued_at": charge.issued_at,
            "correction": charge.correction,
            "notes": list(dict.fromkeys(notes)) or None,
        }

    def _id(self, charge: Charge, account: str | None) -> str:
        """What a line is about as a keyed hash, and of lines about the same its place among them."""
        if charge.line_id is not None and NAME.fullmatch(charge.line_id):
            return charge.line_id
        times = (charge.start.isoformat(), charge.end.isoformat())
        parts = (self.name, charge.provider, account or "", str(charge.category), *times, *charge.about)
        about = keyed_key(self.source.key, *parts).to_hex()
        nth = self._seen[about]
        self._seen[about] += 1
        return about if not nth else f"{about}-{nth}"


def currency(text: str | None, notes: list[str]) -> str | None:
    """The ISO code of a currency; that there is none, or one that is no code, is noted."""
    shown = (text or "").strip().upper()
    if len(shown) == _CURRENCY_SIGNS and shown.isascii() and shown.isalpha():
        return shown
    notes.append(CURRENCY_UNKNOWN if shown else CURRENCY_MISSING)
    return None


def catalogued(text: str | None) -> str | None:
    """A word of the provider's own catalogue (a SKU, a unit) as a name: what no name may hold becomes a hyphen."""
    shown = _NO_NAME.sub("-", text or "").strip("-._:/@")[:_LONGEST].rstrip("-")
    return shown or None


def refusal(column: str, reason: QuarantineReason) -> Refusal:
    """Why a line cannot be read, by our name of the value."""
    return Refusal(f"{LINE}.{column}", reason)


def _frame(table: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    types = {**polars_schema(table), "segment_row": pl.Int64()}
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame(rows, schema={name: types[name] for name in names}, infer_schema_length=None)
