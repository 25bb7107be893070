"""Scrapes of serving engines: names and units by version, times and servers, what does not agree, what is refused.

Scrapes written here are constructed after the sources of vLLM and SGLang; the real ones are recorded (vLLM 0.32.0).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.ingest.test_ingest_canary import CANARY, bytes_with_the_word

from weighbridge.pipeline.engine.counters import between_scrapes
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.importers.engine_metrics import IMPORTER
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.ingest.metric_facts import all_metrics
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError

Take = Callable[..., IngestResult]
KEY, DAY = bytes(range(32)), date(2026, 1, 15)
NAME = "gpu-7_20260115T103000Z.prom"
PLAIN = 'vllm:prompt_tokens_total{engine="0",model_name="m"} 10.0\n'


def read(folder: Path, text: str, name: str = NAME) -> Staged:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    source = Source(path, KEY, DAY)
    return IMPORTER.read(source, IMPORTER.check(source))


def rows(folder: Path, text: str, name: str = NAME) -> list[dict[str, Any]]:
    return read(folder, text, name).tables["engine_counter"].to_dicts()


def test_every_metric_is_of_its_engine_and_what_took_its_place_counts_the_same() -> None:
    metrics = all_metrics()
    for metric in metrics.values():
        prefix = {"tgi": "tgi_", "tensorrt_llm": "trtllm_"}.get(metric.engine, f"{metric.engine}:")
        assert metric.metric.startswith(prefix)
        assert metric.source.startswith("https://")
        assert not metric.metric.endswith(("_created", "_bucket", "_per_pos_total"))
        if metric.renamed is not None:
            newer = metrics[metric.renamed]
            assert (newer.counter, newer.label, newer.renamed) == (metric.counter, metric.label, None)


def test_a_counter_becomes_a_row_with_its_server_model_and_time(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, "process_start_time_seconds 1.7684712e+09\n# engine_version: 0.32.0\n" + PLAIN)
    shown = {k: row[k] for k in ("engine", "engine_version", "model", "rank", "counter", "label", "unit", "value")}
    assert shown == {
        "engine": "vllm",
        "engine_version": "0.32.0",
        "model": "m",
        "rank": "engine:0",
        "counter": "prompt_tokens",
        "label": None,
        "unit": "tokens",
        "value": 10,
    }
    assert row["scraped_at"] == datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
    assert row["started_at"] == datetime(2026, 1, 15, 10, 0, tzinfo=UTC)
    assert row["instance"].startswith("i_")
    assert (row["day"], row["undated"], row["flags"]) == (DAY, False, None)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a_20260115T103000Z.prom", "", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
        ("a-2026-01-15T10-30-00Z.prom", "", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
        ("a.1768473000.prom", "", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
        ("a.prom", "# scraped_at: 2026-01-15T11:30:00+01:00\n", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
        ("a_20260115T103000Z.prom", "# scraped_at: 2026-01-15T10:45:00Z\n", datetime(2026, 1, 15, 10, 45, tzinfo=UTC)),
        ("a.prom", "", None),
        ("a_20261515T103000Z.prom", "", None),
        ("a.prom", "# scraped_at: yesterday\n", None),
    ],
)
def test_the_time_comes_from_a_comment_or_from_the_name(
    tmp_path: Path, name: str, text: str, expected: datetime | None
) -> None:
    (row,) = rows(tmp_path, text + PLAIN, name)
    assert (row["scraped_at"], row["undated"]) == (expected, expected is None)


def test_a_sample_that_states_its_time_is_of_that_time(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, 'vllm:prompt_tokens_total{model_name="m"} 10 1768473060000\n')
    assert row["scraped_at"] == datetime(2026, 1, 15, 10, 31, tzinfo=UTC)


HELP = "# HELP vllm:gpu_prefix_cache_hits_total GPU prefix cache hits, in terms of number of cached {}.\n"
OLD = 'vllm:gpu_prefix_cache_hits_total{model_name="m"} 4\n'
NEW = 'vllm:prefix_cache_hits_total{model_name="m"} 64\n'


@pytest.mark.parametrize(
    ("text", "unit", "value", "repeated"),
    [
        (HELP.format("blocks") + OLD, "blocks", 4, 0),
        (HELP.format("tokens") + OLD, "tokens", 4, 0),
        (OLD, None, 4, 0),
        (NEW, "tokens", 64, 0),
        (HELP.format("tokens") + OLD + NEW, "tokens", 64, 1),
    ],
    ids=["blocks", "tokens", "not said", "renamed", "both names"],
)
def test_hits_of_the_prefix_cache_are_in_blocks_or_tokens_as_the_scrape_says(
    tmp_path: Path, text: str, unit: str | None, value: int, repeated: int
) -> None:
    staged = read(tmp_path, text)
    (row,) = staged.tables["engine_counter"].to_dicts()
    assert (row["counter"], row["unit"], row["value"]) == ("prefix_cache_hits", unit, value)
    assert (staged.records, staged.repeated) == (1 + repeated, repeated)


def test_what_only_looks_like_a_counter_is_read_past(tmp_path: Path) -> None:
    text = PLAIN + (
        'vllm:prompt_tokens_created{engine="0",model_name="m"} 1.768471e+09\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="m",position="0"} 5\n'
        'vllm:num_requests_running{model_name="m"} 3\n'
        'vllm:request_prompt_tokens_bucket{le="+Inf",model_name="m"} 2\n'
        "python_gc_collections_total 7\n"
    )
    (row,) = rows(tmp_path, text)
    assert row["counter"] == "prompt_tokens"
    assert row["started_at"] == datetime(2026, 1, 15, 9, 56, 40, tzinfo=UTC)


def test_cached_tokens_of_sglang_with_and_without_their_source(tmp_path: Path) -> None:
    old = rows(tmp_path, 'sglang:cached_tokens_total{model_name="m"} 5\n')
    new = rows(tmp_path, 'sglang:cached_tokens_total{model_name="m",cache_source="device"} 5\n')
    assert [(r["counter"], r["label"]) for r in (*old, *new)] == [
        ("prompt_tokens_cached", None),
        ("prompt_tokens_cached_by_source", "device"),
    ]


def test_words_that_are_not_known_and_servers_stand_as_hashes(tmp_path: Path) -> None:
    text = 'vllm:request_success_total{finished_reason="Jane Doe",instance="jane.example:80",model_name="m"} 5\n'
    (row,) = rows(tmp_path, text)
    assert row["label"].startswith("h_")
    assert "ane" not in str(row["label"]) + str(row["instance"]) + str(row["series"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [("1.5", "fraction"), ("NaN", "not_a_number"), ("+Inf", "not_a_number"), ("1e30", "range"), ("-1", "schema")],
)
def test_what_is_no_count_goes_to_quarantine_and_the_rest_is_kept(tmp_path: Path, value: str, reason: str) -> None:
    staged = read(tmp_path, PLAIN + f'vllm:generation_tokens_total{{model_name="m"}} {value}\n')
    assert staged.refused is not None
    assert staged.refused.select("reason", "path").rows() == [(reason, "vllm:generation_tokens_total")]
    assert (staged.records, staged.refused_records, staged.tables["engine_counter"].height) == (2, 1, 1)


def test_a_value_floating_point_cannot_tell_from_the_next_is_flagged(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, 'vllm:prompt_tokens_total{model_name="m"} 9007199254740993\n')
    assert row["flags"] == ["beyond_exact"]


SOURCES = 'vllm:prompt_tokens_by_source_total{{model_name="m",source="{}"}} {}\n'


def test_counters_that_do_not_agree_are_flagged_and_kept(tmp_path: Path) -> None:
    good = PLAIN.replace('engine="0",', "") + SOURCES.format("local_compute", 6) + SOURCES.format("local_cache_hit", 4)
    assert [row["flags"] for row in rows(tmp_path, good)] == [None, None, None]
    bad = rows(tmp_path, good.replace(" 4\n", " 5\n"))
    assert [row["flags"] for row in bad] == [["sources_differ_from_prompt"]] * 3
    assert [row["value"] for row in bad] == [10, 6, 5]


def test_blocks_are_not_held_against_tokens(tmp_path: Path) -> None:
    text = HELP.format("blocks") + OLD.replace(" 4", " 40") + 'vllm:prefix_cache_queries_total{model_name="m"} 30\n'
    assert [row["flags"] for row in rows(tmp_path, text)] == [None, None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm:prompt_tokens_total{ secret words 10\n", "is no text as `/metrics` of a server gives it"),
        ("vllm:num_requests_running 3\n", "has no counter of a serving engine that is known here"),
    ],
)
def test_a_file_that_is_no_scrape_says_so_and_quotes_nothing(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ContractError, match=said) as raised:
        read(tmp_path, text)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_no_word_of_a_scrape_gets_into_the_lake(tmp_path: Path, take: Take, lake: Lake) -> None:
    path = tmp_path / "scrape.prom"
    path.write_text(
        f"# {CANARY}\n# instance: {CANARY}\n# engine_version: {CANARY}\n# scraped_at: {CANARY}\n"
        f"# HELP vllm:prompt_tokens_total {CANARY}\n"
        + "".join(
            f'vllm:prompt_tokens_total{{{label}="{CANARY}"}} {value}\n'
            for value, label in enumerate(("model_name", "engine", "pod", "instance", "lora", "mine"))
        )
        + f'vllm:request_success_total{{finished_reason="{CANARY}"}} 3\n'
        f'vllm:generation_tokens_total{{x="{CANARY}"}} NaN\n'
        f'{CANARY}_total{{x="{CANARY}"}} 3\n',
        encoding="utf-8",
    )
    file = take([path], lake).files[0]
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 7, 1)
    assert bytes_with_the_word(Path(lake.root)) == []


def test_a_folder_of_scrapes_goes_into_the_lake_once(tmp_path: Path, take: Take, lake: Lake) -> None:
    folder = tmp_path / "scrapes"
    folder.mkdir()
    for minute, value in ((0, 100), (5, 160), (10, 20)):
        text = PLAIN.replace("10.0", f"{value}.0")
        (folder / f"gpu-7_20260115T10{minute:02}00Z.prom").write_text(text, encoding="utf-8")
    first = take([folder], lake)
    assert sum(file.rows_out for file in first.files) == 3
    digest = lake.digest("engine_counter")
    take([folder], lake)
    # The same scrape again under another name and with other blanks is the same counters.
    again = folder / "copy.prom"
    again.write_text("# scraped_at: 2026-01-15T10:05:00Z\n# instance: gpu-7\n" + PLAIN.replace("10.0", "160"))
    copied = take([again], lake).files[0]
    assert (copied.rows_in, copied.rows_out, copied.rows_duplicate) == (1, 0, 1)
    assert lake.digest("engine_counter") == digest
    told = between_scrapes(lake.scan("engine_counter")).collect().sort("scraped_at")
    assert told.select("counted", "reset").rows() == [(None, None), (60, False), (20, True)]


@pytest.mark.real
def test_the_recorded_scrape_of_sglang_does_not_agree_with_itself(shared_real: Path) -> None:
    path = shared_real / "metrics" / "sglang_metrics_llama31_8b.prom"
    source = Source(path, KEY, DAY)
    assert IMPORTER.recognises(path)
    found = IMPORTER.read(source, IMPORTER.check(source)).tables["engine_counter"]
    told = {row["counter"]: (row["value"], row["flags"] or []) for row in found.to_dicts()}
    assert told == {
        "prompt_tokens": (8_128_902, []),
        "generation_tokens": (7_557_572, ["samples_differ_from_generated"]),
        "first_token_samples": (11_008, ["finished_without_first_token", "samples_differ_from_generated"]),
        "finished_samples": (11_228, ["finished_without_first_token"]),
        "inter_token_samples": (7_400_757, ["samples_differ_from_generated"]),
    }


@pytest.mark.real
@pytest.mark.parametrize("server", ["a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool"])
def test_what_vllm_counted_per_group_of_calls_is_what_was_recorded_there(
    server: str, shared_real: Path, tmp_path: Path, take: Take, lake: Lake
) -> None:
    """Its scrapes tell no time: they are given one here, in their order; the increases were worked out elsewhere."""
    root = shared_real / "engines" / "vllm" / server
    names = [path.name for path in sorted((root / "metrics").glob("*.prom")) if "full" not in path.name]
    folder = tmp_path / "scrapes"
    folder.mkdir()
    for minute, name in enumerate(names):
        (folder / f"cpu_20261129T10{minute:02}00Z.prom").write_bytes((root / "metrics" / name).read_bytes())
    take([folder], lake)
    told = between_scrapes(lake.scan("engine_counter")).collect().filter(pl.col("counted").is_not_null())
    assert not told["reset"].any()
    by_part = {"prompt_tokens_by_source": "source", "request_success_by_reason": "reason"}
    compared = 0
    for line in (root / "group_totals.jsonl").read_text(encoding="utf-8").splitlines():
        total = json.loads(line)
        begin, end = (names.index(total[which].split("/")[1]) for which in ("scrape_before", "scrape_after"))
        own = told.filter(pl.col("scraped_at").dt.minute().is_between(begin + 1, end))
        increased = dict(own.group_by("metric").agg(pl.col("counted").sum()).iter_rows())
        parts = own.filter(pl.col("label").is_not_null()).group_by("metric", "label").agg(pl.col("counted").sum())
        of_parts = {(metric, label): counted for metric, label, counted in parts.iter_rows()}
        for name, expected in total["counters"].items():
            if name in by_part:
                metric = "vllm:request_success_total" if by_part[name] == "reason" else f"vllm:{name}_total"
                assert {label: of_parts[metric, label] for label in expected} == expected, (total["group"], name)
            else:
                assert increased.get(f"vllm:{name}", 0) == expected, (total["group"], name)
            compared += 1
    assert compared == 14 * {"a_plain": 10, "b_spec_ngram": 6, "c_reasoning_tools_small_pool": 8}[server]
