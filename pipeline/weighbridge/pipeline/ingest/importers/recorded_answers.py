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
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.log_heads import heading
from weighbridge.pipeline.ingest.staging import Stage
from weighbridge.pipeline.ingest.tabular import JSONL, kind_of
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.leaves import Refusal

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
    return heading(source.path, read_lines, "list of recorded answers", "Export it again, one object a line, in UTF-8")


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
