"""Finished requests of a vLLM engine, JSON Lines: one `FinishedRequestStats` a line, as a stat logger wrote it.

    {"request_id": "cmpl-r-1-0", "iteration_timestamp": 1795970133.8155, "e2e_latency": 0.083972, "finish_reason": "length",
     "num_prompt_tokens": 401, "num_generation_tokens": 20, "num_cached_tokens": 0, "num_preemptions": 0}

They are what the engine computed, and no usage report. A request that was aborted has no line.
"""  # noqa: E501 - a record as it stands

from __future__ import annotations

from pathlib import Path

from weighbridge.pipeline.ingest.http_calls import unreadable
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.staging import Stage
from weighbridge.pipeline.ingest.vllm_requests import Finished, call_of, calls_of, children_of, finished, is_finished
from weighbridge.pipeline.ingest.with_children import Children
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "vllm-engine"


def _recognises(path: Path) -> bool:
    return recognised(path, read_lines, is_finished)


def _check(source: Source) -> Heading:
    return heading(source.path, read_lines, "list of finished requests", "Write it again, one request a line")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    stage, children = Stage(source, SOURCE), Children(SOURCE, source.day)
    records, held = 0, []
    for line in read_lines(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, unreadable(line.reason))
        elif not is_finished(line.value):
            stage.refuse(line.number, [Refusal("request_id", QuarantineReason.MISSING_FIELD)])
        else:
            request = finished(line.number, line.value)
            if isinstance(request, Finished):
                held.append(request)
            else:
                stage.refuse(line.number, request)
    for call in calls_of(held):
        number, told = call[0].number, call_of(call, source)
        stage.add(number, [told], call[0].record)
        children.add(number, told.created, children_of(call, source))
        for _ in call[1:]:
            stage.repeat()  # its own line, the same call: its row is that of the call's child
    return children.beside(stage.staged(records))


IMPORTER = Importer(
    name="vllm_requests",
    doc="Finished requests of a vLLM engine as a stat logger writes them: what was computed for each call and choice.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
