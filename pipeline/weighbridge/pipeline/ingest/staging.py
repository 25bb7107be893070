"""Records of other systems on their way into the lake: calls and refusals become rows, keys are made in one place.

An importer takes its records apart into `Call`s and hands them over with the place they stood in:

    stage = Stage(source, "litellm")
    for line in read_lines(path):
        stage.add(line.number, call, content=line.value)
    return stage.staged(records)

What names a call in its own source makes its key: the ids in the order they were given, else its content and its
place among equal records. Nothing else of a record is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.keys import alias_key
from weighbridge.pipeline.ingest.parts import Part
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import key_id, keyed_key
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.tables import UNASSIGNED

_CHUNK = 20_000
_DERIVED = ("attempt_hi", "attempt_lo", "source", "alias_hi", "alias_lo")
# What may name a call in its own source; a trace holds many calls and names none.
_IDENTIFYING = tuple(kind for kind in ForeignIdKind if kind is not ForeignIdKind.TRACE_ID)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a record.

    Attributes:
        attempt: columns of `attempt`, as far as the record says; provider, api and the models among them.
        parts: the parts of its answer that carry leaves, or values that cannot be read.
        ids: kind of identifier -> identifier, in the order in which they name the call.
        notes: what was left out of the record: name_dropped, identifier_dropped.
        model: the model the answer names, else the one asked for.
        created: when the call was made, null where the record does not say.
        tenant: the name of its tenant, which becomes a pseudonym; null leaves it to the source.
        task: its task type; null leaves it to the source.
        request: what the source calls the request this call was a try of, where it tells tries of one request apart.
    """

    attempt: dict[str, object]
    parts: list[Part]
    ids: dict[ForeignIdKind, str]
    notes: tuple[str, ...] = ()
    model: str | None = None
    created: datetime | None = None
    tenant: str | None = None
    task: str | None = None
    request: str | None = None

    @property
    def unreadable(self) -> list[Part]:
        """The parts with values that cannot be read."""
        return [part for part in self.parts if part.flattened.refusals]


