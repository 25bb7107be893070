"""A window of an engine's counters: what it counted, what its attempts add up to, why they differ, and the scrapes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.engine.cause import all_causes
from weighbridge.pipeline.engine.lives import lives
from weighbridge.pipeline.explain.called import called, moment, same
from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import SHOWN, group
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.tables import ENGINE_GAP

_WORD = "engine"
_SERVER = ("source", "engine", "model", "instance", "counter", "label")
_WINDOW = (*_SERVER, "until")
_SHOWN = tuple(column.name for column in ENGINE_GAP.columns)
_SCRAPE = ("metric", "value", "unit", "rank", "series", "scraped_at", "started_at", "undated", "revision")
_DATE_LENGTH = 10


def find(asked: Asked) -> Iterator[str]:
    """The window that is called so."""
    rows = _rows(asked.lake, asked.name)
    yield from rows["called"].unique().sort() if rows is not None else ()


def node(asked: Asked, held: str) -> Node:
    """The tree behind a window."""
    rows = _rows(asked.lake, held)
    assert rows is not None
    return window_node(asked, rows.row(0, named=True))


def named(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Windows with their names, as `called`."""
    return frame.with_columns(frame_names().alias("called"))


def frame_names() -> pl.Expr:
    """The name of each window."""
    return pl.concat_str(called(_WORD, *_SERVER), moment("until"), separator="/")


def window_node(asked: Asked, row: Row) -> Node:
    """The tree behind a row of `engine_gap` that has its name."""
    causes = asked.lake.scan("engine_gap_cause", first=row["day"], last=row["day"]).filter(
        *same(row, *_SERVER), pl.col("until") == row["until"]
    )
    titles = {cause.code: cause.title for cause in all_causes()}
    told = tuple(
        Node(
            each["cause"],
            each["tokens"],
            (
                *(Node("meaning", titles[each["cause"]]) for _ in (1,) if each["cause"] in titles),
                *leaves(each, ("low", "high", "confidence")),
                *(Node("alternative", name) for name in each["alternatives"] or ()),
            ),
        )
        for each in causes.sort("cause").collect().iter_rows(named=True)
    )
    children = (
        *leaves(row, _SHOWN),
        *group("causes", told),
        *_scrapes(asked.lake, row),
        *_attempts(asked, row),
    )
    return Node("engine window", row["called"], children)


def _rows(lake: Lake, name: str) -> pl.DataFrame | None:
    word, _, rest = name.partition("/")
    if word != _WORD or "/" not in rest:
        return None
    try:
        day = date.fromisoformat(name.rsplit("/", 1)[1][:_DATE_LENGTH])
    except ValueError:
        return None
    found = named(lake.scan("engine_gap", first=day, last=day)).filter(pl.col("called") == name).collect()
    return None if found.is_empty() else found


def _scrapes(lake: Lake, row: Row) -> tuple[Node, ...]:
    """The last scrape of each series up to either end of the window, with file and row: what was subtracted.

    A window of all servers together has no instance of its own, and is made of those of all.
    """
    server = [name for name in _SERVER if name != "instance" or row["instance"] is not None]
    inside = pl.col("scraped_at").is_between(row["since"], row["until"])
    rows = (
        lake.scan("engine_counter", first=row["since"].date(), last=row["until"].date())
        .filter(*same(row, *server), inside)
        .sort("series", "scraped_at", "revision")
        .collect()
    )
    files = Held(lake, [])
    told = []
    for series in rows.partition_by("series", maintain_order=True):
        ends = series.head(1) if series.height == 1 else pl.concat([series.head(1), series.tail(1)])
        told += [
            Node(
                "scrape",
                each["value"],
                (*leaves(each, _SCRAPE), files.file(each["segment"], each["segment_row"])),
            )
            for each in ends.iter_rows(named=True)
        ]
    return group("first and last scrapes in it", tuple(told), rows.height)


def _attempts(asked: Asked, row: Row) -> tuple[Node, ...]:
    """The attempts of this model whose life touches the window, the largest first; of which server, where known."""
    day = timedelta(days=1)
    touching = lives(asked.lake, row["since"].date() - day, row["until"].date()).filter(
        pl.col("begin") <= row["until"], pl.col("end") >= row["since"], *same(row, "model")
    )
    if row["instance"] is not None:
        touching = touching.filter((pl.col("instance") == row["instance"]) | pl.col("instance").is_null())
    size = pl.sum_horizontal("input", "output")
    first = touching.sort(size, *KEY, descending=[True, False, False], nulls_last=True).head(SHOWN)
    ids = first.select(id=hexadecimal())["id"].to_list()
    return group("attempts that touch it", attempts_node(asked, ids), touching.height)


KIND = Kind(
    "engine window", "engine/SOURCE/ENGINE/MODEL/SERVER/COUNTER/PART/UNTIL, `-` for what is not known", find, node
)
