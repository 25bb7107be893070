"""The id of a receipt: the hash of all it says, so that a changed one shows wherever it is kept; and its scope."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from weighbridge.schemas.identity import framed

SAID = (
    *("rule", "scope", "table_name", "first_day", "last_day", "rows", "digest_before", "method", "table_version"),
    *("erased_at", "erased_by"),
)


def receipt_id(row: Mapping[str, Any]) -> str:
    """The id of the receipt with these columns of the table `receipt`; days and times may be ISO 8601 text as well."""
    told = [_text(row[name]) for name in SAID]
    return hashlib.sha256(framed("weighbridge receipt", *told, *(row["key_ids"] or ()))).hexdigest()[:32]


def scope_text(scope: Mapping[str, str]) -> str:
    """A scope as it stands in a receipt: `name=value; name=value`, in its order."""
    return "; ".join(f"{name}={value}" for name, value in scope.items())


def scope_of(text: str) -> dict[str, str]:
    """The scope of a receipt as name -> value."""
    return {name: value for name, _, value in (pair.partition("=") for pair in text.split("; ") if pair)}


def receipt_text(row: Mapping[str, Any]) -> dict[str, Any]:
    """A receipt as plain values of JSON: days and times as ISO 8601 text."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value.isoformat() if isinstance(value, date) else value


def _text(value: object) -> str:
    return str(_plain(value))
