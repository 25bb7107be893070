"""Why a figure is what it is: from a finding, an attempt or a file down to raw leaves and their place in a file.

An attempt may also be named by what another system calls it, such as the response id of its provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match.foreign import attempts_named
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.pipeline.reconcile.tree.prefix import LEAST, SHOWN, digits_if_any, the_one
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.tables import ATTEMPT, READING

Row = dict[str, Any]
Place = tuple[str, int, int]
UNKNOWN = "unknown"
_ID_DIGITS = 32
_UNREAD = "quarantined_rows"
_WANTED = "finding, attempt or segment"
_FINDING = (
    *("severity", "period", "subject", "rows", "expected", "observed", "difference", "unit", "confidence"),
    *("grade", "amount", "currency", "first_day", "last_day", "cure"),
)
_RECONCILED = (
    *("day", "provider", "api", "model", "tenant", "task", "route", "observer", "reporter", "reports", "grade"),
    *("observed", "reported", "gap", "explained", "residual", "status", "confidence"),
)
_PLACE = frozenset({"child", "report", "segment_row", "revision"})
_READING = (
    *("provider", "api", "model", "dialect", "verdict", "reason", "rule", "ended", "revision"),
    *(column.name for column in READING.columns if column.minimum == 0 and column.name not in _PLACE),
    "reported_total",
)
_SEGMENT = (
    *("segment", "importer", "writer", "end", "bytes", "schema_version"),
    *("rows_in", "rows_out", "rows_quarantined", "rows_duplicate"),
)
_ORIGIN = frozenset({"source", "segment", "segment_row", "request_hi", "request_lo", *KEY})
_ATTEMPT = tuple(column.name for column in ATTEMPT.columns if column.name not in _ORIGIN)


def explain(lake: Lake, name: str, key: bytes | None = None) -> Node:
    """The tree behind a finding, an attempt or a file.

    Args:
        lake: where the tables lie.
        name: the first 8 or more hexadecimal digits of a finding's id, an attempt's id or a segment's digest; or an
            identifier another system gave to an attempt, whole.
        key: the installation's pseudonym key, needed for the identifiers of other systems.

    Raises:
        ConfigError: nothing is called so, or several things are; the message names them.
    """
    digits = digits_if_any(name)
    named = attempts_named(lake, key, name.strip()) if key else {}
    own = set(_search(lake, digits)) if digits else set()
    found = sorted(own | {("attempt", attempt) for attempt in named})
    if len(found) != 1 and (named or not digits):
        raise ConfigError(_told(name, found))
    kind, held = the_one(found, digits or name, _WANTED)
    if kind == "finding":
        return _finding(lake, held)
    if kind == "segment":
        return _segment(lake, held)
    attempt = AttemptKey.from_hex(held)
    return _attempt(Held(lake, [attempt]), attempt, named.get(held, ()))


def _told(name: str, found: Sequence[tuple[str, str]]) -> str:
    """Why a name that is no beginning of our own ids, or not only that, stands for nothing or for several things."""
    if not found:
        return (
            f"{name!r} is no id of ours and no identifier of another system that is known here; give the first {LEAST} "
            f"or more hexadecimal digits of a {_WANTED}, or the whole response id a provider gave"
        )
    shown = ", ".join(f"{kind} {each}" for kind, each in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{name!r} is ambiguous: {len(found)} things are called so, {shown}{more}; give one of these ids instead"


def _search(lake: Lake, digits: str) -> Iterator[tuple[str, str]]:
    for table, column, kind in (("finding", "finding_id", "finding"), ("segment", "segment", "segment")):
        ids = lake.scan(table, columns=[column]).filter(pl.col(column).str.starts_with(digits))
        yield from ((kind, found) for found in ids.collect()[column])
    if len(digits) <= _ID_DIGITS:
        mine = _begins_with(digits)
        for table in ("attempt", "reading"):
            keys = lake.scan(table, columns=list(KEY)).filter(mine).unique().collect(engine="streaming")
            yield from (("attempt", found) for found in keys.select(id=hexadecimal())["id"])


def _begins_with(digits: str) -> pl.Expr:
    """Whether an attempt's id begins with these digits. At least one is given, so a range has one sign."""
    low, high = (AttemptKey.from_hex(digits.ljust(_ID_DIGITS, fill)) for fill in "0f")
    upper = pl.col("attempt_hi").is_between(low.hi, high.hi)
    return upper if len(digits) <= _ID_DIGITS // 2 else upper & pl.col("attempt_lo").is_between(low.lo, high.lo)


@dataclass(frozen=True)
class Held:
    """The rows about some attempts, each table read once, and the names of all files."""

    lake: Lake
    keys: Sequence[AttemptKey]
    _tables: dict[str, dict[AttemptKey, list[Row]]] = field(default_factory=dict)

    def rows(self, table: str, key: AttemptKey, *order: str) -> list[Row]:
        """The rows of a table about one attempt."""
        if table not in self._tables:
            wanted = pl.DataFrame(self.keys, schema=["attempt_hi", "attempt_lo"], orient="row").lazy()
            found = self.lake.scan(table).join(wanted, on=list(KEY), how="semi").collect(engine="streaming")
            by_key: dict[AttemptKey, list[Row]] = {}
            for row in found.sort(order).iter_rows(named=True):
                by_key.setdefault(AttemptKey(row["attempt_hi"], row["attempt_lo"]), []).append(row)
            self._tables[table] = by_key
        return self._tables[table].get(key, [])

    @cached_property
    def names(self) -> dict[str, str]:
        """Digest -> name of every file."""
        return dict(self.lake.scan("segment", columns=["segment", "name"]).collect().iter_rows())

    def file(self, segment: str | None, row: int | None = None) -> Node:
        """The file a row came from, by its name, with its row: stored from 0, told from 1."""
        if segment is None:
            return Node("file", UNKNOWN)
        place = () if row is None else (Node("row", row + 1),)
        return Node("file", self.names.get(segment, UNKNOWN), (Node("digest", segment), *place))


