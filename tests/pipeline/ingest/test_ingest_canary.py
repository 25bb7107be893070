"""No word of a prompt or an answer, of a name or a note gets further than the file it came in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.ingest.gateway_samples import observation, request, run, spend

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.segment import sha256_file

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Row = Callable[..., dict[str, object]]
CANARY = "a canary sings in the mine"
WORD = "canary"
# What is pattern-checked and meant to be kept: identifiers, model names and the names of systems.
NO_TEXT = {"id", "provider", "api_flavor", "model", "response_model", "response_id", "api"}


def bytes_with_the_word(folder: Path | str) -> list[Path]:
    """Files below a folder that hold the word: in the clear, or in the values of a Parquet file."""
    found = []
    for path in Path(folder).rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet":
            data += repr(pq.read_table(path).to_pydict()).encode()
        if WORD.encode() in data or WORD.upper().encode() in data:
            found.append(path)
    return found


def with_canaries(value: object, name: str = "") -> object:
    """The same record with the canary in every text that is not checked by a pattern, and under extra keys."""
    if isinstance(value, dict):
        return {k: with_canaries(v, k) for k, v in value.items()} | {f"{CANARY} {len(value)}": CANARY, CANARY: 7}
    if isinstance(value, list):
        return [with_canaries(item, name) for item in value] + [CANARY]
    return value if name in NO_TEXT or not isinstance(value, str) else CANARY


ANSWERS: list[dict[str, object]] = [
    {
        "id": "r_1",
        "provider": "openai",
        "api_flavor": "openai_chat",
        "model": "gpt-4o",
        "path": "/v1/chat",
        "status": 200,
        "request": {"messages": [{"role": "user", "content": "x"}], "stop": ["x"], "user": "x", "max_tokens": 5},
        "response": {
            "id": "chatcmpl-1",
            "created": 1768473000,
            "choices": [{"message": {"content": "x", "refusal": "x"}, "finish_reason": "x"}],
            "usage": {"prompt_tokens": 1, "service_tier": "x", "details": {"note": "x"}, "cost": "x", "type": "x"},
        },
        "meta_headers": {"x-warning": "x", "x-amzn-bedrock-invocation-latency": "x"},
        "source_repo": "x",
        "source_path": "x",
    },
    {
        "id": "r_2",
        "provider": "anthropic",
        "api_flavor": "anthropic_messages",
        "stream": True,
        "status": 200,
        "request": {"system": "x", "tools": [{"description": "x"}]},
        "response": [
            {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "inference_geo": "x"}}},
            {"type": "content_block_delta", "delta": {"text": "x"}},
            {"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": {"output_tokens": 2}},
            {"error": {"message": "x"}},
        ],
    },
]


def test_recorded_answers(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    lines: list[object] = [with_canaries(answer) for answer in ANSWERS]
    assert json.dumps(lines).count(CANARY) > 50
    refused = with_canaries(ANSWERS[0])
    assert isinstance(refused, dict)
    refused |= {"id": "r_3", "response": {"usage": {"prompt_tokens": CANARY, CANARY: 1.5}}}
    lines += [
        refused,
        {"provider": CANARY, "api": CANARY, "model": CANARY, "id": CANARY, "response": {"id": CANARY}},
        {CANARY: CANARY},
        CANARY.encode(),
        b'{"' + CANARY.encode() + b'": 1, "' + CANARY.encode() + b'": 2}',
        json.dumps([CANARY]).encode(),
    ]
    (file,) = take([jsonl("a.jsonl", lines)], lake, tenant=CANARY).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 3, 5)
    assert bytes_with_the_word(lake.root) == []
    assert lake.rows("usage_report") == 3


def test_mapped_tables(lake: Lake, take: Take, tmp_path: Path) -> None:
    names = [
        "in",
        "tier",
        "cost",
        "team",
        "task",
        "route",
        "model",
        "rid",
        "state",
        "at",
        "aid",
        "code",
        "note",
        "temp",
    ]
    mapping = tmp_path / "m.toml"
    mapping.write_text(
        '[source]\nname = "acme"\napi = "openai_chat"\n[columns]\ntenant = "team"\ntask = "task"\nroute = "route"\n'
        'model = "model"\nrecord_id = "rid"\nstatus = "state"\ntime = "at"\nattempt_id = "aid"\nhttp_status = "code"\n'
        'temperature = "temp"\n[leaves]\n"usage.prompt_tokens" = "in"\n"usage.service_tier" = "tier"\n'
        '"usage.cost" = "cost"\n'
    )
    kept = ["5", CANARY, CANARY, CANARY, CANARY, CANARY, CANARY, CANARY, "failed", "", "", "200", CANARY, "0.5"]
    rows = [kept]
    for name in ("in", "state", "at", "aid", "code", "temp"):
        rows.append([CANARY if names[at] == name else value for at, value in enumerate(kept)])
    rows.append([CANARY])
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *(",".join(row) for row in rows)]) + "\n")
    (file,) = take([tmp_path / "t.csv"], lake, mapping=mapping).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 1, 7)
    objects = [dict(zip(names, row, strict=False)) for row in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(line) for line in objects) + f"\n{CANARY}\n")
    take([tmp_path / "t.jsonl"], lake, mapping=mapping)
    pq.write_table(pa.Table.from_pylist(objects[:-1]), tmp_path / "t.parquet")
    take([tmp_path / "t.parquet"], lake, mapping=mapping)
    assert lake.rows("segment") == 3
    assert bytes_with_the_word(lake.root) == []


@pytest.mark.parametrize(
    "record", [spend(1), observation(1), run(1), request(1)], ids=["litellm", "langfuse", "langsmith", "helicone"]
)
def test_logs_of_gateways_and_tracers(record: dict[str, object], lake: Lake, take: Take, jsonl: Jsonl) -> None:
    """Every text of a record takes the canary, one at a time, all at once, and under keys that nobody knows."""
    texts = [name for name, value in record.items() if isinstance(value, str)]
    lines = [record, record | {f"{CANARY} {n}": CANARY for n in range(3)}]
    lines += [record | {name: CANARY} for name in record]
    lines += [record | {name: with_canaries(record[name]) for name in record if name not in texts}]
    (file,) = take([jsonl("a.jsonl", lines)], lake, tenant=CANARY).files
    assert file.rows_in == file.rows_out + file.rows_quarantined + file.rows_duplicate
    assert file.rows_out > 0
    assert bytes_with_the_word(lake.root) == []


def test_token_traces(lake: Lake, take: Take, tmp_path: Path) -> None:
    good = "2026-01-15 10:30:00,1,2"
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens,Note", f"{good},{CANARY}", f"{CANARY},1,2,x", f"x,{CANARY},1,1"]
    (tmp_path / "t.csv").write_text("\n".join([*lines, CANARY]) + "\n")
    (file,) = take([tmp_path / "t.csv"], lake).files
    assert (file.importer, file.rows_out, file.rows_quarantined) == ("azure_trace", 1, 3)
    assert bytes_with_the_word(lake.root) == []


@pytest.fixture
def tables(attempt: Row, report: Row) -> dict[str, dict[str, object]]:
    """One good row per table that a segment may bring and that has columns for text."""
    place = {"attempt_hi": 1001, "attempt_lo": -5001, "day": attempt(1)["day"], "source": "agent-1"}
    request = {"request_hi": 1, "request_lo": 2, "scope": 0, "day": place["day"], "source": "agent-1", "revision": 0}
    return {
        "attempt": attempt(1),
        "usage_report": report(1),
        "child": {**place, "child": 1, "kind": "choice", "revision": 0},
        "foreign_id": {**place, "kind": "record_id", "value": "r-1"},
        "alias": {**place, "alias_hi": 1, "alias_lo": 2, "kind": "record_id"},
        "gap": {"day": place["day"], "source": "agent-1", "reason": "quota", "attempts": 1},
        "quarantine": {
            "line": 1,
            "day": place["day"],
            "source": "agent-1",
            "importer": "agent",
            "reason": "type",
            "segment": "0" * 64,
        },
        "request_scope": {
            **request,
            "stage": "request",
            "tenant": "unassigned",
            "task": "x",
            "route": "x",
            "status": "succeeded",
        },
        "strategy": {
            "strategy_id": "0" * 32,
            "name": "x",
            "family": "x",
            "token_events": True,
            "parameters": '{"ratio": 0.5, "kind": "knorm"}',
        },
        "invoice_line": {
            "invoice_id": "i",
            "line_id": "1",
            "provider": "p",
            "category": "Usage",
            "revision": 0,
            "period_start": attempt(1)["arrived_at"],
            "period_end": attempt(1)["arrived_at"],
        },
        "usage_period": {
            "cell_hi": 1,
            "cell_lo": 2,
            "day": place["day"],
            "source": "agent-1",
            "provider": "p",
            "api": "a",
            "period_start": attempt(1)["arrived_at"],
            "period_end": attempt(1)["arrived_at"],
            "tenant": "unassigned",
            "provisional": False,
            "verdict": "UNKNOWN",
            "leaf_shape": "",
            "revision": 0,
        },
        "engine_counter": {
            "cell_hi": 1,
            "cell_lo": 3,
            "day": place["day"],
            "source": "agent-1",
            "engine": "vllm",
            "series": "0" * 32,
            "counter": "prompt_tokens",
            "metric": "vllm:prompt_tokens_total",
            "value": 1,
            "undated": False,
            "revision": 0,
        },
    }


def test_sealed_segments_column_by_column(
    lake: Lake, take: Take, tmp_path: Path, tables: dict[str, dict[str, object]]
) -> None:
    """Every text column of every table takes the canary once, behind the back of our own writer."""
    from weighbridge.schemas.tables import TABLES  # noqa: PLC0415 - used here alone

    folder = tmp_path / "f.segment"
    folder.mkdir()
    rows_in, files = 0, []
    for table, good in tables.items():
        texts = [c.name for c in TABLES[table].columns if pa.types.is_string(c.type)]
        lists = [c.name for c in TABLES[table].columns if c.type == pa.list_(pa.string())]
        rows = [good]
        rows += [good | {name: CANARY} for name in texts]
        rows += [good | {name: [CANARY]} for name in lists]
        if table == "strategy":
            rows += [
                good | {"parameters": json.dumps({"note": CANARY})},
                good | {"parameters": json.dumps({CANARY: 1})},
            ]
        pq.write_table(
            pa.Table.from_pylist(rows, schema=TABLES[table].schema().remove_metadata()), folder / f"{table}.parquet"
        )
        path = folder / f"{table}.parquet"
        files.append({"table": table, "rows": len(rows), "bytes": path.stat().st_size, "sha256": sha256_file(path)})
        rows_in += len(rows)
    manifest = {"format": "weighbridge segment", "schema_version": 1, "writer": "agent-1", "end": "complete"}
    manifest |= {"labels": {"note": CANARY}, "key_id": CANARY, "sequence_first": None, "sequence_last": None}
    (folder / "manifest.json").write_text(json.dumps(manifest | {"files": files}))
    (file,) = take([folder], lake).files
    assert file.rows_in == rows_in
    assert file.rows_out == len(tables)  # the good rows, and of them alone
    assert bytes_with_the_word(lake.root) == []


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("a.jsonl", CANARY, {"importer": "recorded_answers"}),
        ("a.jsonl", json.dumps({CANARY: CANARY}), {}),
        ("a.csv", f'x,y\n1,"{CANARY}\n', {"importer": "azure_trace"}),
        ("a.csv", f"{CANARY},1,2\n{CANARY},3,4\n", {"importer": "azure_trace"}),  # a table without a header
        ("a.parquet", CANARY, {"importer": "mapped"}),
    ],
)
def test_no_error_quotes_what_a_file_holds(
    lake: Lake, take: Take, tmp_path: Path, name: str, content: str, more: dict[str, object]
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(WeighbridgeError) as caught:
        take([tmp_path / name], lake, **more)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert WORD not in str(seen)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


@pytest.mark.parametrize("name", [f"{CANARY}.jsonl", os.fsdecode(b"canary\xff.jsonl")])
def test_the_name_of_a_file_is_kept_only_where_it_is_a_name(lake: Lake, take: Take, jsonl: Jsonl, name: str) -> None:
    (file,) = take(
        [
            jsonl(name, [ANSWERS[0]]),
        ],
        lake,
    ).files
    assert (file.name, file.rows_out) == (name, 1)
    assert lake.scan("segment").collect()["name"].to_list() == ["unnamed"]
    assert bytes_with_the_word(lake.root) == []
