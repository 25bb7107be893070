"""HTTP calls of model servers as a client recorded them, JSON Lines: request, answer, times, and who went away.

    {"request": {"path": "/v1/completions", "headers": {...}, "body": {...}},
     "response": {"status": 200, "body": {...}},
     "client": {"t_start_unix": 1795970133.7304, "first_byte_ms": 90.3, "end_ms": 90.9, "aborted": false}}

Calls of other paths (tokenising, health, administration) are no records. Texts and ids of tokens are read past.
"""

from __future__ import annotations

from pathlib import Path

from weighbridge.pipeline.ingest.http_calls import answer_of, call_of, choices_in, is_call, unreadable
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.pipeline.ingest.with_children import Children
from weighbridge.schemas.enumerations import ChildKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "http-client"


def _recognises(path: Path) -> bool:
    return recognised(path, read_lines, is_call)


def _check(source: Source) -> Heading:
    return heading(source.path, read_lines, "record of HTTP calls", "Record it again, one call a line")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage, children = Stage(source, SOURCE), Children(SOURCE, source.day)
    records = 0
    for line in read_lines(source.path):
        if line.value is None:
            stage.refuse(line.number, unreadable(line.reason))
            records += 1
            continue
        if not is_call(line.value):
            stage.refuse(line.number, [Refusal("request", QuarantineReason.MISSING_FIELD)])
            records += 1
            continue
        call = call_of(line.value, source)
        if call is None:
            continue
        records += 1
        if not isinstance(call, Call):
            stage.refuse(line.number, call)
            continue
        stage.add(line.number, [call], line.value)
        several = choices_in(answer_of(line.value)) or 0
        if several > 1 and not call.unreadable:
            about = {"kind": str(ChildKind.CHOICE), "model": call.model}
            children.add(line.number, call.created, [about] * several)
    return children.beside(stage.staged(records))


IMPORTER = Importer(
    name="http_calls",
    doc="HTTP calls of a model server as its client recorded them: usage, parameters, times and who went away.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