@dataclass(slots=True)
class Stage:
    """The rows of one file while they are gathered.

    Attributes:
        source: the file.
        name: the system that wrote the records, as it stands in the column `source`.
        refused: how many records were refused so far.
        repeated: how many only repeated another record of the file.
    """

    source: Source
    name: str
    refused: int = 0
    repeated: int = 0
    _alike: Counter[bytes] = field(default_factory=Counter)
    _rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    _frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def add(self, number: int, calls: Sequence[Call], content: Mapping[str, object]) -> None:
        """Add the calls of one record, or refuse it whole where a value of one of them cannot be read.

        Args:
            number: the 0-based place of the record in its file.
            calls: what it tells.
            content: the record, which identifies calls that nothing else does. It is hashed, not kept.
        """
        spoiled = [(call, part) for call in calls for part in call.unreadable]
        if spoiled:
            for call, part in spoiled:
                self._refuse(number, part.flattened.refusals, call, part)
            self.refused += 1
            return
        for call in calls:
            self._add(number, call, content)

    def refuse(self, number: int, refusals: Sequence[Refusal]) -> None:
        """Put a record into quarantine that could not even be taken apart."""
        self._refuse(number, refusals, None, None)
        self.refused += 1

    def repeat(self) -> None:
        """Count a record that says again what another record of the file says: it is a duplicate, without rows."""
        self.repeated += 1

    def staged(self, records: int) -> Staged:
        """The rows of all records, of which there were so many."""
        for table in list(self._rows):
            self._turn(table)
        frames = {table: pl.concat(frames, how="diagonal") for table, frames in self._frames.items()}
        derived = frames.pop("derived", None)
        return Staged(
            records=records,
            tables={name: frame for name, frame in frames.items() if name != "quarantine"},
            by_line=True,
            refused=frames.get("quarantine"),
            refused_records=self.refused,
            derived=derived if derived is None else derived.select(_DERIVED),
            repeated=self.repeated,
        )

    def _add(self, number: int, call: Call, content: Mapping[str, object]) -> None:
        key, alias = self._key(call, content)
        place = {
            "attempt_hi": key[0],
            "attempt_lo": key[1],
            "day": call.created.date() if call.created else self.source.day,
            "source": self.name,
            "segment_row": number,
        }
        assigned = tenant(self.source.key, self.source.tenant or call.tenant)
        attempt = {
            **place,
            "arrived_at": call.created,
            "undated": call.created is None,
            "tenant": assigned,
            "tenant_key_id": None if assigned == UNASSIGNED else key_id(self.source.key),
            "task": self.source.task or call.task or UNASSIGNED,
            "route": UNASSIGNED,
        }
        if call.request is not None:
            whole = keyed_key(self.source.key, self.name, "request", call.request)
            attempt |= {"request_hi": whole.hi, "request_lo": whole.lo}
        self._put("attempt", {**attempt, **call.attempt})
        named = {name: place[name] for name in _DERIVED[:3]}
        self._put("derived", {**named, "alias_hi": alias[0], "alias_lo": alias[1]})
        for kind, value in call.ids.items():
            self._put("foreign_id", {**place, "kind": str(kind), "value": value})
        for index, part in enumerate(call.parts):
            self._put("usage_report", {**place, **_report(call, part, index)})

    def _refuse(self, number: int, refusals: Sequence[Refusal], call: Call | None, part: Part | None) -> None:
        leaves = part.flattened if part else None
        row = {
            "line": number,
            "day": call.created.date() if call and call.created else self.source.day,
            "source": self.name,
            "provider": call.attempt.get("provider") if call else None,
            "api": call.attempt.get("api") if call else None,
            "leaf_shape": leaves.shape if leaves else None,
            "leaf_integers": leaves.integers() if leaves else None,
            "leaf_texts": leaves.texts() if leaves else None,
        }
        for path, reason in dict.fromkeys(refusals):
            self._put("quarantine", {**row, "reason": str(reason), "path": path})

    def _key(self, call: Call, content: Mapping[str, object]) -> tuple[tuple[int, int], tuple[int | None, int | None]]:
        """The key of a call, and the alias hash of the id it was made from."""
        pseudonym_key = self.source.key
        for kind, value in call.ids.items():
            # Tries of one request share its id: it names none of them.
            if kind in _IDENTIFYING and value != call.request:
                return (
                    keyed_key(pseudonym_key, self.name, str(kind), value),
                    alias_key(pseudonym_key, kind, self.name, value),
                )
        shown = json.dumps(content, sort_keys=True, default=str, separators=(",", ":"))
        seen = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).digest()
        occurrence = self._alike[seen]
        self._alike[seen] += 1
        return keyed_key(pseudonym_key, self.name, shown.encode("utf-8", "surrogatepass"), occurrence), (None, None)

    def _put(self, table: str, row: dict[str, object]) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= _CHUNK:
            self._turn(table)

    def _turn(self, table: str) -> None:
        types = polars_schema("attempt" if table == "derived" else table)
        types = {**types, "segment_row": pl.Int64(), "alias_hi": pl.Int64(), "alias_lo": pl.Int64()}
        rows = self._rows.pop(table)
        names = list(dict.fromkeys(name for row in rows for name in row))
        self._frames.setdefault(table, []).append(pl.DataFrame(rows, schema={name: types[name] for name in names}))


def _report(call: Call, part: Part, index: int) -> dict[str, object]:
    return {
        "child": 0,
        "report": 0,
        "part": index,
        "part_kind": str(part.part_kind),
        "provider": call.attempt.get("provider"),
        "api": call.attempt.get("api"),
        "model": call.model,
        "reported_at": call.created,
        "ended": str(part.ended),
        "leaf_shape": part.flattened.shape,
        "leaf_integers": part.flattened.integers(),
        "leaf_texts": part.flattened.texts(),
        "notes": [*part.notes, *call.notes] or None,
    }
