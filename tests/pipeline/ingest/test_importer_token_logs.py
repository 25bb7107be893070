"""Home-made token logs: counts are kept, ids are encrypted or lost and said so, texts are dropped. All constructed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import KEY
from tests.pipeline.ingest.test_ingest_canary import CANARY, bytes_with_the_word

from weighbridge.pipeline.content.blocks import open_day
from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.ingest.importers.token_logs import IMPORTER, SOURCE
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.ingest.token_fields import FIELDS
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.found import of_attempts
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.validate.retry import retry
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.keys import KeyFolder

Take = Callable[..., IngestResult]
Write = Callable[..., Path]
DAY = date(2026, 1, 15)
# Ids whose four bytes are a word, so that they can be looked for.
WORD = int.from_bytes(b"sing", "little")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def record(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "request_id": f"r-{number}",
        "model": "m",
        "prompt": "what was asked",
        "prompt_tokens": 3,
        "prompt_token_ids": [5, 6, WORD],
        "text": "what was said",
        "output_tokens": 2,
        "output_token_ids": [WORD, number],
        "finish_reason": "stop",
        "timestamp": "2026-01-15T10:30:00Z",
        **more,
    }


def only(lake: Lake, table: str) -> dict[str, Any]:
    return lake.scan(table).collect().row(0, named=True)


def test_counts_are_the_engines_and_no_report(take: Take, jsonl: Write, lake: Lake, keys: KeyFolder) -> None:
    take([jsonl("log.jsonl", [record(num_cached_tokens=2, engine="vllm", engine_version="0.32.0")])], lake, keys=keys)
    row = only(lake, "attempt")
    assert {name: row[name] for name in ("source", "model_served", "framework", "framework_version", "status")} == {
        "source": SOURCE,
        "model_served": "m",
        "framework": "vllm",
        "framework_version": "0.32.0",
        "status": "succeeded",
    }
    assert (row["input_computed"], row["output_computed"], row["cached_local"], row["ids_expected"]) == (3, 2, 2, 5)
    assert row["arrived_at"] == datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
    assert lake.rows("usage_report") == 0


@pytest.mark.parametrize(("provider", "framework"), [("sglang", "sglang"), ("openai", None)])
def test_a_provider_stands_in_for_the_engine_only_where_it_is_one(
    provider: str, framework: str | None, take: Take, jsonl: Write, lake: Lake, keys: KeyFolder
) -> None:
    take([jsonl("log.jsonl", [record()])], lake, keys=keys, provider=provider)
    assert only(lake, "attempt")["framework"] == framework


def test_ids_open_with_the_keys_of_the_installation(take: Take, jsonl: Write, lake: Lake, keys: KeyFolder) -> None:
    take([jsonl("log.jsonl", [record(1), record(2, tenant="acme"), record(3)])], lake, keys=keys)
    rows = lake.scan("token_run").collect()
    attempts = lake.scan("attempt").collect()
    assert rows.join(attempts, on=["attempt_hi", "attempt_lo"], how="semi").height == rows.height == 6
    held = {}
    for block in open_day(rows, keys):
        assert block.shut is None
        for run in block.rows.iter_rows(named=True):
            begin = run["block_offset"]
            held[run["attempt_lo"], run["stream"]] = block.ids[begin : begin + run["length"]].tolist()
    outputs = sorted(ids for (_, stream), ids in held.items() if stream == "output")
    assert outputs == [[WORD, 1], [WORD, 2], [WORD, 3]]
    assert [ids for (_, stream), ids in held.items() if stream == "prompt"] == [[5, 6, WORD]] * 3
    assert len(keys.names()) == 2


def test_without_a_key_ids_are_lost_and_that_is_said(take: Take, jsonl: Write, lake: Lake) -> None:
    take([jsonl("log.jsonl", [record()])], lake)
    assert (lake.rows("token_run"), only(lake, "attempt")["ids_expected"]) == (0, None)
    gap = only(lake, "gap")
    assert (gap["reason"], gap["attempts"], gap["tokens"]) == ("no_key", 1, 5)
    assert gap["attempt_lo"] == only(lake, "attempt")["attempt_lo"]


def test_a_provider_that_cannot_give_a_key_is_none(take: Take, jsonl: Write, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    take([jsonl("log.jsonl", [record()])], lake, keys=KeyFolder(tmp_path / "file" / "keys"))
    assert lake.rows("token_run") == 0
    assert lake.scan("gap").collect()["tokens"].sum() == 5


@pytest.mark.parametrize("keyed", [True, False])
def test_no_text_and_no_id_lies_in_clear(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder, tmp_path: Path, keyed: bool
) -> None:
    words = dict.fromkeys(("prompt", "text", "output", "messages", "user", CANARY), CANARY)
    ids = {"prompt_token_ids": [WORD] * 40, "output_token_ids": [WORD] * 50, "prompt_tokens": [CANARY] * 40}
    lines = [record(1, **words, **ids), record(2, **ids, model=CANARY, tenant=CANARY, task=CANARY)]
    take([jsonl("log.jsonl", lines)], lake, keys=keys if keyed else None)
    assert lake.rows("attempt") == 2
    assert bytes_with_the_word(Path(lake.root)) == []
    for path in Path(lake.root).rglob("*"):
        if path.is_file():
            assert b"singsing" not in path.read_bytes(), path
    for name in ("token_run", "child", "attempt"):
        frame = lake.scan(name).collect()
        assert WORD not in {value for row in frame.select(pl.col(pl.Int64, pl.Int32)).iter_rows() for value in row}


def test_a_list_of_token_strings_is_counted_and_dropped(take: Take, jsonl: Write, lake: Lake) -> None:
    take([jsonl("log.jsonl", [record(prompt_tokens=["what", " was", " asked"], output_tokens=None)])], lake)
    row = only(lake, "attempt")
    assert (row["input_computed"], row["output_computed"]) == (3, 2)


def test_the_same_file_and_the_same_records_again_change_nothing(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder
) -> None:
    take([jsonl("log.jsonl", [record(1), record(2)])], lake, keys=keys)
    tables = ("attempt", "child", "token_run", "quarantine")
    before = {name: lake.digest(name) for name in tables}
    take([jsonl("again.jsonl", [record(2), record(1), record(1)])], lake, keys=keys)
    assert {name: lake.digest(name) for name in tables} == before
    rows = lake.scan("segment").filter(pl.col("name") == "again.jsonl").collect().row(0, named=True)
    assert (rows["rows_in"], rows["rows_out"], rows["rows_quarantined"], rows["rows_duplicate"]) == (3, 0, 0, 3)


@pytest.mark.parametrize(
    ("more", "path", "reason"),
    [
        ({"output_token_ids": [1, "two"]}, "output_ids", "type"),
        ({"output_token_ids": [[1], 2]}, "output_ids", "type"),
        ({"output_token_ids": [[1], [2**32]]}, "output_ids", "range"),
        ({"output_tokens": [2, -1]}, "output_count", "range"),
        ({"output_token_ids": [True]}, "output_ids", "type"),
        ({"prompt_token_ids": [-1]}, "prompt_ids", "range"),
        ({"prompt_token_ids": [2**32]}, "prompt_ids", "range"),
        ({"output_tokens": "2"}, "output_count", "type"),
        ({"output_tokens": -2}, "output_count", "range"),
        ({"output_tokens": 2**63}, "output_count", "range"),
        ({"num_cached_tokens": 1.5}, "cached_count", "type"),
    ],
)
def test_what_is_no_count_and_no_id_goes_to_quarantine(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder, more: dict[str, Any], path: str, reason: str
) -> None:
    file = take([jsonl("log.jsonl", [record(1, **more), record(2)])], lake, keys=keys).files[0]
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (2, 1, 1)
    row = only(lake, "quarantine")
    assert (row["line"], row["path"], row["reason"]) == (0, path, reason)


def test_a_count_that_is_not_the_number_of_ids_is_a_finding(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder
) -> None:
    take(
        [jsonl("log.jsonl", [record(1), record(2, output_tokens=7), record(3, output_token_ids=None)])], lake, keys=keys
    )
    found = [f for f in reconcile(lake).findings if f.code == "ids_differ_from_count"]
    assert [(dict(f.subject), f.rows, f.expected, f.observed) for f in found] == [
        ({"source": SOURCE, "model": "m", "direction": "output"}, 1, 7, 2)
    ]
    assert of_attempts.TOKEN_LOGS == SOURCE


@pytest.mark.parametrize(
    "other",
    [
        {"input_ids": [5, 6, WORD], "token_ids": [WORD, 1], "num_prompt_tokens": 3, "num_generated_tokens": 2},
        {"input_token_ids": [5, 6, WORD], "completion_token_ids": [WORD, 1], "input_tokens": 3, "completion_tokens": 2},
    ],
)
def test_other_names_of_the_same_fields(take: Take, jsonl: Write, lake: Lake, other: dict[str, Any]) -> None:
    take([jsonl("log.jsonl", [{"id": "r", **other}])], lake)
    row = only(lake, "attempt")
    assert (row["input_computed"], row["output_computed"]) == (3, 2)


def test_a_mapping_file_names_what_is_called_otherwise(take: Take, jsonl: Write, lake: Lake, tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text('[fields]\noutput_ids = "gen.ids"\noutput_count = "gen.n"\n', encoding="utf-8")
    path = jsonl("log.jsonl", [{"prompt_token_ids": [1, 2], "gen": {"ids": [4, 5, 6], "n": 3}}])
    take([path], lake, importer="token_logs", mapping=mapping)
    row = only(lake, "attempt")
    assert (row["input_computed"], row["output_computed"]) == (2, 3)


@pytest.mark.parametrize(
    "text", ["[fields]\nids = 'x'\n", "[fields]\nid = 3\n", "other = 1\n", "[fields\n", "[fields]\n[more]\n"]
)
def test_a_mapping_that_cannot_be_used_says_what_is_allowed(jsonl: Write, tmp_path: Path, text: str) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text(text, encoding="utf-8")
    source = Source(jsonl("log.jsonl", [record()]), bytes(32), DAY, mapping=mapping)
    with pytest.raises(ConfigError, match=r"m\.toml"):
        IMPORTER.check(source)


SEVERAL: list[dict[str, Any]] = [
    {"output_token_ids": [[7, 8], [9]], "output_tokens": [2, 1], "finish_reason": ["stop", "length"]},
    {
        "output_token_ids": None,
        "output_tokens": None,
        "finish_reason": None,
        "outputs": [{"token_ids": [7, 8], "finish_reason": "stop"}, {"token_ids": [9], "finish_reason": "length"}],
    },
]


@pytest.mark.parametrize("several", SEVERAL, ids=["lists", "objects"])
def test_each_of_several_choices_is_a_child(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder, several: dict[str, Any]
) -> None:
    file = take([jsonl("log.jsonl", [record(1, **several)])], lake, keys=keys).files[0]
    assert (file.rows_out, file.rows_quarantined) == (1, 0)
    row = only(lake, "attempt")
    assert (row["input_computed"], row["output_computed"], row["n"], row["ids_expected"]) == (3, 3, 2, 6)
    children = lake.scan("child").sort("child").collect()
    told = children.select("child", "kind", "input_computed", "output_computed", "finish_reason").rows()
    assert told == [(1, "choice", 3, 2, "stop"), (2, "choice", 3, 1, "length")]
    (block,) = open_day(lake.scan("token_run").collect(), keys)
    begin, runs = "block_offset", block.rows.sort("child").iter_rows(named=True)
    held = {(r["stream"], r["child"]): block.ids[r[begin] : r[begin] + r["length"]].tolist() for r in runs}
    assert held == {("prompt", 0): [5, 6, WORD], ("output", 1): [7, 8], ("output", 2): [9]}
    assert [f.code for f in reconcile(lake).findings if f.code == "ids_differ_from_count"] == []


def test_a_count_of_several_choices_is_compared_with_all_their_ids(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder
) -> None:
    take([jsonl("log.jsonl", [record(1, **SEVERAL[0] | {"output_tokens": 5})])], lake, keys=keys)
    (found,) = [f for f in reconcile(lake).findings if f.code == "ids_differ_from_count"]
    assert (found.expected, found.observed) == (5, 3)


def test_what_quarantine_reads_again_has_its_ids_encrypted_too(
    take: Take, jsonl: Write, lake: Lake, keys: KeyFolder, tmp_path: Path
) -> None:
    """Only those of the records that were held: the others of the file lie in the lake already."""
    path = jsonl("log.jsonl", [record(1), record(2, output_tokens="2", n_out=2), record(3)])
    take([path], lake, keys=keys)
    assert (lake.rows("attempt"), lake.rows("token_run")) == (2, 4)
    mapping = tmp_path / "m.toml"
    mapping.write_text('[fields]\noutput_count = "n_out"\n', encoding="utf-8")
    now = datetime(2026, 1, 16, tzinfo=UTC)
    done = retry([path], lake, key=KEY, by="ann", now=now, mapping=mapping, keys=keys)
    assert [(file.held, file.stored, file.left) for file in done.files] == [(1, 1, 0)]
    assert (lake.rows("attempt"), lake.rows("token_run")) == (3, 6)
    rows = lake.scan("token_run").collect()
    late = [block for block in open_day(rows, keys) if block.rows.height == 2]
    assert [block.ids.tolist() for block in late] == [[5, 6, WORD, WORD, 2]]
    assert rows["ciphertext"].drop_nulls().len() == 2
    assert [f.code for f in reconcile(lake).findings if f.code in {"ids_missing", "gap_records"}] == []


def test_no_field_of_texts_is_named() -> None:
    names = {name for each in FIELDS.values() for name in each}
    assert not names & {"prompt", "text", "output", "completion", "response", "messages", "content", "user"}


@pytest.mark.parametrize("value", [1_768_473_000, 1_768_473_000_000, "2026-01-15T10:30:00+00:00"])
def test_times_in_seconds_milliseconds_and_words(take: Take, jsonl: Write, lake: Lake, value: object) -> None:
    take([jsonl("log.jsonl", [record(timestamp=value)])], lake)
    assert only(lake, "attempt")["arrived_at"] == datetime(2026, 1, 15, 10, 30, tzinfo=UTC)


def test_lines_that_are_no_records_are_counted(take: Take, lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record()) + "\n[1]\n" + json.dumps({"output_token_ids": None, "x": 1}) + "\n")
    file = take([path], lake, importer="token_logs").files[0]
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (3, 1, 2)
