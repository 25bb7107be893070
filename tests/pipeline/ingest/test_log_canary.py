"""Spans, session logs, invocation logs and usage pages are full of words; none of them gets into the lake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.ingest.log_samples import (
    chat,
    completions,
    export,
    invocation,
    message,
    messages,
    messages_report,
    page,
    span,
)
from tests.pipeline.ingest.test_ingest_canary import CANARY, bytes_with_the_word

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
SPAN = span(
    1, chat(5, 6, response__id="r1") | {"gen_ai.prompt.0.content": "x", "user.id": "x", "gen_ai.tool.name": "x"}
)
LINES: dict[str, list[dict[str, object]]] = {
    "otel_spans": [
        export(SPAN, service_name="x"),
        {"name": "x", "context": {"trace_id": "x", "span_id": "x"}, "attributes": chat(5, 6)},
        {"llm.token_count.prompt": 3, "llm.input_messages.0.message.content": "x", "input.value": "x"},
    ],
    "claude_code": [message(1, 5, "end_turn"), message(2, 6)],
    "bedrock_invocations": [invocation(1), invocation(2, errorCode="x")],
    "usage_pages": [page([completions(user_id="x", size="x")]), messages_report(messages(inference_geo="x"))],
}
# What makes a record one of its log, and what is a number or identifier that is meant to be kept.
FORM = {
    *("schemaType", "object", "starting_at", "ending_at", "type", "timestamp", "intValue", "doubleValue", "key"),
    *("startTimeUnixNano", "endTimeUnixNano", "traceId", "spanId", "parentSpanId"),
}


def sprinkled(value: object, name: str = "") -> object:
    """The same record with the word in every text that is not its form, and under further keys."""
    if isinstance(value, dict):
        return {k: sprinkled(v, k) for k, v in value.items()} | {f"{CANARY} 1": CANARY, CANARY: 7}
    if isinstance(value, list):
        return [sprinkled(item, name) for item in value]
    return CANARY if isinstance(value, str) and name not in FORM else value


@pytest.mark.parametrize("importer", LINES)
def test_no_word_of_a_log_gets_into_the_lake(lake: Lake, take: Take, tmp_path: Path, importer: str) -> None:
    """Whole, with the word in every text at once, and with it in one text at a time."""
    lines: list[object] = [sprinkled(line) for line in LINES[importer]]
    for line in LINES[importer]:
        lines += spoiled(line)
    path = tmp_path / f"{CANARY}.jsonl"
    path.write_text("\n".join([*map(json.dumps, lines), CANARY, f'{{"{CANARY}": "{CANARY}']) + "\n", encoding="utf-8")
    (file,) = take([path], lake, importer=importer).files
    assert file.rows_in == file.rows_out + file.rows_quarantined + file.rows_duplicate
    assert file.rows_quarantined >= 2
    assert file.rows_out > 2
    assert bytes_with_the_word(lake.root) == []


def spoiled(line: object) -> list[object]:
    """The line once for each text in it, with that text replaced."""
    texts = [path for path, value in leaves(line, ()) if isinstance(value, str)]
    return [replaced(line, path) for path in texts]


def leaves(value: object, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in leaves(item, (*path, name))]
    if isinstance(value, list):
        return [found for at, item in enumerate(value) for found in leaves(item, (*path, at))]
    return [(path, value)]


def replaced(line: object, path: tuple[str | int, ...]) -> object:
    copy = json.loads(json.dumps(line))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = CANARY
    return copy
