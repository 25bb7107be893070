"""A finding: what it says, what became of it, the cells and attempts behind it, the files it came from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempt_node
from weighbridge.pipeline.explain.sources import behind_findings
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey

_UNREAD = "quarantined_rows"
_FINDING = (
    *("severity", "period", "subject", "rows", "expected", "observed", "difference", "unit", "confidence"),
    *("grade", "amount", "amount_low", "amount_high", "currency", "first_day", "last_day", "cure"),
)
_LIFE = (
    *("state", "changed_at", "changed_by", "expires_on", "reference", "disputed", "credited", "outstanding"),
    "disputed_in",
)


def find(asked: Asked) -> Iterator[str]:
    """Findings whose id begins so."""
    if asked.digits:
        ids = asked.lake.scan("finding", columns=["finding_id"])
        yield from ids.filter(pl.col("finding_id").str.starts_with(asked.digits)).collect()["finding_id"]


def node(asked: Asked, finding_id: str) -> Node:
    """The tree behind a finding."""
    lake = asked.lake
    row = lake.scan("finding").filter(pl.col("finding_id") == finding_id).collect().row(0, named=True)
    room = behind_findings().get(row["origin"])
    meaning = room.titles().get(row["cause"]) if room else None
    told = (Node("meaning", meaning),) if meaning else ()
    cause = (Node("cause", row["cause"], told),) if row["cause"] else ()
    keys = [AttemptKey.from_hex(text) for text in row["evidence"] or ()]
    held = Held(lake, keys)
    evidence = tuple(attempt_node(held, key) for key in keys)
    files = tuple(held.file(segment) for segment in row["segments"] or ())
    unread = _unread(held, row) if row["code"] == _UNREAD else ()
    groups = tuple(
        Node(label, len(nodes), nodes)
        for label, nodes in (("evidence", evidence), ("unreadable values", unread), ("files", files))
        if nodes
    )
    return Node(
        "finding",
        finding_id,
        (
            Node("code", row["code"]),
            *leaves(row, _FINDING),
            *cause,
            *_life(asked, finding_id),
            *(room.of_finding(asked, row) if room else ()),
            *groups,
        ),
    )


def _life(asked: Asked, finding_id: str) -> tuple[Node, ...]:
    """What became of it, where anybody decided; the reason is nobody else's."""
    held = states(asked.lake, datetime.now(UTC).date()).filter(pl.col("finding_id") == finding_id)
    return tuple(Node("life", row["state"], leaves(row, _LIFE[1:])) for row in held.iter_rows(named=True))


def _unread(held: Held, finding: Row) -> tuple[Node, ...]:
    """The first values behind a finding about quarantine: why, which, and where they stand; never what they say."""
    about = dict(pair.split("=", 1) for pair in finding["subject"].split("; "))
    wanted = [pl.col(name) == value for name, value in about.items()]
    rows = held.lake.scan("quarantine", first=finding["first_day"], last=finding["last_day"]).filter(
        pl.col("segment").is_in(finding["segments"]), *wanted
    )
    first = rows.sort("segment", "line", "path").head(EVIDENCE_ROWS).collect()
    return tuple(
        Node("value", row["reason"], (*leaves(row, ("path",)), held.file(row["segment"], row["line"])))
        for row in first.iter_rows(named=True)
    )


KIND = Kind("finding", "the first digits of its id", find, node)
