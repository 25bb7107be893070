"""The footer of a data file: its order as its writer found it, and its row groups with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.order import MARK, Order
from weighbridge.pipeline.lake.place import Place
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
        absent: of the columns that were asked for, those that are null in all rows, or that it does not hold.
        least, most: the ends of each of the others that has whole numbers, where the file says so of all rows.
        only: the one text of each of the others that has no other text and no null.
    """

    order: Order | None
    stretches: tuple[Stretch, ...]
    absent: frozenset[str] = frozenset()
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)


def columns(held: pq.FileMetaData) -> list[str]:
    """The names of the columns of a file, in order; those inside others have names with points.

    Its `schema` says so too, but the two refer to one another from then on, and a footer of megabytes stays in memory
    until somebody looks for such cycles.
    """
    if not held.num_row_groups:
        return list(held.schema.names)
    group = held.row_group(0)
    return [group.column(number).path_in_schema for number in range(held.num_columns)]


def footer(place: Place, about: Table, part: Part, ask: Sequence[str] = ()) -> Footer:
    """What a file says of its order, and of the values of the columns in `ask`.

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
    names = columns(held)
    index = names.index(lead) if lead in names else None
    stretches, first = [], 0
    for number in range(held.num_row_groups):
        group = held.row_group(number)
        least, most = (None, None) if index is None else _ends(group.column(index).statistics)
        stretches.append(Stretch(first, group.num_rows, least, most))
        first += group.num_rows
    return Footer(order, tuple(stretches), *_values(held, ask))


def _values(
    held: pq.FileMetaData, ask: Sequence[str]
) -> tuple[frozenset[str], dict[str, int], dict[str, int], dict[str, str]]:
    """`absent`, `least`, `most` and `only` of a `Footer`."""
    place = {name: number for number, name in enumerate(columns(held))}
    absent, least, most, only = set(), {}, {}, {}
    for name in ask:
        if name not in place:
            absent.add(name)
            continue
        chunks = [held.row_group(group).column(place[name]) for group in range(held.num_row_groups)]
        said = [chunk.statistics for chunk in chunks]
        if not all(each is not None and each.has_null_count for each in said):
            continue
        told = [each for each, chunk in zip(said, chunks, strict=True) if each.null_count < chunk.num_values]
        if not told:
            absent.add(name)
        elif all(each.has_min_max for each in told):
            ends = {end for each in told for end in (each.min, each.max)}
            if all(isinstance(end, int) for end in ends):
                least[name], most[name] = min(ends), max(ends)
            elif len(ends) == 1 and not any(each.null_count for each in said):
                only[name] = str(*ends)
    return frozenset(absent), least, most, only


def _ends(said: Any) -> tuple[int | None, int | None]:
    return (said.min, said.max) if said is not None and said.has_min_max else (None, None)
