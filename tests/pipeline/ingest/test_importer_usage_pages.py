"""Usage pages: sums of a period with their classes, fetched again as often as you like, and never a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.log_samples import DAY_0, completions, messages, messages_report, page

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.validate import validate
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import pseudonym

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
CLASSES = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")
FIGURES = ("verdict", *CLASSES, "input_total", "output_total", "total")
LATER = date(2026, 1, 20)


def rows_of(lake: Lake) -> pl.DataFrame:
    return lake.scan("usage_period").collect().sort("segment_row", "revision")


def test_the_classes_of_both_providers(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    """1,000 = 550 + 400 + 30 + 20; 3,200 = 1,500 + 200 + 500 + 1,000."""
    openai = jsonl("openai.jsonl", [page([completions()])])
    anthropic = jsonl("anthropic.jsonl", [messages_report(messages())])
    files = take([openai, anthropic], lake, day=LATER).files
    assert [(file.importer, file.rows_in, file.rows_out) for file in files] == [("usage_pages", 1, 1)] * 2
    rows = rows_of(lake).sort("provider", descending=True)
    assert rows.select(FIGURES).rows() == [
        ("PROVED", 550, 400, 0, 0, 50, 1000, 500, 1500),
        ("PROVED", 1500, 200, 500, 1000, 0, 3200, 500, 3700),
    ]
    assert rows["requests"].to_list() == [5, None]
    assert (lake.rows("attempt"), lake.rows("reading"), lake.rows("usage_report")) == (0, 0, 0)


def test_what_a_row_says_beside_its_counts(lake: Lake, take: Take, jsonl: Jsonl, key: bytes) -> None:
    told = completions(user_id="user_1", api_key_id="key_1", batch=True, service_tier="flex")
    take([jsonl("p.jsonl", [page([told])])], lake, day=LATER, tenant="Acme")
    row = rows_of(lake).row(0, named=True)
    assert (row["api"], row["model"], row["batch"], row["service_tier"]) == (
        "openai_usage_completions",
        "gpt-4o-2024-08-06",
        True,
        "flex",
    )
    assert (row["project"], row["api_key"]) == (pseudonym(key, "project", "proj_abc"), pseudonym(key, "key", "key_1"))
    assert row["tenant"] == pseudonym(key, "tenant", "Acme")
    assert row["grouped_by"] == ["api_key_id", "batch", "model", "project_id", "service_tier", "user_id"]
    assert (row["day"], row["period_start"]) == (date(2026, 1, 15), datetime(2026, 1, 15, tzinfo=UTC))
    assert row["period_end"] == datetime(2026, 1, 16, tzinfo=UTC)


def test_a_result_that_is_not_grouped_by_model_has_none(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("p.jsonl", [page([completions(model=None, project_id=None)])])], lake, day=LATER)
    assert rows_of(lake).select("model", "project", "grouped_by").row(0) == (None, None, [])


def test_groups_of_one_period_are_rows_of_their_own_also_by_what_is_not_kept(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    results = [completions(user_id=name) for name in ("u1", "u2")] + [completions(api_source="agents_api")]
    take([jsonl("p.jsonl", [page(results)])], lake, day=LATER)
    rows = rows_of(lake)
    assert (rows.height, rows["cell_lo"].n_unique(), rows["revision"].max()) == (3, 3, 0)


def test_a_period_that_is_fetched_again_is_a_revision_and_the_last_one_counts(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    """Fetched on its own day it is provisional; five days later it has grown; then nothing is new."""
    take([jsonl("a.jsonl", [page([completions()])])], lake)
    grown = page([completions(output_tokens=900)], [completions(output_tokens=1)])
    second = take([jsonl("b.jsonl", [grown])], lake, day=LATER).files[0]
    third = take([jsonl("c.jsonl", [grown, page()])], lake, day=LATER).files[0]
    assert (second.rows_in, second.rows_out) == (2, 2)
    assert (third.rows_in, third.rows_out, third.rows_duplicate) == (2, 0, 2)
    rows = rows_of(lake).sort("day", "revision")
    assert rows.select("day", "revision", "provisional", "output_total").rows() == [
        (date(2026, 1, 15), 0, True, 500),
        (date(2026, 1, 15), 1, False, 900),
        (date(2026, 1, 16), 0, False, 1),
    ]


def test_pages_that_follow_each_other_and_a_last_one_that_says_more_follow(
    lake: Lake, take: Take, tmp_path: Path
) -> None:
    pages = [page([completions()], more=True), page([completions()], first=DAY_0 + 86_400, more=True)]
    (tmp_path / "pages.json").write_text(json.dumps(pages, indent=1))
    take([tmp_path / "pages.json"], lake, day=LATER)
    assert rows_of(lake).sort("day")["flags"].to_list() == [None, ["pages_missing"]]


def test_other_pages_of_openai(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    def result(name: str, **counts: object) -> dict[str, object]:
        return {"object": f"organization.usage.{name}.result", "num_model_requests": 2, **counts}

    results = [
        result("embeddings", input_tokens=16, model="text-embedding-3-small"),
        result("audio_transcriptions", seconds=12.5),
        result("something_new", input_tokens=3),
        completions(input_uncached_tokens=551),
        completions(model="old", input_uncached_tokens=None, input_cache_write_tokens=None,
                    input_cache_write_12h_tokens=None),
    ]  # fmt: skip
    take([jsonl("p.jsonl", [page(results)])], lake, day=LATER)
    rows = rows_of(lake)
    assert rows.select("verdict", "input_uncached", "input_total", "total").rows() == [
        ("PROVED", 16, 16, 16),
        ("UNKNOWN", None, None, None),
        ("UNKNOWN", None, None, None),
        ("CONTRADICTORY", None, None, None),
        ("PROVED", 600, 1000, 1500),
    ]
    assert rows["leaf_texts"].to_list()[1] == [None, "12.5"]


def test_what_cannot_be_read_goes_to_quarantine(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    bad_time = page([completions()])
    bad_time["data"][0]["end_time"] = 5
    lines = [
        page([completions(), completions(output_tokens="x"), completions(model="m", output_tokens=2**63)]),
        page([{"object": "organization.costs.result", "amount": {"value": 1}}]),
        bad_time,
        {"object": "page", "data": [{"results": 7}], "has_more": False},
        {"object": "page", "data": 7, "has_more": False},
        b"[",
    ]
    (file,) = take([jsonl("p.jsonl", lines)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 1, 7)
    held = lake.scan("quarantine").collect().sort("line")
    assert held.select("reason", "path").rows() == [
        ("type", "result.output_tokens"),
        ("range", "result.output_tokens"),
        ("schema", ""),
        ("bad_time", ""),
        ("missing_field", ""),
        ("missing_field", ""),
        ("not_json", ""),
    ]


def test_the_rows_keep_every_rule_of_their_table(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    lines = [page([completions(), completions(model=None)]), messages_report(messages(), more=True)]
    take([jsonl("p.jsonl", lines)], lake)
    assert validate(lake, today=LATER, tables=["usage_period", "segment"]).violations == ()


def test_a_file_that_holds_no_object_says_what_to_do(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    with pytest.raises(ContractError, match=r"no usage page, or damaged\. Fetch it again"):
        take([jsonl("p.jsonl", [b"\xff"])], lake, importer="usage_pages")
