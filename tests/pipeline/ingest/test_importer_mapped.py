"""Mapped tables: what each column means is said once, in a mapping file; nothing is guessed, nothing is rounded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.ingest import tabular
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.identity import AttemptKey, key_id, keyed_key, pseudonym

Take = Callable[..., IngestResult]
SIMPLE = """
[source]
name = "acme"
provider = "openai"
model = "gpt-4o"
[leaves]
"usage.input_total" = "in"
"usage.output_total" = "out"
"""


@pytest.fixture
def mapped(lake: Lake, take: Take, tmp_path: Path) -> Callable[..., IngestResult]:
    """Ingest a table under a mapping, both given as text."""

    def run(content: str | bytes, mapping: str = SIMPLE, *, name: str = "t.csv", **more: object) -> IngestResult:
        path, file = tmp_path / name, tmp_path / "m.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        file.write_text(mapping)
        return take([path], lake, mapping=file, **more)

    return run


def only(lake: Lake, table: str) -> dict[str, object]:
    (row,) = lake.scan(table).collect().rows(named=True)
    return row


def test_every_kind_of_column_finds_its_place(lake: Lake, mapped: Take, key: bytes) -> None:
    mapping = """
[source]
name = "gateway"
api = "openai_chat"
[columns]
record_id = "id"
provider_response_id = "response"
trace_id = "trace"
time = "started"
provider = "vendor"
model = "model"
model_requested = "asked"
tenant = "team"
task = "task"
route = "route"
environment = "env"
status = "state"
http_status = "code"
finish_reason = "why"
stream = "streamed"
temperature = "temp"
max_tokens = "limit"
total_us = "took"
input_recounted = "ours"
recount_has_template = "templated"
template = "print"
[time]
format = "epoch_ms"
[leaves]
"usage.prompt_tokens" = "p"
"usage.completion_tokens" = "c"
"usage.prompt_tokens_details.cached_tokens" = "h"
"usage.service_tier" = "tier"
"usage.cost" = "cost"
"""
    header = (
        "id,response,trace,started,vendor,model,asked,team,task,route,env,state,code,why,streamed,temp,limit,took,ours,"
        "templated,print,p,c,h,tier,cost\n"
    )
    line = (
        "77,resp-1,tr-1,1768473000250,azure,gpt-4o-mini,gpt-4o,Finance,summary,/v1/chat/completions,production,succeeded,200,stop,true,"
        "0.25,512,1500000,98,false,abc123,100,20,64,flex,0.00125\n"
    )
    (file,) = mapped(header + line, mapping).files
    assert (file.importer, file.rows_in, file.rows_out) == ("mapped", 1, 1)
    attempt = {name: value for name, value in only(lake, "attempt").items() if value is not None}
    expected = keyed_key(key, "gateway", "record_id", "77")
    assert attempt == {
        "attempt_hi": expected.hi,
        "attempt_lo": expected.lo,
        "day": date(2026, 1, 15),
        "source": "gateway",
        "provider": "azure",
        "api": "openai_chat",
        "model_requested": "gpt-4o",
        "model_served": "gpt-4o-mini",
        "template": "abc123",
        "tenant": pseudonym(key, "tenant", "Finance"),
        "tenant_key_id": key_id(key),
        "task": "summary",
        "route": "/v1/chat/completions",
        "environment": "production",
        "stream": True,
        "status": "succeeded",
        "http_status": 200,
        "finish_reason": "stop",
        "max_tokens": 512,
        "temperature": 0.25,
        "arrived_at": datetime(2026, 1, 15, 10, 30, 0, 250_000, UTC),
        "total_us": 1_500_000,
        "input_recounted": 98,
        "recount_has_template": False,
        "usage_expected": True,
        "undated": False,
        "segment": file.segment,
        "segment_row": 0,
        "revision": 0,
    }
    report = only(lake, "usage_report")
    assert report["leaf_shape"] == (
        "usage.completion_tokens usage.cost usage.prompt_tokens usage.prompt_tokens_details.cached_tokens "
        "usage.service_tier"
    )
    assert report["leaf_integers"] == [20, None, 100, 64, None]
    assert report["leaf_texts"] == [None, "0.00125", None, None, "flex"]
    assert (report["model"], report["reported_at"]) == ("gpt-4o-mini", attempt["arrived_at"])
    assert lake.scan("foreign_id").sort("kind").collect()["value"].to_list() == ["resp-1", "77", "tr-1"]
    assert lake.rows("alias") == 2


def test_a_missing_count_is_left_out_and_a_row_without_any_has_no_report(lake: Lake, mapped: Take) -> None:
    mapped("in,out\n1,2\n3,\n,NULL\nnull,0\n")
    rows = lake.scan("usage_report").sort("segment_row").select("segment_row", "leaf_shape", "leaf_integers")
    assert rows.collect().rows() == [
        (0, "usage.input_total usage.output_total", [1, 2]),
        (1, "usage.input_total", [3]),
        (3, "usage.output_total", [0]),
    ]
    attempts = lake.scan("attempt").sort("segment_row").collect()
    assert attempts["status"].to_list() == ["succeeded", "succeeded", "unknown", "succeeded"]
    assert attempts["usage_expected"].to_list() == [True, True, None, True]


VALUES = [
    ("5", 5, None),
    ("+5", 5, None),
    (" 5 ", 5, None),
    ("-5", -5, None),
    ("0", 0, None),
    ("9223372036854775807", 2**63 - 1, None),
    ("12.0", 12, "integral_float"),
    ("1.2e1", 12, "integral_float"),
    ("9007199254740993.0", 9007199254740993, "integral_float"),
]


@pytest.mark.parametrize(("text", "number", "note"), VALUES)
def test_a_count_is_read_to_the_last_digit(lake: Lake, mapped: Take, text: str, number: int, note: str | None) -> None:
    assert mapped(f"in,out\n{text},1\n").files[0].rows_out == 1
    report = only(lake, "usage_report")
    assert report["leaf_integers"] == [number, 1]
    assert report["notes"] == (None if note is None else [note])


REFUSED = [
    ("1.5", "fraction"),
    ("NaN", "not_a_number"),
    ("-inf", "not_a_number"),
    ("9223372036854775808", "range"),
    ("-9223372036854775809", "range"),
    ("1e30", "range"),
    ("1e9999", "range"),
    ("many", "type"),
    ('"1,234"', "type"),
    ("true", "type"),
    ("0x10", "type"),
    ("\u0665", "type"),  # a digit, but not one of ours
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_is_no_count_refuses_its_row_with_the_leaves_that_are(
    lake: Lake, mapped: Take, text: str, reason: str
) -> None:
    (file,) = mapped(f"in,out\n1,1\n{text},7\n").files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (2, 1, 1)
    row = only(lake, "quarantine")
    assert (row["reason"], row["path"], row["line"]) == (reason, "usage.input_total", 1)
    assert (row["leaf_shape"], row["leaf_integers"]) == ("usage.output_total", [7])
    assert (row["provider"], row["api"], row["source"]) == ("openai", "declared", "acme")


def test_parquet_keeps_its_types_and_is_held_to_the_same_rules(lake: Lake, take: Take, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "u64": pl.Series([1, 2**63], dtype=pl.UInt64),
            "f64": [2.0, 1.5],
            "i8": pl.Series([3, -3], dtype=pl.Int8),
            "dec": pl.Series([Decimal("4.00"), Decimal("4.50")], dtype=pl.Decimal(10, 2)),
            "at": pl.Series(["2026-01-15 12:00:00", None]).str.to_datetime(),
            "list": [[1], [2]],
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "m.toml").write_text(
        '[source]\nname = "acme"\n[columns]\ntime = "at"\n[time]\nzone = "Asia/Tokyo"\n[leaves]\n'
        '"usage.input_total" = "u64"\n"usage.cache_read" = "f64"\n"usage.reasoning" = "i8"\n'
        '"usage.output_total" = "dec"\n'
    )
    (file,) = take([tmp_path / "t.parquet"], lake, mapping=tmp_path / "m.toml").files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    report = only(lake, "usage_report")
    assert report["leaf_shape"] == "usage.cache_read usage.input_total usage.output_total usage.reasoning"
    assert report["leaf_integers"] == [2, 1, 4, 3]
    assert report["notes"] == ["integral_float"]
    assert only(lake, "attempt")["arrived_at"] == datetime(2026, 1, 15, 3, tzinfo=UTC)
    refused = lake.scan("quarantine").sort("path").select("path", "reason").collect().rows()
    assert refused == [
        ("usage.cache_read", "fraction"),
        ("usage.input_total", "range"),
        ("usage.output_total", "fraction"),
    ]


def test_a_list_is_no_count(lake: Lake, take: Take, tmp_path: Path) -> None:
    pl.DataFrame({"list": [[1], None]}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "m.toml").write_text('[source]\nname = "acme"\n[leaves]\n"usage.input_total" = "list"\n')
    (file,) = take([tmp_path / "t.parquet"], lake, mapping=tmp_path / "m.toml").files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    assert only(lake, "quarantine")["reason"] == "type"


def test_json_lines_may_nest_and_may_hold_integers_as_text(lake: Lake, mapped: Take) -> None:
    lines = [
        {"usage": {"in": 5}, "out": "6"},
        {"usage": {"in": 2**63}, "out": 1},
        {"usage": {"in": [1]}, "out": 1},
        {"usage": "text", "out": 3},
        {"out": 1.0},
    ]
    content = "\n".join([*(json.dumps(line) for line in lines), "torn {", '{"out": 1, "out": 2}'])
    mapping = SIMPLE.replace('"in"', '"usage.in"')
    (file,) = mapped(content, mapping, name="t.jsonl").files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (7, 3, 4)
    rows = lake.scan("usage_report").sort("segment_row").select("segment_row", "leaf_shape", "leaf_integers")
    assert rows.collect().rows() == [
        (0, "usage.input_total usage.output_total", [5, 6]),
        (3, "usage.output_total", [3]),
        (4, "usage.output_total", [1]),
    ]
    refused = lake.scan("quarantine").sort("line").select("line", "reason").collect().rows()
    assert refused == [(1, "range"), (2, "type"), (5, "not_json"), (6, "duplicate_key")]


TIMES = [
    ("2026-01-15T10:30:00Z", None, "UTC", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
    ("2026-01-15 10:30:00.1234567", None, "UTC", datetime(2026, 1, 15, 10, 30, 0, 123456, UTC)),
    ("2026-01-15T10:30:00+05:30", None, "UTC", datetime(2026, 1, 15, 5, 0, tzinfo=UTC)),
    ("2026-01-15T10:30", None, "Europe/Berlin", datetime(2026, 1, 15, 9, 30, tzinfo=UTC)),
    ("2026-01-15", None, "America/New_York", datetime(2026, 1, 15, 5, 0, tzinfo=UTC)),
    ("1/5/26", "%m/%d/%y", "UTC", datetime(2026, 1, 5, tzinfo=UTC)),
    ("1/5/26 3:04 PM", "%m/%d/%y %I:%M %p", "UTC", datetime(2026, 1, 5, 15, 4, tzinfo=UTC)),
    ("15.01.2026 10:30 +0100", "%d.%m.%Y %H:%M %z", "UTC", datetime(2026, 1, 15, 9, 30, tzinfo=UTC)),
    ("1768473000", "epoch_s", "UTC", datetime(2026, 1, 15, 10, 30, tzinfo=UTC)),
    ("1768473000.5", "epoch_s", "UTC", datetime(2026, 1, 15, 10, 30, 0, 500_000, UTC)),
    ("1768473000123", "epoch_ms", "UTC", datetime(2026, 1, 15, 10, 30, 0, 123_000, UTC)),
    ("1768473000123456", "epoch_us", "UTC", datetime(2026, 1, 15, 10, 30, 0, 123_456, UTC)),
]


@pytest.mark.parametrize(("text", "form", "zone", "moment"), TIMES)
def test_times_are_read_as_the_mapping_says(
    lake: Lake, mapped: Take, text: str, form: str | None, zone: str, moment: datetime
) -> None:
    written = f'zone = "{zone}"\n' + (f'format = "{form}"\n' if form else "")
    mapped(f"at,in,out\n{text},1,1\n", SIMPLE + f'[columns]\ntime = "at"\n[time]\n{written}')
    attempt = only(lake, "attempt")
    assert (attempt["arrived_at"], attempt["day"], attempt["undated"]) == (moment, moment.date(), False)


@pytest.mark.parametrize(
    ("text", "form", "zone"),
    [
        ("yesterday", "iso", "UTC"),
        ("1/5/26", "iso", "UTC"),  # a day that could be two is never guessed
        ("2026-13-01", "iso", "UTC"),
        ("1768473000123", "epoch_s", "UTC"),  # milliseconds
        ("-1", "epoch_s", "UTC"),
        ("2026-03-29T02:30:00", "iso", "Europe/Berlin"),  # an hour that did not exist
        ("2026-10-25T02:30:00", "iso", "Europe/Berlin"),  # an hour that was there twice
        ("0001-01-01", "iso", "UTC"),
        ("2026-01-15T10:00:00+99:00", "iso", "UTC"),  # no clock is that far from UTC
        ("2026-01-15T10:00:00+02:75", "iso", "UTC"),
        ("2026-01-15T10:00:00-18:30", "iso", "UTC"),
    ],
)
def test_a_time_that_cannot_be_read_refuses_its_row(lake: Lake, mapped: Take, text: str, form: str, zone: str) -> None:
    mapping = SIMPLE + f'[columns]\ntime = "at"\n[time]\nformat = "{form}"\nzone = "{zone}"\n'
    (file,) = mapped(f"at,in,out\n{text},1,1\n", mapping).files
    assert (file.rows_out, file.rows_quarantined) == (0, 1)
    assert (only(lake, "quarantine")["reason"], only(lake, "quarantine")["path"]) == ("bad_time", "attempt.arrived_at")


def test_a_row_without_a_time_takes_the_day_that_was_named(lake: Lake, mapped: Take) -> None:
    mapped("at,in,out\n,1,1\n", SIMPLE + '[columns]\ntime = "at"\n', day=date(2025, 7, 1))
    attempt = only(lake, "attempt")
    assert (attempt["day"], attempt["undated"]) == (date(2025, 7, 1), True)


def test_a_recorders_id_is_the_key(lake: Lake, mapped: Take) -> None:
    mapping = SIMPLE + '[columns]\nattempt_id = "id"\n'
    ids = ["0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", "0199A1B2C3D47E5F8A6B7C8D9E0F1A2C", "not-an-id"]
    (file,) = mapped("id,in,out\n" + "".join(f"{i},1,1\n" for i in ids), mapping).files
    assert (file.rows_out, file.rows_quarantined) == (2, 1)
    found = lake.scan("attempt").sort("segment_row").select("attempt_hi", "attempt_lo").collect().rows()
    assert found == [AttemptKey.from_hex(text) for text in ids[:2]]
    assert only(lake, "quarantine")["reason"] == "bad_identifier"


def test_names_that_are_none_are_left_out_and_noted(lake: Lake, mapped: Take) -> None:
    mapping = SIMPLE + '[columns]\ntask = "t"\nmodel = "m"\nrecord_id = "r"\n'
    mapped("in,out,t,m,r\n1,1,write me a poem,my own model,has blanks\n", mapping)
    attempt = only(lake, "attempt")
    assert (attempt["task"], attempt["model_served"]) == ("unassigned", "gpt-4o")
    assert only(lake, "usage_report")["notes"] == ["identifier_dropped", "name_dropped"]
    assert lake.rows("foreign_id") == 0


def test_numbers_an_attempt_cannot_have_refuse_their_row(lake: Lake, mapped: Take) -> None:
    mapping = SIMPLE + '[columns]\ninput_recounted = "r"\nqueue_us = "q"\nhttp_status = "h"\nstatus = "s"\n'
    lines = ["1,1,-1,0,200,succeeded", "1,1,1,-1,200,failed", "1,1,1,1,3000000000,failed", "1,1,1,1,200,fine"]
    (file,) = mapped("in,out,r,q,h,s\n" + "\n".join(lines) + "\n", mapping).files
    assert (file.rows_out, file.rows_quarantined) == (0, 4)
    rows = lake.scan("quarantine").sort("line").select("path", "reason").collect().rows()
    assert rows == [
        ("attempt.input_recounted", "schema"),
        ("attempt.queue_us", "negative_time"),
        ("attempt.http_status", "range"),
        ("attempt.status", "type"),
    ]


@pytest.mark.parametrize(
    ("status", "expected", "ended"),
    [
        ("succeeded", True, "complete"),
        ("failed", False, "error"),
        ("aborted", None, "cut"),
        ("rejected", False, "error"),
    ],
)
def test_the_status_tells_whether_usage_is_to_be_expected(
    lake: Lake, mapped: Take, status: str, expected: object, ended: str
) -> None:
    mapped(f"in,out,s\n1,1,{status}\n", SIMPLE + '[columns]\nstatus = "s"\n')
    assert only(lake, "attempt")["usage_expected"] is expected
    assert only(lake, "usage_report")["ended"] == ended


def test_a_table_of_recounts_alone_expects_no_usage_and_reports_none(lake: Lake, mapped: Take) -> None:
    mapping = '[source]\nname = "recounter"\n[columns]\nprovider_response_id = "id"\ninput_recounted = "n"\n'
    mapped("id,n\nchatcmpl-1,17\n", mapping)
    attempt = only(lake, "attempt")
    assert (attempt["input_recounted"], attempt["usage_expected"], attempt["status"]) == (17, None, "unknown")
    assert lake.rows("usage_report") == 0


WRITINGS = [
    ("byte order mark", b"\xef\xbb\xbfin,out\n1,2\n", "", 1),
    ("CRLF", b"in,out\r\n1,2\r\n", "", 1),
    ("semicolons", b"in;out\n1;2\n", 'separator = ";"\n', 1),
    ("quoted", b'"in","out","note"\n"1","2","a, b\nc"\n', "", 1),
    ("no quoting", b'in,out,note\n1,2,5" pipe\n', 'quote = ""\n', 1),
    ("own null", b"in,out\n1,-\n", 'nulls = ["-"]\n', 1),
    ("blank lines", b"in,out\n\n1,2\n\n", "", 1),
    ("no last line end", b"in,out\n1,2", "", 1),
    ("header alone", b"in,out\n", "", 0),
]


@pytest.mark.parametrize(("content", "written", "rows"), [w[1:] for w in WRITINGS], ids=[w[0] for w in WRITINGS])
def test_the_ways_in_which_csv_is_written(lake: Lake, mapped: Take, content: bytes, written: str, rows: int) -> None:
    mapping = SIMPLE.replace("[leaves]", written + "[leaves]")
    (file,) = mapped(content, mapping).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (rows, rows, 0)


def test_torn_rows_and_bytes_that_are_no_text_are_refused_by_row(lake: Lake, mapped: Take) -> None:
    (file,) = mapped(b"in,out,x\n1,2,3\n4,5\n6,7,8,9\n\n\xff,1,1\n1,1,\xff\n").files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (5, 2, 3)
    rows = lake.scan("quarantine").sort("line").select("line", "reason").collect().rows()
    assert rows == [(1, "schema"), (2, "schema"), (3, "type")]
    assert lake.scan("attempt").sort("segment_row").collect()["segment_row"].to_list() == [0, 4]


def test_a_file_full_of_bytes_that_are_no_text_loses_no_row(lake: Lake, mapped: Take) -> None:
    (file,) = mapped(b"in,out\n" + b"\xff\xfe\xff,1\n" * 5_000 + b"\xff\n" * 5_000 + b"1,2\n").files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (10_001, 1, 10_000)


def test_rows_are_numbered_through_all_blocks_of_a_file(
    lake: Lake, mapped: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabular, "_BLOCK", 1024)
    lines = [f"{n},{n}" for n in range(2_000)]
    lines[777] = "torn"
    lines[1_500] = "x,1"
    (file,) = mapped("in,out\n" + "\n".join(lines) + "\n").files
    assert (file.rows_in, file.rows_out) == (2_000, 1_998)
    assert lake.scan("quarantine").sort("line").collect()["line"].to_list() == [777, 1_500]
    rows = lake.scan("usage_report").select("segment_row", pl.col("leaf_integers").list.first()).collect()
    assert (rows["segment_row"] == rows["leaf_integers"]).all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'in,out\n1,"2\n3,4\n', "a quote that is never closed"),
        (b"\xff\xfei\x00n\x00", "does not begin with a line of column names in UTF-8"),
        (b"\n\n\n", "does not begin with a line of column names"),
    ],
)
def test_a_table_that_cannot_be_taken_apart_stops_the_call(lake: Lake, mapped: Take, content: bytes, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        mapped(content)
    assert lake.digests() == {}


def test_a_row_that_is_too_long_stops_the_call_without_being_quoted(
    lake: Lake, mapped: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabular, "_BLOCK", 1024)
    with pytest.raises(ContractError, match="cannot be taken apart as CSV") as caught:
        mapped("in,out,note\n1,2," + "secret" * 500 + "\n3,4,x\n")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('name = "acme"', 'nmae = "acme"'), r"'nmae' is no key of \[source\]; did you mean 'name'"),
        (('name = "acme"', ""), r"\[source\] needs a name"),
        (('name = "acme"', 'name = "my shop"'), "name must be a name"),
        (('name = "acme"', "name = 5"), "name must be text in quotes"),
        (("[leaves]", "[leafs]"), "'leafs' is no section; did you mean 'leaves'"),
        (
            ("[leaves]", '[columns]\nrecord = "x"\n[leaves]'),
            r"'record' is no key of \[columns\]; did you mean 'record_id'",
        ),
        (("[leaves]", '[time]\nzone = "Mars"\n[leaves]'), "'Mars' is no IANA time zone"),
        (("[leaves]", '[time]\nformat = "%Q"\n[leaves]'), "'%Q' is no time format"),
        (("usage.input_total", "usage.input_totl"), "did you mean 'usage.input_total'"),
        (("usage.input_total", "prompt"), "'prompt' is no leaf of api declared"),
        (('"usage.input_total" = "in"', 'usage.input_total = "in"'), "write the key in quotes"),
        (('= "in"', '= ""'), "names no column for usage.input_total"),
        (('= "in"', '= "inn"'), r"columns the file does not have \['inn'\].*its columns are in, out"),
        (("[source]", "[source"), "cannot be read"),
        (("[source]", '[source]\napi = "openai_chat"'), "'usage.input_total' is no leaf of api openai_chat"),
        (("[source]", '[source]\nseparator = "||"'), "one character each"),
        (("[source]", '[source]\nnulls = "x"'), "nulls must be a list"),
        ((SIMPLE, '[source]\nname = "acme"\n'), "names no column of the table"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_answered_with_what_can(
    lake: Lake, mapped: Take, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        mapped("in,out\n1,2\n", SIMPLE.replace(*change))
    assert lake.digests() == {}


def test_a_file_of_which_nothing_could_be_read_is_read_again_with_another_mapping(
    lake: Lake, mapped: Take, take: Take, tmp_path: Path
) -> None:
    content = "in,out,at\nx,1,1\ny,2,2\n"
    assert mapped(content).files[0].rows_quarantined == 2
    before = lake.digests()
    assert mapped(content).files[0].rows_quarantined == 2
    assert lake.digests() == before
    (file,) = mapped(content, SIMPLE.replace('"in"', '"at"')).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.skipped) == (2, 2, 0, False)
    assert lake.rows("quarantine") == 0
    assert lake.scan("segment").collect()["rows_out"].to_list() == [2]
    assert mapped(content).files[0].skipped


def test_a_column_that_is_there_twice_is_refused(mapped: Take) -> None:
    with pytest.raises(ConfigError, match=r"has twice \['in'\]"):
        mapped("in,in,out\n1,2,3\n")


def test_a_table_without_a_mapping_is_asked_for_one(lake: Lake, take: Take, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("in,out\n1,2\n")
    with pytest.raises(ConfigError, match="--mapping"):
        take([tmp_path / "t.csv"], lake, importer="mapped")


def test_what_the_call_names_stands_before_the_mapping_and_behind_the_rows(lake: Lake, mapped: Take) -> None:
    mapping = SIMPLE + '[columns]\ntask = "t"\n'
    mapped("in,out,t\n1,1,chat\n1,1,\n", mapping, task="other", provider="azure", model="gpt-x", tenant="a")
    rows = lake.scan("attempt").sort("segment_row").select("task", "provider", "model_served").collect().rows()
    assert rows == [("chat", "azure", "gpt-x"), ("other", "azure", "gpt-x")]
    assert lake.scan("attempt").select(pl.col("tenant").n_unique()).collect().item() == 1


NO_CACHE = """
[constants]
"usage.cache_read" = 0
"usage.cache_write_5m" = 0
"usage.cache_write_1h" = 0
"usage.cache_write_unknown" = 0
"""
BARE = SIMPLE + '"usage.input_uncached" = "in"\n'


@pytest.mark.parametrize(
    ("mapping", "split"), [(SIMPLE, (None, None)), (SIMPLE + NO_CACHE, (7, 0)), (BARE, (7, 0))], ids=str
)
def test_that_nothing_was_cached_is_known_where_somebody_says_so(
    lake: Lake, mapped: Take, mapping: str, split: tuple[int | None, int | None]
) -> None:
    mapped("in,out\n7,2\n,\n", mapping)
    assert lake.scan("attempt").collect().height == 2
    (report,) = lake.scan("usage_report").collect().to_dicts()  # a constant alone is no usage
    reading = read_reports(lake.scan("usage_report").collect()).row(0, named=True)
    assert (reading["input_uncached"], reading["cache_read"], reading["input_total"]) == (*split, 7)
    assert ("usage.cache_read" in report["leaf_shape"]) == ("[constants]" in mapping)


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ('"usage.cache_read" = "0"', "is a count of tokens"),
        ('"usage.cache_read" = -1', "is a count of tokens"),
        ('"usage.cache_read" = true', "is a count of tokens"),
        ('"usage.cache_reads" = 0', "did you mean 'usage.cache_read'"),
        ("usage.cache_read = 0", "write the key in quotes"),
        ('"usage.input_total" = 0', "leave one of them out"),
    ],
)
def test_a_constant_is_a_count_of_a_leaf_that_no_column_tells(mapped: Take, constants: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        mapped("in,out\n7,2\n", f"{SIMPLE}[constants]\n{constants}\n")
