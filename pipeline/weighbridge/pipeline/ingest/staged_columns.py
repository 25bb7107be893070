"""Calls as columns: the rows of `attempt`, `derived`, `foreign_id` and `usage_report` that some of them give.

An importer hands over one call after the other; here they become columns, thousands at a time, because a table that
is made row by row costs more than reading the log does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.ingest.keys import alias_keys, keyed_keys
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import AttemptKey, key_id
from weighbridge.schemas.tables import UNASSIGNED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weighbridge.pipeline.ingest.staging import Call

DERIVED = ("attempt_hi", "attempt_lo", "source", "alias_hi", "alias_lo")
# Polars takes lists and times apart value by value where Arrow takes them at once.
_ARROW: Mapping[pl.DataType, pa.DataType] = {
    pl.List(pl.Int64): pa.list_(pa.int64()),
    pl.List(pl.String): pa.list_(pa.large_string()),
    pl.Datetime("us", "UTC"): pa.timestamp("us", "UTC"),
}


@dataclass(slots=True)
class Held:
    """Calls that wait to become columns.

    Attributes:
        places: the 0-based place of each call's record in its file.
        calls: the calls.
        named: kind of identifier -> which of the calls it names, and its value for each of them.
        keyed: which of the calls nothing names -> the key its content gives it.
    """

    places: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    named: dict[ForeignIdKind, tuple[list[int], list[str]]] = field(default_factory=dict)
    keyed: dict[int, AttemptKey] = field(default_factory=dict)

    def add(self, place: int, call: Call, name: ForeignIdKind | None, key: AttemptKey | None) -> None:
        """Add a call that is named by its identifier of one kind, or has a key already."""
        at = len(self.calls)
        self.places.append(place)
        self.calls.append(call)
        if name is not None:
            which, values = self.named.setdefault(name, ([], []))
            which.append(at)
            values.append(call.ids[name])
        elif key is not None:
            self.keyed[at] = key


@dataclass(slots=True)
class Columns:
    """Turns calls of one file into columns.

    Attributes:
        source: the file.
        name: the system that wrote the records, as it stands in the column `source`.
    """

    source: Source
    name: str
    _tenants: dict[str | None, str] = field(default_factory=dict)

    def of(self, held: Held) -> dict[str, pl.DataFrame]:
        """Table name -> the rows that these calls give, in their order; `derived` among them."""
        keys, aliases = self._keys(held)
        created = _series("day", pl.Datetime("us", "UTC"), [call.created for call in held.calls])
        place = pl.DataFrame(
            {
                "attempt_hi": keys[:, 0],
                "attempt_lo": keys[:, 1],
                "day": created.dt.date().fill_null(self.source.day),
                "source": pl.repeat(self.name, len(keys), eager=True),
                "segment_row": pl.Series(held.places, dtype=pl.Int64),
            }
        )
        frames = {
            "attempt": place.with_columns(self._attempts(held.calls, created)),
            "derived": place.select(DERIVED[:3]).with_columns(aliases),
        }
        which, ids = _ids(held.calls)
        reported, reports = _reports(held.calls, created)
        for table, rows, columns in (("foreign_id", which, ids), ("usage_report", reported, reports)):
            if rows:
                frames[table] = place[rows].with_columns(columns)
        return frames

    def _keys(self, held: Held) -> tuple[NDArray[np.int64], list[pl.Series]]:
        """The key of each call, and the alias hash of the id it was made from; null where content identifies it."""
        keys, aliases = (np.zeros((len(held.calls), 2), dtype=np.int64) for _ in range(2))
        for kind, (which, values) in held.named.items():
            keys[which] = keyed_keys(self.source.key, [self.name, str(kind)], values)
            aliases[which] = alias_keys(self.source.key, kind, self.name, values)
        for at, key in held.keyed.items():
            keys[at] = key
        unnamed = list(held.keyed)
        columns = [pl.Series(name, aliases[:, at]) for at, name in enumerate(DERIVED[3:])]
        return keys, [column.scatter(unnamed, None) if unnamed else column for column in columns]

    def _attempts(self, calls: Sequence[Call], created: pl.Series) -> list[pl.Series]:
        tenants = [self._tenant(call.tenant) for call in calls]
        installation = key_id(self.source.key)
        whole = _whole(self.source.key, self.name, calls)
        columns: dict[str, Sequence[object] | pl.Series] = {
            "arrived_at": created,
            "undated": created.is_null(),
            "tenant": tenants,
            "tenant_key_id": [None if told == UNASSIGNED else installation for told in tenants],
            "task": [self.source.task or call.task or UNASSIGNED for call in calls],
            "route": [UNASSIGNED] * len(calls),
            **whole,
        }
        rows = [call.attempt for call in calls]
        for name in dict.fromkeys(name for row in rows for name in row):
            # What a record says itself goes before what is concluded here.
            columns[name] = [
                row.get(name, other) for row, other in zip(rows, columns.get(name, repeat(None)), strict=False)
            ]
        types = polars_schema("attempt")
        return [_series(name, types[name], values) for name, values in columns.items()]

    def _tenant(self, told: str | None) -> str:
        name = self.source.tenant or told
        if name not in self._tenants:
            self._tenants[name] = tenant(self.source.key, name)
        return self._tenants[name]


def _whole(key: bytes, source: str, calls: Sequence[Call]) -> dict[str, pl.Series]:
    """The key of the request each call was a try of, where any of them says so."""
    which = [at for at, call in enumerate(calls) if call.request is not None]
    if not which:
        return {}
    hashed = keyed_keys(key, [source, "request"], [calls[at].request for at in which])
    nulls = pl.Series(dtype=pl.Int64).extend_constant(None, len(calls))
    return {
        name: nulls.clone().scatter(which, hashed[:, half]) for half, name in enumerate(("request_hi", "request_lo"))
    }


def _ids(calls: Sequence[Call]) -> tuple[list[int], list[pl.Series]]:
    """Which call each identifier belongs to, and the identifiers."""
    which = [at for at, call in enumerate(calls) for _ in call.ids]
    kinds = pl.Series("kind", [str(kind) for call in calls for kind in call.ids], dtype=pl.String)
    return which, [kinds, pl.Series("value", [value for call in calls for value in call.ids.values()], dtype=pl.String)]


def _reports(calls: Sequence[Call], created: pl.Series) -> tuple[list[int], list[pl.Series]]:
    """Which call each part of an answer belongs to, and the columns of the parts."""
    which = [at for at, call in enumerate(calls) for _ in call.parts]
    parts = [(index, part) for call in calls for index, part in enumerate(call.parts)]
    of = [calls[at] for at in which]
    leaves = [part.flattened for _, part in parts]
    columns: dict[str, Sequence[object] | pl.Series] = {
        "child": [0] * len(parts),
        "report": [0] * len(parts),
        "part": [index for index, _ in parts],
        "part_kind": [str(part.part_kind) for _, part in parts],
        "provider": [call.attempt.get("provider") for call in of],
        "api": [call.attempt.get("api") for call in of],
        "model": [call.model for call in of],
        "reported_at": created[which],
        "ended": [str(part.ended) for _, part in parts],
        "leaf_shape": [one.shape for one in leaves],
        "leaf_integers": [one.integers() for one in leaves],
        "leaf_texts": [one.texts() for one in leaves],
        "notes": [[*part.notes, *call.notes] or None for (_, part), call in zip(parts, of, strict=True)],
    }
    types = polars_schema("usage_report")
    return which, [_series(name, types[name], values) for name, values in columns.items()]


def _series(name: str, kind: pl.DataType, values: Sequence[object] | pl.Series) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.cast(kind).alias(name)
    arrow = _ARROW.get(kind)
    if arrow is None:
        return pl.Series(name, values, dtype=kind)
    made = pl.from_arrow(pa.array(values, type=arrow))
    assert isinstance(made, pl.Series), "an array is one column"
    return made.alias(name)
