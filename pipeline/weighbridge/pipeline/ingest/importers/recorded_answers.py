"""Recorded answers: JSON Lines with one API call a line, request and whole answer in it; only numbers are taken out.

    {"id": "r_1", "provider": "openai", "api_flavor": "openai_chat", "model": "gpt-4o", "stream": false,
     "status": 200, "request": {...}, "response": {... the body, or a list of events}, "meta_headers": {...}}

`events` may stand for `response`, or `usage` alone. `calls_in_record` above 1 says that the events of several calls
stand one after the other. Files may be gzip-compressed.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from weighbridge.pipeline.ingest.answers import calls, is_answer
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import opened, read_lines
from weighbridge.pipeline.ingest.staging import Stage
from weighbridge.pipeline.ingest.tabular import JSONL, kind_of
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.segment import sha256_file

SOURCE = "recorded-answers"
_PEEK = 20


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


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    for line in read_lines(source.path):
        records += 1
        record = line.value
        if record is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
        elif not is_answer(record):
            missing = "provider" if record.get("provider") is None else "response"
            stage.refuse(line.number, [Refusal(missing, QuarantineReason.MISSING_FIELD)])
        else:
            stage.add(line.number, calls(record, source.key, provider=source.provider, model=source.model), record)
    return stage.staged(records)


IMPORTER = Importer(
    name="recorded_answers",
    doc="Recorded API calls as JSON Lines: request and whole answer a line; text is read past and never kept.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
