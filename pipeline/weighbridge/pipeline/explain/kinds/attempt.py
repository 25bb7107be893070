"""An attempt: what was observed and reported of it, what explains the difference, what it costs, and raw leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.lattice import REPORTED_CLASSES
from weighbridge.schemas.tables import ATTEMPT, READING

Place = tuple[str, int, int]
_ID_DIGITS = 32
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
_ORIGIN = frozenset({"source", "segment", "segment_row", "request_hi", "request_lo", *KEY})
_ATTEMPT = tuple(column.name for column in ATTEMPT.columns if column.name not in _ORIGIN)
_PRICE = ("match", "model", "valid_from", "valid_to", "origin", "checked_on", "service_tier", "region", "hours")


def find(asked: Asked) -> Iterator[str]:
    """Attempts whose id begins so, and those that another system calls so."""
    found = set(asked.named)
    digits = asked.digits
    if digits and len(digits) <= _ID_DIGITS:
        for table in ("attempt", "reading"):
            keys = asked.lake.scan(table, columns=list(KEY)).filter(begins_with(digits)).unique()
            found.update(keys.collect(engine="streaming").select(id=hexadecimal())["id"])
    yield from sorted(found)


def begins_with(digits: str) -> pl.Expr:
    """Whether an attempt's id begins with these digits. At least one is given, so a range has one sign."""
    low, high = (AttemptKey.from_hex(digits.ljust(_ID_DIGITS, fill)) for fill in "0f")
    upper = pl.col("attempt_hi").is_between(low.hi, high.hi)
    return upper if len(digits) <= _ID_DIGITS // 2 else upper & pl.col("attempt_lo").is_between(low.lo, high.lo)


def node(asked: Asked, held: str) -> Node:
    """The tree behind an attempt."""
    attempt = AttemptKey.from_hex(held)
    return attempt_node(Held(asked.lake, [attempt]), attempt, asked.named.get(held, ()))


def attempts_node(asked: Asked, ids: Sequence[str]) -> tuple[Node, ...]:
    """The trees behind several attempts."""
    keys = [AttemptKey.from_hex(each) for each in ids]
    held = Held(asked.lake, keys)
    return tuple(attempt_node(held, key) for key in keys)


def attempt_node(held: Held, key: AttemptKey, kinds: Sequence[str] = ()) -> Node:
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
        cost = _cost(held, amounts[place]) if place in amounts else ()
        children = (Node("child", child), Node("report", report), *read, *cost, *parts.get(place, ()))
        yield Node("usage report of", source, children)


def _cost(held: Held, amount: Row) -> tuple[Node, ...]:
    """The amount, its parts, and the row of prices they were made with."""
    told = leaves(amount, ("amount", "currency", "status", "service_tier", "price_tier", "amount_fees"))
    cells = {
        cell["token_class"]: cell for cell in held.prices.get(amount["price_id"], ()) if cell["modality"] == "text"
    }
    parts = tuple(
        Node(f"amount_{name}", amount[f"amount_{name}"], leaves(cells[name], ("per_million",)) if name in cells else ())
        for name in REPORTED_CLASSES
        if amount[f"amount_{name}"]
    )
    if amount["price_id"] is None:
        return (*told, *parts)
    about = next(iter(held.prices.get(amount["price_id"], ())), None)
    return (*told, *parts, Node("price", amount["price_id"], () if about is None else leaves(about, _PRICE)))


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


KIND = Kind("attempt", "the first digits of its id, or the whole response id of its provider", find, node)
