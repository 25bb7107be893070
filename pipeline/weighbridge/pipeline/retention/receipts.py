"""Receipts: in the table `receipt`, and one file each that a regulator can read without us.

A receipt says what was in scope, how much of it there was, its digest, how and when it went and who asked. It holds
nothing of what was erased: tenants are hashes, attempts are not named. Its id is the hash of its content, so a changed
one shows. Where the lake or the folder lost some, each is completed from the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.retention.deletion import day_of
from weighbridge.pipeline.retention.ledger import RECEIPTS, Ledger
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.receipt import receipt_id, receipt_text, scope_of

TABLE = "receipt"
_HOW = {
    ReceiptMethod.DELETED: "were deleted",
    ReceiptMethod.BOTH: "were deleted after their keys were destroyed",
    ReceiptMethod.KEY_DESTROYED: "became unreadable for good, as their keys were destroyed",
    ReceiptMethod.CLEARED: "were cleared of what they said of somebody, and stay without it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One proof of a deletion; see the table `receipt`. `sound`: its id is the hash of its content."""

    receipt_id: str
    rule: str
    scope: Mapping[str, str]
    table_name: str
    first_day: date | None
    last_day: date | None
    rows: int
    digest_before: str | None
    method: ReceiptMethod
    key_ids: tuple[str, ...]
    table_version: int | None
    erased_at: datetime
    erased_by: str
    sound: bool


def receipts(lake: Lake) -> list[Receipt]:
    """Every receipt of a lake, oldest first."""
    rows = lake.scan(TABLE).collect().to_dicts()
    return sorted((_receipt(receipt_text(row)) for row in rows), key=lambda found: (found.erased_at, found.receipt_id))


def write(lake: Lake, ledger: Ledger, decided: Iterable[Mapping[str, Any]]) -> list[Receipt]:
    """Put receipts into the lake, in one commit, and into files; those that are there already stay as they are."""
    rows = {str(row["receipt_id"]): dict(row) for row in decided}
    _append(lake, rows)
    for name, row in rows.items():
        ledger.write(RECEIPTS, name, {**row, "statement": statement(_receipt(row))})
    return sorted(map(_receipt, rows.values()), key=lambda found: found.receipt_id)


def complete(lake: Lake, ledger: Ledger) -> int:
    """Bring the receipts of the lake and of the folder together, whichever lost some; how many were lost.

    A file that was changed is left as it is and not taken into the lake.
    """
    filed = ledger.entries(RECEIPTS)
    held = {str(row["receipt_id"]): receipt_text(row) for row in lake.scan(TABLE).collect().to_dicts()}
    lost = {
        name: {key: value for key, value in row.items() if key != "statement"}
        for name, row in filed.items()
        if name not in held and receipt_id(row) == name
    }
    _append(lake, lost)
    unfiled = [row for name, row in held.items() if name not in filed]
    for row in unfiled:
        ledger.write(RECEIPTS, row["receipt_id"], {**row, "statement": statement(_receipt(row))})
    return len(lost) + len(unfiled)


def statement(receipt: Receipt) -> str:
    """A receipt in a sentence or two."""
    days = {receipt.first_day, receipt.last_day} - {None}
    when = "" if not days else f" of {' to '.join(str(day) for day in sorted(filter(None, days)))}"
    noun = "files" if receipt.table_name in {"reports", "closes", "acks"} else "rows"
    said = f"{receipt.rows:,} {noun} of {receipt.table_name}{when} {_HOW[receipt.method]}"
    if receipt.key_ids:
        said += f"; keys destroyed: {len(receipt.key_ids)}"
    asked = f"by rule {receipt.rule}" if receipt.rule.startswith("retention.") else "on request"
    return f"{receipt.erased_at:%Y-%m-%d %H:%M} UTC: {said}; {asked}, carried out by {receipt.erased_by}."


def _append(lake: Lake, rows: Mapping[str, Mapping[str, Any]]) -> None:
    known = set(lake.scan(TABLE, columns=["receipt_id"]).collect()["receipt_id"])
    fresh = [_typed(row) for name, row in rows.items() if name not in known]
    if fresh:
        lake.append(TABLE, pl.DataFrame(fresh, schema=polars_schema(TABLE)), note={"receipts": str(len(fresh))})


def _typed(row: Mapping[str, Any]) -> dict[str, Any]:
    days = {name: day_of(row[name]) for name in ("first_day", "last_day")}
    return {**row, **days, "erased_at": datetime.fromisoformat(row["erased_at"])}


def _receipt(row: Mapping[str, Any]) -> Receipt:
    return Receipt(
        receipt_id=row["receipt_id"],
        rule=row["rule"],
        scope=scope_of(row["scope"]),
        table_name=row["table_name"],
        first_day=day_of(row["first_day"]),
        last_day=day_of(row["last_day"]),
        rows=row["rows"],
        digest_before=row["digest_before"],
        method=ReceiptMethod(row["method"]),
        key_ids=tuple(row["key_ids"] or ()),
        table_version=row["table_version"],
        erased_at=datetime.fromisoformat(row["erased_at"]),
        erased_by=row["erased_by"],
        sound=receipt_id(row) == row["receipt_id"],
    )
