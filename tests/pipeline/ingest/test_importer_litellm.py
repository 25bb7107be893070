"""LiteLLM's SpendLogs in files.

`litellm_spend_logs.jsonl` is recorded: litellm 1.110.2's own writer of the table made its four rows, for calls that
were made up; the entry of its price list was left out of the metadata, texts were put in. Other rows are constructed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.ingest.gateway_samples import Row, spend

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import pseudonym

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
RECORDED = Path(__file__).with_name("litellm_spend_logs.jsonl")


def usage(**counts: object) -> dict[str, object]:
    return {"metadata": {"usage_object": counts}}


def attempts(lake: Lake) -> list[Row]:
    return lake.scan("attempt").collect().sort("segment_row").rows(named=True)


def readings(lake: Lake) -> list[Row]:
    return lake.scan("reading").collect().sort("segment_row").rows(named=True)


def test_recorded_rows_become_calls_with_counts_charges_and_what_they_cost(
    lake: Lake, take: Take, key: bytes, amounts: Callable[[Lake], list[Decimal | None]]
) -> None:
    (file,) = take([RECORDED], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("litellm", 4, 4)
    first, second, failed, again = attempts(lake)
    assert (first["provider"], first["api"], first["model_requested"], first["model_served"]) == (
        "openai",
        "litellm",
        "fast",
        "gpt-4o",
    )
    assert first["tenant"] == pseudonym(key, "tenant", "team-blue")
    assert first["arrived_at"] == datetime(2026, 3, 2, 10, 0, 0, 123000, UTC)
    assert (first["total_us"], first["first_token_us"]) == (2_000_000, None)  # not streamed: both times are one
    assert (second["provider"], second["model_served"]) == ("anthropic", "claude-sonnet-4-5")
    # A failure and the success after it are two attempts of one request; zeros of a failure are no usage.
    assert (failed["status"], failed["usage_expected"], failed["attempt_number"]) == ("failed", False, None)
    assert (again["status"], again["usage_expected"], again["attempt_number"]) == ("succeeded", True, 2)
    assert (failed["request_hi"], failed["request_lo"]) == (again["request_hi"], again["request_lo"])
    assert len({row["request_lo"] for row in attempts(lake)}) == 3
    names = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output_total", "verdict")
    assert [tuple(row[name] for name in names) for row in readings(lake)] == [
        (600, 2000, 0, 0, 100, "ASSUMED"),
        (3, 2000, 400, 0, 50, "ASSUMED"),
        (10, 0, 0, 0, 5, "PROVED"),
    ]
    # 600 x 2.5 + 2,000 x 0.25 + 100 x 10; 3 x 2.5 + 2,000 x 0.25 + 400 x 3 + 50 x 10; 10 x 2.5 + 5 x 10: per million.
    assert amounts(lake) == [Decimal("0.003"), Decimal("0.0022075"), Decimal("0.000075")]
    (charged,) = {row["leaf_texts"][row["leaf_shape"].split().index("spend_log.spend")] for row in reports(lake)[:1]}
    assert charged == "0.005"


def reports(lake: Lake) -> list[Row]:
    return lake.scan("usage_report").collect().sort("segment_row").rows(named=True)


def test_the_gateways_own_sum_proves_nothing_and_another_total_does(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 290}}
    rows = [
        spend(1, prompt_tokens=12, completion_tokens=300, total_tokens=312, **usage(**details)),
        spend(2, prompt_tokens=12, completion_tokens=1, total_tokens=303, **usage(**details)),
    ]
    take([jsonl("s.jsonl", rows)], lake)
    inside, beside = readings(lake)
    assert (inside["verdict"], inside["output_total"], inside["reasoning"]) == ("ASSUMED", 300, 290)
    assert (beside["verdict"], beside["output_total"], beside["reasoning"]) == ("PROVED", 291, 290)


def test_cache_reads_beyond_the_prompt_show_that_an_older_release_left_them_out(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    told = {"metadata": {"additional_usage_values": {"cache_read_input_tokens": 38000}}}
    row = spend(1, prompt_tokens=3, total_tokens=8, custom_llm_provider="anthropic", cache_hit="False", **told)
    take([jsonl("s.jsonl", [row])], lake)
    (reading,) = readings(lake)
    assert (reading["input_uncached"], reading["cache_read"], reading["input_total"]) == (3, 38000, 38003)


def test_a_row_that_disagrees_with_its_own_columns_is_contradictory(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("s.jsonl", [spend(1, **usage(prompt_tokens=99, completion_tokens=5))])], lake)
    (reading,) = readings(lake)
    assert (reading["verdict"], reading["flags"]) == ("CONTRADICTORY", ["fields_disagree"])


def test_an_answer_of_the_proxys_own_cache_is_no_call_of_a_provider(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    rows = [spend(1, cache_hit="True", spend=0), spend(2, cache_hit="True", spend=0.5)]
    take([jsonl("s.jsonl", rows)], lake)
    own, charged = attempts(lake)
    assert (own["provider"], own["usage_expected"]) == ("litellm", None)
    assert charged["provider"] == "openai"
    assert [row["input_total"] for row in readings(lake)] == [12]


def test_zeros_are_what_the_proxy_writes_where_nothing_was_reported(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    take([jsonl("s.jsonl", [spend(1, **nothing, spend=0), spend(2, **nothing, spend="0.25")])], lake)
    assert [row["usage_expected"] for row in attempts(lake)] == [True, True]
    # What was charged for no tokens is kept; what was neither counted nor charged is nothing.
    (report,) = reports(lake)
    assert (report["leaf_shape"], report["leaf_texts"]) == ("spend_log.spend", ["0.25"])


def test_two_calls_with_one_response_id_are_two(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    one = spend(1, request_id="resp_same")
    two = spend(2, request_id="resp_same")
    (file,) = take([jsonl("s.jsonl", [one, two])], lake).files
    assert (file.rows_out, lake.rows("attempt")) == (2, 2)
    assert sum(row["input_total"] for row in readings(lake)) == 23


def test_a_row_that_stands_twice_is_one_and_an_updated_one_its_revision(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    (file,) = take([jsonl("a.jsonl", [spend(1), spend(1), spend(2)])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    (again,) = take([jsonl("b.jsonl", [spend(1), spend(2, completion_tokens=6, total_tokens=18)])], lake).files
    assert (again.rows_out, again.rows_duplicate) == (1, 1)
    assert sorted(row["output_total"] for row in readings(lake)) == [5, 6]
    assert take([jsonl("b.jsonl", [spend(1), spend(2, completion_tokens=6, total_tokens=18)])], lake).files[0].skipped


def test_json_jsonl_and_csv_exports_give_the_same_rows(tmp_path: Path, take: Take, jsonl: Jsonl) -> None:
    rows = [spend(1, **usage(prompt_tokens=11, completion_tokens=5, total_tokens=16)), spend(2)]
    document, table = tmp_path / "s.json", tmp_path / "s.csv"
    document.write_text(json.dumps(rows))
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows)
    kept = []
    for path in (jsonl("s.jsonl", rows), document, table):
        lake = Lake.create(tmp_path / f"lake-{path.name}")
        (file_,) = take([path], lake).files
        assert (file_.importer, file_.rows_out) == ("litellm", 2), path.name
        frames = [lake.scan(name).drop("segment").collect() for name in ("attempt", "usage_report")]
        kept.append([frame.sort("segment_row") for frame in frames])
    assert all(one.equals(other) for frames in kept[1:] for one, other in zip(kept[0], frames, strict=True))


def test_a_recorder_that_knows_the_response_meets_the_row_in_one_attempt(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Callable[..., Row]
) -> None:
    take([jsonl("r.jsonl", [answer(1)])], lake)
    take([jsonl("s.jsonl", [spend(1)])], lake)
    assert lake.scan("attempt").select("attempt_lo").collect()["attempt_lo"].n_unique() == 1


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"prompt_tokens": "a canary"}, "type", "spend_log.prompt_tokens"),
        ({"prompt_tokens": 10**30}, "range", "spend_log.prompt_tokens"),
        ({"completion_tokens": 5.5}, "fraction", "spend_log.completion_tokens"),
        ({"total_tokens": True}, "type", "spend_log.total_tokens"),
        ({"total_tokens": {"a canary": 16}}, "type", "spend_log.total_tokens"),
        ({"spend": float("nan")}, "not_a_number", "spend_log.spend"),
        ({"startTime": "yesterday"}, "bad_time", "attempt.arrived_at"),
        ({"metadata": {"usage_object": {"prompt_tokens": "many"}}}, "type", "usage.prompt_tokens"),
        ({"metadata": {"usage_object": "a canary"}}, "not_an_object", "usage"),
        ({"request_id": None}, "missing_field", "request_id"),
    ],
)
def test_what_cannot_be_read_is_told_and_leaves_the_rest(
    changes: Row, reason: str, path: str, lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    (file,) = take([jsonl("s.jsonl", [spend(1, **changes), spend(2)])], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == (reason, path, 0)


def test_a_cell_of_a_csv_that_is_no_number_is_refused(tmp_path: Path, lake: Lake, take: Take) -> None:
    path = tmp_path / "s.csv"
    path.write_text(
        "request_id,call_type,spend,prompt_tokens,completion_tokens,startTime,metadata,messages\n"
        'a,completion,0.1,12,3,2026-01-15 10:30:00.5,"{""usage_object"": {""prompt_tokens"": 12}}",a canary\n'
        "b,completion,0.1,a canary,3,2026-01-15 10:30:00,{},x\n"
        "c,completion,0.1,1.5,3,2026-01-15 10:30:00,{},x\n"
        "d,completion,free,1,3,2026-01-15 10:30:00,{},x\n"
        "e,completion\n"
    )
    (file,) = take([path], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (5, 2, 3)
    rows = lake.scan("quarantine").collect().sort("line").rows(named=True)
    assert [(row["line"], row["reason"]) for row in rows] == [(1, "type"), (2, "fraction"), (4, "schema")]
    # A charge that is no number is text: left out, and noted.
    assert reports(lake)[1]["notes"] == ["strings_dropped"]


def test_a_csv_with_other_columns_is_refused_with_the_next_step(tmp_path: Path, lake: Lake, take: Take) -> None:
    path = tmp_path / "s.csv"
    path.write_text("request_id,cost\na,1\n")
    with pytest.raises(Exception, match="--mapping"):
        take([path], lake, importer="litellm")
