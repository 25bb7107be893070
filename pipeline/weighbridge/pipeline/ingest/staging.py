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
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.parts import Part
from weighbridge.pipeline.ingest.staged_columns import Columns, Held
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import AttemptKey, keyed_key
from weighbridge.schemas.leaves import Refusal

# Rows that are made at a time: more of them only stay in memory for longer.
_CHUNK = 4000
_QUARANTINE = {
    name: polars_schema("quarantine")[name]
    for name in (
        *("line", "day", "source", "provider", "api", "leaf_shape", "leaf_integers", "leaf_texts", "reason", "path"),
    )
}
# What may name a call in its own source; a trace holds many calls and names none.
_IDENTIFYING = tuple(kind for kind in ForeignIdKind if kind is not ForeignIdKind.TRACE_ID)


class Call(NamedTuple):
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
    _columns: Columns = field(init=False)
    _held: Held = field(default_factory=Held)
    _quarantine: list[dict[str, object]] = field(default_factory=list)
    _frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Columns are those of this file."""
        self._columns = Columns(self.source, self.name)

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
            naming = _naming(call)
            self._held.add(number, call, naming, None if naming else self._content_key(content))
        if len(self._held.calls) >= _CHUNK:
            self._turn()

    def refuse(self, number: int, refusals: Sequence[Refusal]) -> None:
        """Put a record into quarantine that could not even be taken apart."""
        self._refuse(number, refusals, None, None)
        self.refused += 1

    def repeat(self) -> None:
        """Count a record that says again what another record of the file says: it is a duplicate, without rows."""
        self.repeated += 1

    def staged(self, records: int) -> Staged:
        """The rows of all records, of which there were so many."""
        self._turn()
        frames = {table: pl.concat(frames, how="diagonal") for table, frames in self._frames.items()}
        return Staged(
            records=records,
            tables={name: frame for name, frame in frames.items() if name not in {"derived", "quarantine"}},
            by_line=True,
            refused=frames.get("quarantine"),
            refused_records=self.refused,
            derived=frames.get("derived"),
            repeated=self.repeated,
        )

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
        self._quarantine += [{**row, "reason": str(reason), "path": path} for path, reason in dict.fromkeys(refusals)]
        if len(self._quarantine) >= _CHUNK:
            self._turn()

    def _content_key(self, content: Mapping[str, object]) -> AttemptKey:
        """The key of a call that nothing names: its content, and its place among equal records."""
        shown = json.dumps(content, sort_keys=True, default=str, separators=(",", ":")).encode("utf-8", "surrogatepass")
        seen = hashlib.sha256(shown).digest()
        occurrence = self._alike[seen]
        self._alike[seen] += 1
        return keyed_key(self.source.key, self.name, shown, occurrence)

    def _turn(self) -> None:
        """Turn what is held so far into columns."""
        made = self._columns.of(self._held) if self._held.calls else {}
        if self._quarantine:
            made["quarantine"] = pl.DataFrame(self._quarantine, schema=_QUARANTINE)
        for table, rows in made.items():
            self._frames.setdefault(table, []).append(rows)
        self._held, self._quarantine = Held(), []


def _naming(call: Call) -> ForeignIdKind | None:
    """The kind of the id that names a call in its own source."""
    for kind, value in call.ids.items():
        # Tries of one request share its id: it names none of them.
        if kind in _IDENTIFYING and value != call.request:
            return kind
    return None
