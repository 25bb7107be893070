"""What a row is called in messages: its key, without values that say anything about anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.table import Table

_HALVES = {"attempt_hi", "attempt_lo", "alias_hi", "alias_lo"}


def row_name(table: Table, row: Mapping[str, Any]) -> str:
    """`attempt 0195...; source=agent; child=0`; values of restricted columns are left out."""
    parts = []
    halves = (row.get("attempt_hi"), row.get("attempt_lo"))
    if "attempt_hi" in table.key and None not in halves:
        parts.append(f"attempt {AttemptKey(row['attempt_hi'], row['attempt_lo']).to_hex()}")
    others = (name for name in table.key if name not in _HALVES and not table.column(name).personal)
    parts += [f"{name}={row[name]}" for name in others if row.get(name) is not None]
    return "; ".join(parts) or table.name
