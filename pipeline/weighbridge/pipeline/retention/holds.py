"""Legal holds: what may not be deleted although it is due, or although somebody asked for it.

A hold is about a tenant, one bucket of its data subjects, a range of days, some tables, or any of these together. It
stops deletion by rule and by request, and the destruction of keys; the plan shows what it stops. When it is released,
who did it and why is written down, and the next `apply` takes what was due meanwhile.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from weighbridge.pipeline.retention.facts import FACTS
from weighbridge.pipeline.retention.ledger import HOLDS, Ledger
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import erased, framed

# What else can be held, beside tables: pages and packs of closes, segments of the spool.
FOLDERS = ("reports", "closes", "spool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold.

    Attributes:
        hold_id: hash of what it is about and when it was placed.
        tenant, bucket: whom it is about; null: everybody. Of a tenant that was erased since, only its hash.
        first, last: UTC days, both inclusive; null is open.
        tables: only these tables and folders; empty: all.
        why: in words of whoever placed it.
        by: who placed it.
        since: when.
        released: when it ended, null while it stands; by whom and why.
    """

    hold_id: str
    tenant: str | None
    bucket: int | None
    first: date | None
    last: date | None
    tables: tuple[str, ...]
    why: str
    by: str
    since: datetime
    released: datetime | None = None
    released_by: str | None = None
    released_why: str | None = None

    @property
    def subject(self) -> Subject:
        """Whose rows it holds."""
        return Subject(tenant=self.tenant, bucket=self.bucket, first=self.first, last=self.last)

    def covers(self, name: str) -> bool:
        """Whether it is about this table or folder."""
        return not self.tables or name in self.tables

    def overlaps(self, first: date | None, last: date | None) -> bool:
        """Whether its days touch a range of days; an unknown end touches everything."""
        return (self.first is None or last is None or self.first <= last) and (
            self.last is None or first is None or first <= self.last
        )


def place(
    ledger: Ledger,
    *,
    why: str,
    by: str,
    now: datetime,
    tenant: str | None = None,
    bucket: int | None = None,
    first: date | None = None,
    last: date | None = None,
    tables: tuple[str, ...] = (),
) -> Hold:
    """Place a hold; the very same one that stands already is returned as it is.

    Raises:
        ConfigError: it has no reason, names an unknown table, a bucket without a tenant, or days in the wrong order.
    """
    if not why.strip():
        raise ConfigError("a hold needs a reason (--why): who may ask for it, and under what file number")
    if bucket is not None and tenant is None:
        raise ConfigError("a bucket of data subjects belongs to a tenant; name the tenant too")
    if first and last and first > last:
        raise ConfigError(f"the hold would end on {last}, before it begins on {first}; change the days over")
    if unknown := [name for name in tables if name not in {*FACTS, *FOLDERS}]:
        raise ConfigError(f"there is no table {unknown[0]!r}; a hold may name {', '.join((*FACTS, *FOLDERS))}")
    about = (tenant, bucket, first, last, tuple(sorted(tables)))
    for hold in standing(ledger):
        if (hold.tenant, hold.bucket, hold.first, hold.last, hold.tables) == about and hold.why == why:
            return hold
    name = hashlib.sha256(framed(*(str(part) for part in (*about, why, by, now.isoformat())))).hexdigest()[:32]
    hold = Hold(
        hold_id=name, tenant=tenant, bucket=bucket, first=first, last=last, tables=tuple(sorted(tables)), why=why,
        by=by, since=now.astimezone(UTC),
    )  # fmt: skip
    ledger.write(HOLDS, name, _content(hold))
    return hold


def release(ledger: Ledger, hold: Hold, *, why: str, by: str, now: datetime) -> Hold:
    """End a hold; one that has ended stays as it was.

    Raises:
        ConfigError: there is no reason.
    """
    if not why.strip():
        raise ConfigError("releasing a hold needs a reason (--why); it is kept with the hold")
    if hold.released is not None:
        return hold
    content = _content(hold) | {"released": now.astimezone(UTC).isoformat(), "released_by": by, "released_why": why}
    ledger.write(HOLDS, hold.hold_id, content)
    return _hold(hold.hold_id, content)


def holds(ledger: Ledger) -> list[Hold]:
    """Every hold there ever was, oldest first."""
    return sorted(
        (_hold(name, content) for name, content in ledger.entries(HOLDS).items()),
        key=lambda hold: (hold.since, hold.hold_id),
    )


def standing(ledger: Ledger) -> list[Hold]:
    """The holds that stand."""
    return [hold for hold in holds(ledger) if hold.released is None]


def mask(ledger: Ledger, tenant: str) -> None:
    """Let holds that ended name a tenant that was erased by its hash only."""
    for hold in holds(ledger):
        if hold.tenant == tenant and hold.released is not None:
            ledger.write(HOLDS, hold.hold_id, _content(hold) | {"tenant": erased(tenant)})


def _content(hold: Hold) -> dict[str, Any]:
    return {
        "tenant": hold.tenant,
        "bucket": hold.bucket,
        "first": _text(hold.first),
        "last": _text(hold.last),
        "tables": list(hold.tables),
        "why": hold.why,
        "by": hold.by,
        "since": hold.since.isoformat(),
        "released": _text(hold.released),
        "released_by": hold.released_by,
        "released_why": hold.released_why,
    }


def _hold(name: str, content: dict[str, Any]) -> Hold:
    return Hold(
        hold_id=name,
        tenant=content["tenant"],
        bucket=content["bucket"],
        first=_day(content["first"]),
        last=_day(content["last"]),
        tables=tuple(content["tables"]),
        why=content["why"],
        by=content["by"],
        since=datetime.fromisoformat(content["since"]),
        released=datetime.fromisoformat(content["released"]) if content["released"] else None,
        released_by=content["released_by"],
        released_why=content["released_why"],
    )


def _text(moment: date | datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
