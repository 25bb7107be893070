"""An erasure as it is remembered: whom it is about, up to which day, and what is left of it.

What is remembered names nobody: a tenant and each attempt are hashes, which say of the tenant or attempt at hand
whether it is meant. So a lake that is restored from a backup is emptied again, and the memory itself holds nothing of
what was erased. An erasure is about rows up to and including the UTC day on which it was asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from weighbridge.pipeline.retention.ledger import ERASURES, Ledger
from weighbridge.pipeline.retention.subject import KEY, Subject
from weighbridge.schemas.identity import AttemptKey, erased, framed

RULE = "erasure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An erasure as it is remembered.

    Attributes:
        erasure_id: hash of whom it is about, of its day, and of whether billing goes too.
        tenant: the tenant's hash (`identity.erased`), null where single attempts are meant.
        bucket: of that tenant, one bucket of data subjects.
        attempts: the hashes of single attempts.
        last: the last UTC day it is about.
        billing_too: billing counts go too.
        keys: names of the keys that go, tenants as hashes; null: not decided yet.
        by, at: who asked, and when.
        left: rows, segments, pages and closes of it that a hold keeps, or that could not be reached.
        waits: names of files of the spool that were not sealed when it was asked for, and are not yet.
        traces: how many traces the search found that should be gone.
        pages: names of pages that show it and have to go, or that a hold keeps.
    """

    erasure_id: str
    tenant: str | None
    bucket: int | None
    attempts: frozenset[str]
    last: date
    billing_too: bool
    keys: frozenset[str] | None
    by: str
    at: str
    left: int = 0
    waits: tuple[str, ...] = ()
    traces: int = 0
    pages: tuple[str, ...] = ()

    @property
    def scope(self) -> dict[str, str]:
        """What it is about, for receipts."""
        told = {"erasure": self.erasure_id}
        if self.tenant:
            told["tenant"] = self.tenant
        if self.bucket is not None:
            told["bucket"] = str(self.bucket)
        if self.attempts:
            told["attempts"] = str(len(self.attempts))
        return told | {"to": self.last.isoformat(), "billing": "erased" if self.billing_too else "kept"}

    def content(self) -> dict[str, Any]:
        """As it is written down."""
        return {
            "tenant": self.tenant,
            "bucket": self.bucket,
            "attempts": sorted(self.attempts),
            "last": self.last.isoformat(),
            "billing_too": self.billing_too,
            "keys": None if self.keys is None else sorted(self.keys),
            "by": self.by,
            "at": self.at,
            "left": self.left,
            "waits": list(self.waits),
            "traces": self.traces,
            "pages": list(self.pages),
        }


def request_of(name: str, content: Mapping[str, Any]) -> Request:
    """The erasure that was written down."""
    return Request(
        erasure_id=name,
        tenant=content["tenant"],
        bucket=content["bucket"],
        attempts=frozenset(content["attempts"]),
        last=date.fromisoformat(content["last"]),
        billing_too=content["billing_too"],
        keys=None if content["keys"] is None else frozenset(content["keys"]),
        by=content["by"],
        at=content["at"],
        left=content.get("left", 0),
        waits=tuple(content.get("waits", ())),
        traces=content.get("traces", 0),
        pages=tuple(content.get("pages", ())),
    )


def remember(ledger: Ledger, name: str, **changed: Any) -> None:
    """Write down what is left of an erasure (`left`, `waits`, `traces`, `pages`); of one that is not there, nothing."""
    known = ledger.entry(ERASURES, name)
    if known is not None and known != known | changed:
        ledger.write(ERASURES, name, known | changed)


def remember_traces(ledger: Ledger, request: Request, traces: int) -> None:
    """Write down how many traces were found of somebody; an earlier search for the same is overtaken by this one."""
    whom = (request.tenant, request.bucket, request.attempts)
    for name, content in ledger.entries(ERASURES).items():
        other = request_of(name, content)
        if (other.tenant, other.bucket, other.attempts) == whom and other.billing_too <= request.billing_too:
            remember(ledger, name, traces=traces if name == request.erasure_id else 0)


def new_request(subject: Subject, *, last: date, billing_too: bool, by: str, now: datetime) -> Request:
    """The erasure of a subject that is asked for now."""
    tenant = None if subject.tenant is None else erased(subject.tenant)
    attempts = (
        frozenset() if subject.attempts is None else frozenset(map(hash_of, subject.attempts.select(KEY).iter_rows()))
    )
    parts = (str(tenant), str(subject.bucket), str(last), str(billing_too), *sorted(attempts))
    return Request(
        erasure_id=hashlib.sha256(framed("weighbridge erasure", *parts)).hexdigest()[:32],
        tenant=tenant,
        bucket=subject.bucket,
        attempts=attempts,
        last=last,
        billing_too=billing_too,
        keys=None,
        by=by,
        at=now.astimezone(UTC).isoformat(),
    )


def hash_of(key: tuple[int, int]) -> str:
    """The hash that stands for an attempt."""
    return erased(AttemptKey(*key).to_hex())
