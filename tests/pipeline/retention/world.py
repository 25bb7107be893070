"""An installation in which every table, the spool, the keys and the pages hold something of everybody."""

from __future__ import annotations

import array
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.retention.ledger import Ledger
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.policy import RetentionPolicy
from weighbridge.pipeline.settings import RETENTION
from weighbridge.schemas.block import BlockName, seal_block
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.identity import AttemptKey, keyed_key, new_attempt_id, pseudonym
from weighbridge.schemas.keys import KeyFolder, KeyScope
from weighbridge.schemas.packing import pack_planes
from weighbridge.schemas.segment import write_segment
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import TABLES

KEY = bytes(range(32))
ACME, BETA = (pseudonym(KEY, "tenant", name) for name in ("Acme Ltd", "Beta GmbH"))
NOON = timedelta(hours=12)
_CANDIDATES = ("x", "0" * 32, "0" * 64, "USD", "unassigned", "/x", "t_0123456789abcdef", "2026-01", "0" * 12)


def filled(column: Column, day: date) -> Any:
    """Some value a column allows."""
    if column.values is not None:
        return str(next(iter(column.values)))
    if pa.types.is_string(column.type):
        return next(text for text in _CANDIDATES if re.fullmatch(column.pattern or ".+", text))
    if pa.types.is_boolean(column.type):
        return False
    if pa.types.is_timestamp(column.type):
        return datetime.combine(day, datetime.min.time(), UTC) + NOON
    if pa.types.is_date32(column.type):
        return day
    return max(1, column.minimum or 1)


def row(table: str, day: date, **given: Any) -> dict[str, Any]:
    """One row of a table with what is given, and something in every other column that must not be null."""
    about = TABLES[table]
    needed = {column.name: filled(column, day) for column in about.columns if not column.nullable}
    dated = {"day": day} if about.daily else {}
    return needed | dated | {name: value for name, value in given.items() if name in about.names}


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    schema = polars_schema(table)
    held = [dict(each) for each in rows]
    return pl.DataFrame([{name: each.get(name) for name in schema} for each in held], schema=schema)


@dataclass
class Attempt:
    """One attempt, with everything that is of it alone."""

    key: AttemptKey
    request: AttemptKey
    alias: AttemptKey
    foreign: str
    tenant: str
    bucket: int | None
    task: str
    day: date
    ids: list[int] = field(default_factory=list)


class World:
    """An installation; `add` puts attempts into it."""

    def __init__(self, root: Path, lake: str | None = None) -> None:
        self.root = root
        self.lake = Lake.create(lake or root / "lake")
        self.keys = KeyFolder(root / "content-keys")
        self.spool, self.reports, self.closes = root / "spool", root / "reports", root / "closes"
        self.scheduler = root / "scheduler"
        for folder in (self.spool, self.reports, self.closes, self.scheduler):
            folder.mkdir(exist_ok=True)
        self.ledger = Ledger(root / "retention")

    @property
    def places(self) -> Places:
        return Places(
            lake=self.lake, ledger=self.ledger, spools=(self.spool,), reports=(self.reports,), closes=self.closes,
            keys=self.keys, searched=(self.scheduler,),
        )  # fmt: skip

    def add(
        self, tenant: str, days: Iterable[date], *, bucket: int | None = 3, task: str = "chat", count: int = 2
    ) -> list[Attempt]:
        """Attempts of a tenant on some days, with rows in every table that can hold any."""
        made = [
            Attempt(
                key=new_attempt_id(_ms(day)),
                request=new_attempt_id(_ms(day)),
                alias=keyed_key(KEY, os.urandom(8)),
                foreign=f"resp-{os.urandom(9).hex()}",
                tenant=tenant,
                bucket=bucket,
                task=task,
                day=day,
                ids=[int(number) for number in os.urandom(20)],
            )
            for day in days
            for _ in range(count)
        ]
        rows = rows_of(made)
        rows["token_run"] = self.runs(made)
        rows["state_event"] = self.events(made)
        for table, told in rows.items():
            self.lake.append(table, frame(table, told))
        return made

    def runs(self, made: Iterable[Attempt]) -> list[dict[str, Any]]:
        """Token ids of attempts, encrypted: one block per tenant, bucket and day."""
        places: dict[tuple[str, int, date], list[Attempt]] = {}
        for attempt in made:
            places.setdefault((attempt.tenant, attempt.bucket or 0, attempt.day), []).append(attempt)
        rows = []
        for (tenant, bucket, day), held in places.items():
            month, block = f"{day:%Y-%m}", os.urandom(16).hex()
            name, key = self.keys.current(KeyScope(tenant, bucket, month))
            ids = array.array("I", [number for attempt in held for number in attempt.ids]).tobytes()
            sealed = seal_block(key, BlockName("token_run", tenant, bucket, month, "ids", block), pack_planes(ids))
            offset = 0
            for attempt in held:
                rows.append(row(
                    "token_run", day, attempt_hi=attempt.key.hi, attempt_lo=attempt.key.lo, child=0, run=0, start=0,
                    length=len(attempt.ids), ciphertext=None if offset else sealed, key_id=name, block=block,
                    block_offset=offset, tenant=tenant, subject_bucket=bucket, month=month, segment=segment_of(day),
                ))  # fmt: skip
                offset += len(attempt.ids)
        return rows

    def events(self, made: Iterable[Attempt]) -> list[dict[str, Any]]:
        """A trace per attempt, under a key of traces."""
        rows = []
        for attempt in made:
            scope = KeyScope(attempt.tenant, attempt.bucket or 0, f"{attempt.day:%Y-%m}", "traces")
            name, _ = self.keys.current(scope)
            rows.append(row(
                "state_event", attempt.day, attempt_hi=attempt.key.hi, attempt_lo=attempt.key.lo, child=0, seq=0,
                key_id=name, payload=os.urandom(64), segment=segment_of(attempt.day),
            ))  # fmt: skip
        return rows

    def seal(self, name: str, made: list[Attempt], *, taken_in: bool = False) -> Path:
        """A segment in the spool with attempts, their reports and their ids."""
        rows = rows_of(made)
        told = {table: rows[table] for table in ("attempt", "usage_report", "foreign_id", "request_scope")}
        tables = {
            table: frame(table, each).drop("segment", "segment_row", strict=False).to_arrow()
            for table, each in (told | {"token_run": self.runs(made)}).items()
        }
        path = write_segment(self.spool, name, tables, writer="agent-1", sequence=(0, len(made) - 1))
        if taken_in:
            digest = hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest()
            day = made[0].day
            self.lake.append("segment", frame("segment", [row("segment", day, segment=digest, rows_quarantined=0)]))
            (self.spool / f"{digest}.ack").touch()
        return path

    def counts(self) -> dict[str, int]:
        """Table -> rows, of tables that have any."""
        return {table: rows for table in TABLES if (rows := self.lake.rows(table))}


