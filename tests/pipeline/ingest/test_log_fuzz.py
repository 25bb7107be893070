"""Whatever stands where in a log: it is read or refused, nothing escapes, and each record is accounted for."""

from __future__ import annotations

import copy
import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.ingest.gateway_samples import observation, request, run, run_id, spend
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
from tests.sampling import examples

from weighbridge.pipeline.ingest.batch import OF_A_LINE
from weighbridge.pipeline.ingest.importer import Source, importers
from weighbridge.schemas.errors import ContractError

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "otel_spans": [
        export(span(1, chat(9, 1, response__id="r")), span(2, chat(9, 1), 1)),
        {"name": "x", "context": {"trace_id": "0x1", "span_id": "0x2"}, "parent_id": None, "attributes": chat(1, 2)},
        {"ai.operationId": "ai.embed", "ai.usage.tokens": 3, "llm.token_count.prompt": 3},
    ],
    "claude_code": [message(1, 9, "end_turn", costUSD=0.5), message(1, 12)],
    "bedrock_invocations": [invocation(1), invocation(2, errorCode="ThrottlingException")],
    "litellm": [
        spend(1),
        spend(2, cache_hit="True", spend=0),
        spend(3, metadata={"usage_object": {"prompt_tokens": 13}}),
    ],
    "langfuse": [observation(1), observation(2, parentObservationId=f"{1:016x}"), observation(3, usageDetails={})],
    "langsmith": [run(1, run_type="chain", child_runs=[run(2, parent_run_id=run_id(1))]), run(3)],
    "helicone": [request(1), request(2, organization_id="x", latency=9)],
    "usage_pages": [page([completions(), completions(model=None)], more=True), messages_report(messages())],
    "token_logs": [
        {
            "id": "r",
            "prompt_tokens": 3,
            "prompt_token_ids": [5, 6, 7],
            "output_token_ids": [9],
            "timestamp": 1_768_473_000,
        },
        {"prompt_tokens": ["a", "b"], "output_tokens": 2, "finish_reason": "stop", "model": "m", "tenant": "t"},
    ],
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "x", "1", "-5", "1e999", "9" * 50, "0x", "2026-13-45T99:99:99Z", "\ud800", "a b"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["usage", "key", "value", "input_tokens", "a b"]), st.integers(0, 3), max_size=2),
)


@st.composite
def spoiled(draw: st.DrawFn, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines with one to three values replaced, wherever they stand."""
    out = copy.deepcopy(lines)
    for _ in range(draw(st.integers(1, 3))):
        at: Any = draw(st.sampled_from(out))
        while True:
            places = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            if isinstance(at[place], (dict, list)) and at[place] and draw(st.integers(0, 4)):
                at = at[place]
                continue
            at[place] = draw(ODD)
            break
    return out


@pytest.mark.parametrize("name", SAMPLES)
@settings(
    max_examples=examples(15, 60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_spoiled_record_is_read_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    lines = data.draw(spoiled(SAMPLES[name]))
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    importer, source = importers()[name], Source(path, bytes(32), date(2026, 1, 15))
    assert importer.recognises(path) in {True, False}
    try:
        staged = importer.read(source, importer.check(source))
    except ContractError as error:
        assert str(path) in str(error)  # noqa: PT017 - most lines can be read, some files cannot
        return
    stored = [staged.tables[table]["segment_row"] for table in OF_A_LINE if table in staged.tables]
    records = pl.concat(stored).n_unique() if stored else 0
    assert staged.records == records + staged.refused_records + staged.repeated
    if staged.refused is not None:
        assert staged.refused["line"].n_unique() == staged.refused_records
