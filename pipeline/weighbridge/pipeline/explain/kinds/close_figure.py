"""A figure of a closed month, by the name it has in `diff` and `verify`: 2026-03/close/usage.tokens.

What it rests on is counted in the pack of the month, and the attempts it is about are followed into the lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from weighbridge.pipeline.close.closed import closed_figures
from weighbridge.pipeline.close.figures import Entry, Figures, flat, names
from weighbridge.pipeline.close.month_figures import rests_on
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.explain.about import SHOWN_ATTEMPTS, attempts_about
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.period import MONTH

_CLOSE = "close"


def find(asked: Asked) -> Iterator[str]:
    """The figure that is called so, where its month is closed and its pack is there."""
    month, _, rest = asked.name.partition("/")
    word, _, name = rest.partition("/")
    if asked.packs is not None and MONTH.fullmatch(month) and word == _CLOSE and name in _flat(asked, month):
        yield asked.name


def node(asked: Asked, held: str) -> Node:
    """The tree behind a figure of a close."""
    month, _, name = held.split("/", 2)
    assert asked.packs is not None
    closed = closed_figures(asked.lake, asked.packs, month)
    assert closed is not None
    section, entry, value = _place(closed.figures, name)
    pack = Pack(asked.packs / month)
    tables = [
        Node(table, _rows(pack, table), (Node("root", _root(pack, table)),))
        for table in rests_on(section)
        if table in pack.manifest.tables
    ]
    about = tuple(Node(label, told) for label, told in entry.by if told is not None)
    ids, many = attempts_about(asked.lake, month, _named(entry.by))
    children = (
        Node("month", month, (Node("root", closed.root), Node("figures digest", closed.figures_digest))),
        *about,
        *((Node("rests on", len(tables), tuple(tables)),) if tables else ()),
        *((Node("attempts", many, attempts_node(asked, ids[:SHOWN_ATTEMPTS])),) if ids else ()),
    )
    return Node(f"{section}.{value}", entry.values[value], children)


def _flat(asked: Asked, month: str) -> Mapping[str, Any]:
    try:
        closed = closed_figures(asked.lake, asked.packs, month) if asked.packs else None
    except DamagedError:
        return {}
    return {} if closed is None else flat(closed.figures)


def _place(figures: Figures, name: str) -> tuple[str, Entry, str]:
    return next(
        (section, entry, value)
        for section, found in figures.items()
        for entry in found
        for value in entry.values
        if f"{names(section, entry)}.{value}" == name
    )


def _named(by: tuple[tuple[str, str | None], ...]) -> dict[str, str | None]:
    return dict(by)


def _rows(pack: Pack, table: str) -> int:
    return int(pack.own(table).select(pl.len()).collect(engine="streaming").item())


def _root(pack: Pack, table: str) -> str:
    return pack.manifest.tables[table].root


KIND = Kind("figure of a close", "MONTH/close/NAME, by the name `diff` and `verify` give it", find, node)