def rows_of(made: Iterable[Attempt]) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table but content, for some attempts."""
    out: dict[str, list[dict[str, Any]]] = {}
    for each in made:
        given = {
            "attempt_hi": each.key.hi, "attempt_lo": each.key.lo, "request_hi": each.request.hi,
            "request_lo": each.request.lo, "alias_hi": each.alias.hi, "alias_lo": each.alias.lo, "value": each.foreign,
            "tenant": each.tenant, "subject_bucket": each.bucket, "task": each.task, "source": "agent-1",
            "segment": segment_of(each.day), "revision": 0,
        }  # fmt: skip
        for table in ("attempt", "child", "usage_report", "reading", "alias", "foreign_id", "priced_amount",
                      "reconciled", "gap_cause", "gap", "request_scope", "engine_share"):  # fmt: skip
            out.setdefault(table, []).append(row(table, each.day, **given))
        name = {"tenant": each.tenant, "day": each.day.isoformat()}
        found = Finding(
            code="token_gap", severity=Severity.WARNING, period=f"{each.day:%Y-%m}", subject=name, rows=1, cure="ask",
            evidence=(each.key.to_hex(),), first_day=each.day, last_day=each.day,
        )  # fmt: skip
        if all(told["finding_id"] != found.finding_id for told in out.get("finding", [])):
            out.setdefault("finding", []).append(found.row())
            out.setdefault("finding_status", []).append(
                row("finding_status", each.day, finding_id=found.finding_id, change=0)
            )
            out.setdefault("baseline", []).append(
                row("baseline", each.day, tenant=each.tenant, task=each.task, evidence=[each.key.to_hex()])
            )
            out.setdefault("quarantine", []).append(row(
                "quarantine", each.day, segment=segment_of(each.day), line=0, leaf_shape="usage.total",
                leaf_integers=[4711], path=f"usage.{each.tenant[:6]}",
            ))  # fmt: skip
            out.setdefault("adjustment", []).append(row(
                "adjustment", each.day, adjustment_id=found.finding_id, period=f"{each.day:%Y-%m}",
                tenant=each.tenant,
            ))  # fmt: skip
    return out


def segment_of(day: date) -> str:
    """The file in which the rows of a day came."""
    return hashlib.sha256(day.isoformat().encode()).hexdigest()


def policy(**changed: Any) -> RetentionPolicy:
    """The policy with defaults, and what is changed of it."""
    return RetentionPolicy.of(RETENTION.parse(changed, Path()))


def _ms(day: date) -> int:
    return int(datetime.combine(day, datetime.min.time(), UTC).timestamp() * 1000) + 43_200_000