def _finding(lake: Lake, finding_id: str) -> Node:
    row = lake.scan("finding").filter(pl.col("finding_id") == finding_id).collect().row(0, named=True)
    titles = {cause.code: cause.title for cause in all_causes()}
    cause = (Node("cause", row["cause"], (Node("meaning", titles.get(row["cause"])),)),) if row["cause"] else ()
    keys = [AttemptKey.from_hex(text) for text in row["evidence"] or ()]
    held = Held(lake, keys)
    evidence = tuple(_attempt(held, key) for key in keys)
    files = tuple(held.file(segment) for segment in row["segments"] or ())
    unread = _unread(held, row) if row["code"] == _UNREAD else ()
    groups = tuple(
        Node(label, len(nodes), nodes)
        for label, nodes in (("evidence", evidence), ("unreadable values", unread), ("files", files))
        if nodes
    )
    return Node("finding", finding_id, (Node("code", row["code"]), *leaves(row, _FINDING), *cause, *groups))


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


def _attempt(held: Held, key: AttemptKey, kinds: Sequence[str] = ()) -> Node:
    called = tuple(Node("found by", kind) for kind in kinds)
    sides = tuple(_side(held, key, row) for row in held.rows("reconciled", key, "direction"))
    records = tuple(
        Node("recorded by", row["source"], (*_request(row), *leaves(row, _ATTEMPT), _origin(held, row)))
        for row in held.rows("attempt", key, "source", "revision")
    )
    return Node("attempt", key.to_hex(), (*called, *sides, *records, *_reports(held, key)))


def _origin(held: Held, row: Row) -> Node:
    return held.file(row["segment"], row["segment_row"])


def _request(row: Row) -> tuple[Node, ...]:
    if row["request_hi"] is None or row["request_lo"] is None:
        return ()
    return (Node("request", AttemptKey(row["request_hi"], row["request_lo"]).to_hex()),)


def _side(held: Held, key: AttemptKey, row: Row) -> Node:
    causes = tuple(
        Node(cause["cause"], cause["tokens"], leaves(cause, ("confidence", "amount", "currency")) + _others(cause))
        for cause in held.rows("gap_cause", key, "direction", "cause")
        if cause["direction"] == row["direction"]
    )
    return Node(row["direction"], row["status"], (*leaves(row, _RECONCILED), *causes))


def _others(cause: Row) -> tuple[Node, ...]:
    return tuple(Node("alternative", name) for name in cause["alternatives"] or ())


def _reports(held: Held, key: AttemptKey) -> Iterator[Node]:
    """Each usage report: what it was read as, what it cost, and the raw leaves of its parts."""
    order = ("source", "child", "report")
    amounts = {_place(row): row for row in held.rows("priced_amount", key, *order)}
    readings = {_place(row): row for row in held.rows("reading", key, *order)}
    parts: dict[Place, list[Node]] = {}
    for row in held.rows("usage_report", key, *order, "revision", "part"):
        children = (Node("revision", row["revision"]), *_leaves(row), _origin(held, row))
        named = Node("part", row["part_kind"], children)
        parts.setdefault(_place(row), []).append(named)
    for place in sorted({*readings, *parts}):
        source, child, report = place
        read = _read(readings[place]) if place in readings else ()
        cost = leaves(amounts[place], ("amount", "currency", "price_id", "status")) if place in amounts else ()
        children = (Node("child", child), Node("report", report), *read, *cost, *parts.get(place, ()))
        yield Node("usage report of", source, children)


def _read(reading: Row) -> tuple[Node, ...]:
    return leaves(reading, _READING) + tuple(Node("flag", flag) for flag in reading["flags"] or ())


def _place(row: Row) -> Place:
    return row["source"], row["child"], row["report"]


def _leaves(row: Row) -> Iterator[Node]:
    """The raw leaves of a part: path and integer, or path and decimal text or enumeration."""
    paths = row["leaf_shape"].split(" ") if row["leaf_shape"] else []
    integers = row["leaf_integers"] or [None] * len(paths)
    texts = row["leaf_texts"] or [None] * len(paths)
    for path, integer, text in zip(paths, integers, texts, strict=True):
        yield Node(path, text if integer is None else integer)


def _segment(lake: Lake, segment: str) -> Node:
    row = lake.scan("segment").filter(pl.col("segment") == segment).collect().row(0, named=True)
    counts = []
    for table in ("attempt", "usage_report", "quarantine", "gap"):
        own = lake.scan(table, columns=["segment"]).filter(pl.col("segment") == segment)
        counts.append(Node(f"rows of {table}", own.select(pl.len()).collect(engine="streaming").item()))
    named = (
        Node("finding", found["finding_id"], (Node("code", found["code"]), Node("subject", found["subject"])))
        for found in lake.scan("finding").collect().sort("code", "finding_id").iter_rows(named=True)
        if segment in (found["segments"] or ())
    )
    return Node("file", row["name"], (*leaves(row, _SEGMENT), *counts, *named))
