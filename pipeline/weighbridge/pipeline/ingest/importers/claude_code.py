"""Session logs of Claude Code, as ccusage reads them: JSON Lines of a conversation, of which only counts are taken.

    {"type": "assistant", "timestamp": "2026-01-15T10:30:00.000Z", "sessionId": ..., "requestId": "req_1",
     "message": {"id": "msg_1", "model": "claude-sonnet-4-5", "stop_reason": null, "usage": {...}, "content": [...]}}

One answer is several lines, one per block of content, each with the usage as it stood then: lines of one (message.id,
requestId) are one call, and the greatest output is its last. Working folders, branches, texts and sessions are read
past. What the tool itself wrote in place of an answer (model `<synthetic>`) is no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.log_files import joined
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.log_leaves import COST, named_leaves
from weighbridge.pipeline.ingest.parts import Part, parts_of
from weighbridge.pipeline.ingest.record_fields import at, id_of, iso_time, name_of, refused_time
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import AttemptStatus, Ended, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "claude-code"
PROVIDER, API = "anthropic", "anthropic_messages"
_SYNTHETIC = "<synthetic>"


@dataclass(slots=True)
class _Answer:
    """The line that stands for an answer so far; its text is let go where ids name it."""

    number: int
    call: Call
    content: Mapping[str, object]
    output: int


def _is_call(record: Mapping[str, object]) -> bool:
    """Whether a line is about a call of the API: an answer with usage that the tool did not write itself."""
    if record.get("type") not in (None, "assistant") or at(record, "message", "usage") is None:
        return False
    return at(record, "message", "model") != _SYNTHETIC


def _recognises(path: Path) -> bool:
    return recognised(path, read_lines, _is_session)


def _is_session(record: Mapping[str, object]) -> bool:
    told = record.get("type") == "assistant" or "sessionId" in record or "requestId" in record
    return told and "timestamp" in record and isinstance(at(record, "message", "usage"), Mapping)


def _check(source: Source) -> Heading:
    return heading(source.path, read_lines, "session log", "Copy it again, one object a line")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage = Stage(source, SOURCE)
    records = 0
    answers: dict[object, _Answer] = {}
    for line in read_lines(source.path):
        if line.value is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
            records += 1
        elif _is_call(line.value):
            records += 1
            _keep(answers, line.number, line.value, stage)
    for answer in answers.values():
        stage.add(answer.number, [answer.call], answer.content)
    return stage.staged(records)


def _keep(answers: dict[object, _Answer], number: int, record: Mapping[str, object], stage: Stage) -> None:
    """Take a line as that of its answer, if it is the last of it so far: running totals only grow."""
    call = _call(record, stage.source)
    if call.unreadable:
        stage.add(number, [call], record)  # it goes to quarantine, the other lines of the answer stand
        return
    output = at(record, "message", "usage", "output_tokens")
    told = _Answer(number, call, {} if call.ids else record, output if isinstance(output, int) else -1)
    key = call.ids.get(ForeignIdKind.RECORD_ID, number)
    held = answers.get(key)
    if held is not None:
        stage.repeat()
    if held is None or told.output >= held.output:
        answers[key] = told


def _call(record: Mapping[str, object], source: Source) -> Call:
    notes: list[str] = []
    message = record.get("message")
    model = name_of(at(message, "model"), notes) or source.model
    created = iso_time(record.get("timestamp"))
    reason = finish_reason([message])
    attempt: dict[str, object] = {
        "provider": source.provider or PROVIDER,
        "api": API,
        "model_served": model,
        "stream": True,
        "status": str(AttemptStatus.SUCCEEDED),
        "finish_reason": reason,
        "usage_expected": True,
    }
    ended = Ended.COMPLETE if reason is not None else Ended.UNKNOWN
    (part,) = parts_of(API, usage=at(message, "usage"), key=source.key, ended=ended)
    part.flattened.refusals.extend(refused_time(record.get("timestamp"), created))
    return Call(attempt, [_with_cost(part, record)], _ids(record, notes), tuple(dict.fromkeys(notes)), model, created)


def _with_cost(part: Part, record: Mapping[str, object]) -> Part:
    """The part with what an older release says it cost: evidence, never an amount of ours."""
    cost = named_leaves({COST: record.get(COST)})
    if not cost.leaves and not cost.refusals:
        return part
    return replace(part, flattened=joined(part.flattened, cost))


def _ids(record: Mapping[str, object], notes: list[str]) -> dict[ForeignIdKind, str]:
    """What names an answer: the message with its request, as a message that is replayed has another request."""
    message = id_of(at(record, "message", "id"), notes)
    request = id_of(record.get("requestId"), notes)
    if message is None:
        return {}
    found = {}
    named = message if request is None else f"{message}/{request}"
    if id_of(named, notes):
        found[ForeignIdKind.RECORD_ID] = named
    return found | {ForeignIdKind.PROVIDER_RESPONSE_ID: message}


IMPORTER = Importer(
    name="claude_code",
    doc="Session logs of Claude Code: one call per message and request, with its last counts; nothing else is read.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
