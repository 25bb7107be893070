"""The footer of a data file: its order as its writer found it, and its row groups with their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.order import MARK, Order, order_of
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.lake.words import files
from weighbridge.schemas.table import Table


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows of a file that lie together.

    Attributes:
        first, rows: the place of the first one, counted from 0, and how many there are.
        least, most: the ends of the first key column among them; null where the file does not say.
    """

    first: int
    rows: int
    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of the order of its rows, without its values being read.

    Attributes:
        order: what the writer found; null where it does not say.
        stretches: its row groups, in order.
    """

    order: Order | None
    stretches: tuple[Stretch, ...]


def footer(place: Place, about: Table, part: Part) -> Footer:
    """What a file says of its order.

    Raises:
        LakeError: the file cannot be read.
    """
    with told(f"reading {about.name}", place.root):
        store, path = place.store_of(part.address)
        with store.open_input_file(path) as source:
            held = pq.read_metadata(source)
    lead = about.key[0]
    said = (held.metadata or {}).get(MARK.encode(), b"").decode("ascii", "replace").partition(" ")
    order = Order(said[2]) if said[0] == lead and said[2] in set(Order) else None
    index = held.schema.names.index(lead) if lead in held.schema.names else None
    stretches, first = [], 0
    for number in range(held.num_row_groups):
        group = held.row_group(number)
        least, most = (None, None) if index is None else _ends(group.column(index).statistics)
        stretches.append(Stretch(first, group.num_rows, least, most))
        first += group.num_rows
    return Footer(order, tuple(stretches))


def checked(about: Table, part: Part) -> Order:
    """The order of the rows of a file, found by reading its first key column."""
    ((_, rows),) = files(about.name, [part])
    return order_of(rows.select(about.key[0]).collect(engine="streaming")[about.key[0]])


def _ends(said: Any) -> tuple[int | None, int | None]:
    return (said.min, said.max) if said is not None and said.has_min_max else (None, None)
