"""Recorded answers: JSON Lines with one API call a line, request and whole answer in it; only numbers are taken out.

    {"id": "r_1", "provider": "openai", "api_flavor": "openai_chat", "model": "gpt-4o", "stream": false,
     "status": 200, "request": {...}, "response": {... the body, or a list of events}, "meta_headers": {...}}

`events` may stand for `response`, or `usage` alone. `calls_in_record` above 1 says that the events of several calls
stand one after the other. Files may be gzip-compressed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import polars as pl

from weighbridge.pipeline.ingest.answers import Call, calls, is_answer
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import Line, opened, read_lines
from weighbridge.pipeline.ingest.keys import alias_key
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.ingest.tabular import JSONL, kind_of
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import ForeignIdKind, QuarantineReason
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import key_id, keyed_key
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.segment import sha256_file
from weighbridge.schemas.tables import UNASSIGNED

SOURCE = "recorded-answers"
_PEEK = 20
_CHUNK = 20_000
_DERIVED = ("attempt_hi", "attempt_lo", "source", "alias_hi", "alias_lo")


def _recognises(path: Path) -> bool:
    if not path.is_file() or kind_of(path) != JSONL:
        return False
    try:
        return any(line.value is not None and is_answer(line.value) for line in islice(read_lines(path), _PEEK))
    except (ContractError, OSError):
        return False


def _check(source: Source) -> Heading:
    path = source.path
    with opened(path) as file:
        while file.read(2**20):  # a damaged compressed file is found here, before anything is written
            pass
    first = next(read_lines(path), None)
    if first is not None and all(line.value is None for line in read_lines(path)):
        raise ContractError(
            f"{path} holds no JSON object in any of its lines: it is not JSON Lines in UTF-8, or damaged. "
            "Export it again, one object a line; nothing was written."
        )
    return Heading(sha256_file(path), path.stat().st_size)


@dataclass(slots=True)
class _Tables:
    """Rows as they are gathered, turned into frames by the thousands."""

    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def add(self, table: str, row: dict[str, object]) -> None:
        rows = self.rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= _CHUNK:
            self._turn(table)

    def _turn(self, table: str) -> None:
        types = polars_schema("attempt" if table == "derived" else table)
        types = {**types, "segment_row": pl.Int64(), "alias_hi": pl.Int64(), "alias_lo": pl.Int64()}
        rows = self.rows.pop(table)
        names = list(dict.fromkeys(name for row in rows for name in row))
        self.frames.setdefault(table, []).append(pl.DataFrame(rows, schema={name: types[name] for name in names}))

    def done(self) -> dict[str, pl.DataFrame]:
        for table in list(self.rows):
            self._turn(table)
        return {table: pl.concat(frames, how="diagonal") for table, frames in self.frames.items()}


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    tables = _Tables()
    alike: Counter[bytes] = Counter()
    records = refused = 0
    for line in read_lines(source.path):
        records += 1
        refusals = _add_line(tables, line, source, alike)
        refused += refusals
    frames = tables.done()
    derived = frames.pop("derived", None)
    return Staged(
        records=records,
        tables={name: frame for name, frame in frames.items() if name != "quarantine"},
        by_line=True,
        refused=frames.get("quarantine"),
        refused_records=refused,
        derived=derived if derived is None else derived.select(_DERIVED),
    )


def _add_line(tables: _Tables, line: Line, source: Source, alike: Counter[bytes]) -> bool:
    """Add the rows of one line. True where the line was refused."""
    record = line.value
    if record is None:
        _refuse(tables, line, source, None, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
        return True
    if not is_answer(record):
        missing = "provider" if record.get("provider") is None else "response"
        _refuse(tables, line, source, None, [Refusal(missing, QuarantineReason.MISSING_FIELD)])
        return True
    found = calls(record, source.key, provider=source.provider, model=source.model)
    unreadable = [(call, part) for call in found for part in call.parts if part.flattened.refusals]
    for call, part in unreadable:
        leaves = part.flattened
        _refuse(tables, line, source, call, leaves.refusals, (leaves.shape, leaves.integers(), leaves.texts()))
    if not unreadable:
        for call in found:
            _add_call(tables, line.number, record, call, source, alike)
    return bool(unreadable)


def _refuse(
    tables: _Tables,
    line: Line,
    source: Source,
    call: Call | None,
    refusals: list[Refusal],
    leaves: tuple[str, list[int | None], list[str | None] | None] | None = None,
) -> None:
    shape, integers, texts = leaves or (None, None, None)
    for path, reason in dict.fromkeys(refusals):
        row = {
            "line": line.number,
            "day": call.created.date() if call and call.created else source.day,
            "source": SOURCE,
            "reason": str(reason),
            "path": path,
            "provider": call.attempt["provider"] if call else None,
            "api": call.attempt["api"] if call else None,
            "leaf_shape": shape,
            "leaf_integers": integers,
            "leaf_texts": texts,
        }
        tables.add("quarantine", row)


def _add_call(
    tables: _Tables, number: int, record: Mapping[str, object], call: Call, source: Source, alike: Counter[bytes]
) -> None:
    key, alias = _key(source.key, record, call, alike)
    place = {
        "attempt_hi": key[0],
        "attempt_lo": key[1],
        "day": call.created.date() if call.created else source.day,
        "source": SOURCE,
        "segment_row": number,
    }
    assigned = tenant(source.key, source.tenant)
    tables.add(
        "attempt",
        {
            **place,
            **call.attempt,
            "arrived_at": call.created,
            "undated": call.created is None,
            "tenant": assigned,
            "tenant_key_id": None if assigned == UNASSIGNED else key_id(source.key),
            "task": source.task or UNASSIGNED,
            "route": UNASSIGNED,
        },
    )
    tables.add("derived", {**{name: place[name] for name in _DERIVED[:3]}, "alias_hi": alias[0], "alias_lo": alias[1]})
    for kind, value in call.ids.items():
        tables.add("foreign_id", {**place, "kind": str(kind), "value": value})
    for index, part in enumerate(call.parts):
        row = {
            **place,
            "child": 0,
            "report": 0,
            "part": index,
            "part_kind": str(part.part_kind),
            "provider": call.attempt["provider"],
            "api": call.attempt["api"],
            "model": call.model,
            "reported_at": call.created,
            "ended": str(part.ended),
            "leaf_shape": part.flattened.shape,
            "leaf_integers": part.flattened.integers(),
            "leaf_texts": part.flattened.texts(),
            "notes": [*part.notes, *call.notes] or None,
        }
        tables.add("usage_report", row)


def _key(
    key: bytes, record: Mapping[str, object], call: Call, alike: Counter[bytes]
) -> tuple[tuple[int, int], tuple[int | None, int | None]]:
    """The key of a call, and the alias hash of the id it was made from: the record's, else the answer's, else none."""
    for kind in (ForeignIdKind.RECORD_ID, ForeignIdKind.PROVIDER_RESPONSE_ID):
        if kind in call.ids:
            return keyed_key(key, SOURCE, str(kind), call.ids[kind]), alias_key(key, kind, SOURCE, call.ids[kind])
    content = json.dumps(record, sort_keys=True, default=str, separators=(",", ":")).encode("utf-8", "surrogatepass")
    seen = hashlib.sha256(content).digest()
    occurrence = alike[seen]
    alike[seen] += 1
    return keyed_key(key, SOURCE, content, occurrence), (None, None)


IMPORTER = Importer(
    name="recorded_answers",
    doc="Recorded API calls as JSON Lines: request and whole answer a line; text is read past and never kept.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
