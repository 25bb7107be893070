"""A finding: what it says, what became of it, the cells and attempts behind it, the files it came from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempt_node
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey

_UNREAD = "quarantined_rows"
_FINDING = (
    *("severity", "period", "subject", "rows", "expected", "observed", "difference", "unit", "confidence"),
    *("grade", "amount", "currency", "first_day", "last_day", "cure"),
)
_LIFE = (
    *("state", "changed_at", "changed_by", "expires_on", "reference", "disputed", "credited", "outstanding"),
    "disputed_in",
)
_CELL = (
    *("measure", "token_class", "model_revision", "method", "season", "rows", "days", "lower", "upper", "limit"),
    *("day_rows", "exceeding", "beyond_limit", "median", "expected", "observed", "p_value", "driver", "key"),
    *("amount", "currency"),
)
_NAMES = ("tenant", "task", "model")


def find(asked: Asked) -> Iterator[str]:
    """Findings whose id begins so."""
    if asked.digits:
        ids = asked.lake.scan("finding", columns=["finding_id"])
        yield from ids.filter(pl.col("finding_id").str.starts_with(asked.digits)).collect()["finding_id"]


def node(asked: Asked, finding_id: str) -> Node:
    """The tree behind a finding."""
    lake = asked.lake
    row = lake.scan("finding").filter(pl.col("finding_id") == finding_id).collect().row(0, named=True)
    titles = {cause.code: cause.title for cause in all_causes()}
    cause = (Node("cause", row["cause"], (Node("meaning", titles.get(row["cause"])),)),) if row["cause"] else ()
    keys = [AttemptKey.from_hex(text) for text in row["evidence"] or ()]
    held = Held(lake, keys)
    evidence = tuple(attempt_node(held, key) for key in keys)
    files = tuple(held.file(segment) for segment in row["segments"] or ())
    unread = _unread(held, row) if row["code"] == _UNREAD else ()
    cells = _cells(asked, row)
    groups = tuple(
        Node(label, len(nodes), nodes)
        for label, nodes in (("cells", cells), ("evidence", evidence), ("unreadable values", unread), ("files", files))
        if nodes
    )
    return Node(
        "finding",
        finding_id,
        (Node("code", row["code"]), *leaves(row, _FINDING), *cause, *_life(asked, finding_id), *groups),
    )


def _life(asked: Asked, finding_id: str) -> tuple[Node, ...]:
    """What became of it, where anybody decided; the reason is nobody else's."""
    held = states(asked.lake, datetime.now(UTC).date()).filter(pl.col("finding_id") == finding_id)
    return tuple(Node("life", row["state"], leaves(row, _LIFE[1:])) for row in held.iter_rows(named=True))


def _cells(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The cells of baselines on the day of a finding of theirs: their limits, and how the day stood to them."""
    if finding["origin"] != str(FindingOrigin.BASELINE) or finding["first_day"] is None:
        return ()
    about = dict(pair.split("=", 1) for pair in finding["subject"].split("; ") if "=" in pair)
    wanted = [pl.col(name).cast(pl.String) == about[name] for name in _NAMES if name in about]
    rows = asked.lake.scan("baseline", first=finding["first_day"], last=finding["last_day"]).filter("reported", *wanted)
    first = rows.sort("day", *_NAMES, "measure", "token_class").head(EVIDENCE_ROWS).collect()
    return tuple(Node("cell", row["day"], leaves(row, _CELL)) for row in first.iter_rows(named=True))


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
