"""The recorded answers of thirty-one providers: every record is accounted for, counted here without our own code."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

# Taken in once, by one worker.
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("recorded_answers")]
Take = Callable[..., IngestResult]
# Objects in which these APIs put token counts, wherever they stand in an answer.
HOLDERS = {
    *("usage", "usageMetadata", "usage_metadata", "billed_units", "tokens", "usage_breakdown"),
    *("amazon-bedrock-invocationMetrics", "timings", "statistics"),
}
INSIDE = {"response", "message", "meta", "delta", "metadata", "x_groq", "interaction", "predictions", "embeddings"}
# Counts that stand bare, and the headers that hold some.
BARE = {
    *("prompt_eval_count", "eval_count", "inputTextTokenCount", "prompt_token_count", "generation_token_count"),
    *("input_tokens", "total_tokens", "totalTokens", "cachedContentTokenCount", "inputTokens"),
    "totalOutputTextTokenCount",
}
HEADERS = {
    *("x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count", "num_tokens"),
    *("x-amzn-bedrock-cache-read-input-token-count", "x-amzn-bedrock-cache-write-input-token-count"),
}


def records(path: Path) -> list[dict[str, object]]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in raw.splitlines()]


def integers(value: object) -> Iterator[int]:
    """All whole numbers below a value, those in lists included."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, float) and value.is_integer():
        yield int(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from integers(item)
    elif isinstance(value, list):
        for item in value:
            yield from integers(item)


def has_usage(record: dict[str, object]) -> bool:
    """Whether an answer states a count, or the traffic type of one: by name, at any depth, in body or headers."""

    def states(item: object) -> bool:
        return any(True for _ in integers(item)) or (isinstance(item, dict) and "trafficType" in item)

    def search(value: object, depth: int) -> bool:
        if isinstance(value, list):
            return any(search(item, depth) for item in value)
        if not isinstance(value, dict):
            return False
        names = HOLDERS | (BARE if depth == 0 else set())
        if any(states(item) for name, item in value.items() if name in names):
            return True
        return any(search(item, depth + 1) for name, item in value.items() if name in INSIDE)

    answer = record["response"]
    events = answer if isinstance(answer, list) else [answer]
    headers = record.get("meta_headers") or {}
    assert isinstance(headers, dict)
    return any(search(event, 0) for event in events) or bool(HEADERS & headers.keys())


_TAKEN: dict[Path, tuple[Lake, list[dict[str, object]], IngestResult]] = {}


@pytest.fixture
def taken(
    tmp_path_factory: pytest.TempPathFactory, take: Take, shared_real: Path
) -> tuple[Lake, list[dict[str, object]], IngestResult]:
    """The smaller file, taken in once for all tests of this module; none of them writes to that lake."""
    path = shared_real / "api_responses_small.jsonl"
    if path not in _TAKEN:
        lake = Lake.create(tmp_path_factory.mktemp("recorded") / "lake")
        _TAKEN[path] = (lake, records(path), take([path], lake, day=date(2026, 9, 1)))
    return _TAKEN[path]


def test_every_record_is_stored(taken: tuple[Lake, list[dict[str, object]], IngestResult]) -> None:
    lake, lines, result = taken
    (file,) = result.files
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (385, 385, 0, 0)
    calls = sum(int(str(record["calls_in_record"])) for record in lines)
    assert lake.rows("attempt") == calls == 388
    assert lake.scan("attempt").select(pl.col("segment_row").n_unique()).collect().item() == 385
    ids = lake.scan("foreign_id").filter(pl.col("kind") == "record_id").collect()["value"].str.split("/").list.first()
    assert sorted(set(ids)) == sorted(str(record["id"]) for record in lines)


def test_a_record_has_a_report_exactly_where_its_answer_states_a_count(
    taken: tuple[Lake, list[dict[str, object]], IngestResult],
) -> None:
    lake, lines, _ = taken
    reported = set(lake.scan("usage_report").collect()["segment_row"])
    expected = {number for number, record in enumerate(lines) if has_usage(record)}
    assert reported == expected
    assert len(expected) > 300


def test_no_count_of_a_usage_object_is_lost_or_changed(
    taken: tuple[Lake, list[dict[str, object]], IngestResult],
) -> None:
    """The numbers below `usage` of each answer, added up, are those of its leaves below `usage`."""
    lake, lines, _ = taken
    leaves = (
        lake.scan("usage_report")
        .select("segment_row", path=pl.col("leaf_shape").str.split(" "), number="leaf_integers")
        .explode("path", "number")
        .filter(pl.col("path").str.contains(r"^(usage|usageMetadata|response\.usage|message\.usage)[.\[]"))
        .group_by("segment_row")
        .agg(pl.col("number").sum(), pl.col("number").count().alias("count"))
        .collect()
    )
    found = {row: (number, count) for row, number, count in leaves.iter_rows()}
    compared = 0
    for number, record in enumerate(lines):
        answer = record["response"]
        stated: list[int] = []
        for event in answer if isinstance(answer, list) else [answer]:
            if isinstance(event, dict):
                inner = [event, event.get("response"), event.get("message")]
                holders = [h for h in inner if isinstance(h, dict)]
                stated += [
                    n
                    for h in holders
                    for name in ("usage", "usageMetadata")
                    for n in integers(h.get(name))
                    if not isinstance(h.get(name), int)
                ]
        if stated:
            compared += 1
            # A measure such as a cost of 0.0 is kept as a decimal text, so it is no integer leaf.
            assert found[number][1] <= len(stated)
            assert found[number][0] == sum(stated), record["id"]
    assert compared > 250


def test_identifiers_and_models_are_those_of_the_records(
    taken: tuple[Lake, list[dict[str, object]], IngestResult],
) -> None:
    lake, lines, _ = taken
    attempts = lake.scan("attempt").sort("segment_row").unique("segment_row", maintain_order=True).collect()
    assert attempts["model_requested"].to_list() == [record["model"] or None for record in lines]
    assert attempts["model_served"].to_list() == [record["response_model"] or None for record in lines]
    assert attempts["api"].to_list() == [record["api_flavor"] for record in lines]
    assert attempts["http_status"].to_list() == [record["status"] for record in lines]
    responses = lake.scan("foreign_id").filter(pl.col("kind") == "provider_response_id").collect()["value"]
    told = {str(record["response_id"]) for record in lines if record["response_id"]}
    assert told <= set(responses)


def test_nothing_is_dropped_from_what_is_a_name(taken: tuple[Lake, list[dict[str, object]], IngestResult]) -> None:
    lake, lines, _ = taken
    attempts = lake.scan("attempt").sort("segment_row").unique("segment_row", maintain_order=True).collect()
    told = [str(record["provider"]).replace("(8000)", ":8000") for record in lines]
    assert attempts["provider"].to_list() == told


@pytest.mark.system
def test_all_recordings_are_taken_in_and_balance(lake: Lake, take: Take, shared_real: Path) -> None:
    path = shared_real / "api_responses_all.jsonl.gz"
    lines = records(path)
    (file,) = take([path], lake, day=date(2026, 9, 1)).files
    assert file.rows_in == len(lines) == 3028
    assert (file.rows_out, file.rows_quarantined, file.rows_duplicate) == (3028, 0, 0)
    expected = {number for number, record in enumerate(lines) if has_usage(record)}
    assert set(lake.scan("usage_report").collect()["segment_row"]) == expected


def test_no_text_of_a_recording_is_in_the_lake(
    taken: tuple[Lake, list[dict[str, object]], IngestResult],
) -> None:
    """Longer sentences of the prompts and answers, looked for in every value that was stored."""
    lake, lines, _ = taken
    sentences: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, str) and len(value) > 25 and " " in value:
            sentences.add(value[:60])

    for record in lines:
        collect(record["request"])
        collect(record["response"])
    assert len(sentences) > 500
    stored: set[str] = set()
    for table in lake.digests():
        frame = lake.scan(table).collect()
        for name, kind in frame.schema.items():
            if kind == pl.String:
                stored |= set(frame[name].drop_nulls())
            elif kind == pl.List(pl.String):
                stored |= set(frame[name].explode().drop_nulls())
    assert not {text for text in stored if any(sentence in text for sentence in sentences)}
