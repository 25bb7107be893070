"""What cannot be read: each kind of damage ends as one named quarantine row, or as an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.pipeline.ingest import json_lines
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ConfigError, ContractError

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Answer = Callable[..., dict[str, object]]


def raw(usage: str) -> bytes:
    """A recorded answer whose usage object is written as `usage`, byte for byte."""
    head = '{"id":"r_x","provider":"openai","api_flavor":"openai_chat","status":200,"response":{"usage":'
    return (head + usage + "}}").encode()


DAMAGE = [
    ("malformed", b'{"provider": "openai", "resp', "not_json", ""),
    ("plain text", b"the quick brown fox", "not_json", ""),
    ("not UTF-8", b'{"provider": "\xff\xfe", "response": {}}', "not_json", ""),
    ("a list", b'[{"provider": "openai"}]', "not_an_object", ""),
    ("a number", b"42", "not_an_object", ""),
    ("no provider", b'{"response": {"usage": {"prompt_tokens": 1}}}', "missing_field", "provider"),
    ("no answer", b'{"provider": "openai", "model": "gpt-4o"}', "missing_field", "response"),
    ("key twice", b'{"provider": "openai", "provider": "azure", "response": {}}', "duplicate_key", ""),
    ("usage key twice", raw('{"prompt_tokens": 1, "prompt_tokens": 2}'), "duplicate_key", ""),
    ("10,000 levels", raw('{"a":' * 10_000 + "1" + "}" * 10_000), "too_deep", ""),
    ("10,000 lists", raw("[" * 10_000 + "]" * 10_000), "too_deep", ""),
    ("9 levels of usage", raw('{"usage":' * 9 + "1" + "}" * 9), "too_deep", None),
    ("fraction", raw('{"prompt_tokens": 1.5}'), "fraction", "usage.prompt_tokens"),
    ("NaN", raw('{"prompt_tokens": NaN}'), "not_a_number", "usage.prompt_tokens"),
    ("infinity", raw('{"prompt_tokens": -Infinity}'), "not_a_number", "usage.prompt_tokens"),
    ("2**63", raw('{"prompt_tokens": 9223372036854775808}'), "range", "usage.prompt_tokens"),
    ("1e300", raw('{"prompt_tokens": 1e300}'), "range", "usage.prompt_tokens"),
    ("5,000 digits", raw('{"prompt_tokens": ' + "9" * 5_000 + "}"), "range", "usage.prompt_tokens"),
    ("text", raw('{"prompt_tokens": "12"}'), "type", "usage.prompt_tokens"),
    ("boolean", raw('{"prompt_tokens": true}'), "type", "usage.prompt_tokens"),
    ("usage is a text", raw('"12 tokens"'), "not_an_object", "usage"),
    ("usage is a number", raw("12"), "not_an_object", "usage"),
    ("usage is a boolean", raw("false"), "not_an_object", "usage"),
    ("600 counts", raw(json.dumps({f"k{n}": n for n in range(600)})), "too_large", None),
]


def test_a_damaged_line_is_quarantined_by_reason_and_place_and_the_others_are_read(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    """Each kind of damage has a good line before and after it."""
    lines = [line for number, row in enumerate(DAMAGE) for line in (answer(number), row[1])]
    (file,) = take([jsonl("a.jsonl", [*lines, answer(len(DAMAGE))])], lake).files
    good, bad = len(DAMAGE) + 1, len(DAMAGE)
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (good + bad, good, bad, 0)
    rows = lake.scan("quarantine").sort("line").collect().rows(named=True)
    for row, (name, _, reason, path), line in zip(rows, DAMAGE, range(1, good + bad, 2), strict=True):
        assert (row["reason"], row["line"], row["segment"]) == (reason, line, file.segment), name
        assert (row["importer"], row["source"]) == ("recorded_answers", "recorded-answers")
        assert path is None or row["path"] == path, name
    assert lake.scan("attempt").sort("segment_row").collect()["segment_row"].to_list() == list(range(0, good + bad, 2))


def test_a_damaged_line_alone_with_a_good_one_is_quarantined(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    (file,) = take([jsonl("a.jsonl", [DAMAGE[0][1], answer(1)])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (2, 1, 1, 0)


KEPT = [
    ("negative", "-5", -5, None),
    ("2**63 - 1", "9223372036854775807", 2**63 - 1, None),
    ("integral float", "12.0", 12, ["integral_float"]),
    ("exponent", "1.2e1", 12, ["integral_float"]),
    ("zero", "0", 0, None),
]


def test_what_is_odd_but_readable_is_kept_as_it_stands(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    lines = [
        raw('{"prompt_tokens": ' + text + "}").replace(b"r_x", f"r_{place}".encode())
        for place, (_, text, _, _) in enumerate(KEPT)
    ]
    assert take([jsonl("a.jsonl", lines)], lake).files[0].rows_out == len(KEPT)
    reports = lake.scan("usage_report").sort("segment_row").collect().rows(named=True)
    for report, (name, _, number, notes) in zip(reports, KEPT, strict=True):
        assert (report["leaf_integers"], report["notes"]) == ([number], notes), name


NO_TIMES = ("1e500000", "1E+999999999", "NaN", "-Infinity", "true", '"soon"', "[1]", "1768473000.5")


def test_a_time_that_is_none_leaves_the_record_undated(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    lines = [
        raw('{"prompt_tokens": 5}')
        .replace(b"r_x", f"r_{place}".encode())
        .replace(b'"response":{', b'"response":{"created":' + created.encode() + b",")
        for place, created in enumerate(NO_TIMES)
    ]
    (file,) = take([jsonl("a.jsonl", [*lines, answer(1)])], lake).files
    assert (file.rows_in, file.rows_out) == (9, 9)
    attempts = lake.scan("attempt").sort("segment_row").collect()
    assert attempts["undated"].to_list() == [True] * 8 + [False]
    assert attempts["arrived_at"][:8].null_count() == 8


def test_a_negative_count_reads_as_contradictory_not_as_an_error(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("a.jsonl", [raw('{"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4}')])], lake)
    (reading,) = lake.scan("reading").collect().rows(named=True)
    assert reading["verdict"] == "CONTRADICTORY"
    assert "negative_count" in reading["flags"]


def test_a_refused_record_keeps_the_leaves_that_could_be_read(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    take([jsonl("a.jsonl", [raw('{"prompt_tokens": 1.5, "completion_tokens": 7, "total_tokens": 2.5}')])], lake)
    rows = lake.scan("quarantine").sort("path").collect()
    assert rows["path"].to_list() == ["usage.prompt_tokens", "usage.total_tokens"]
    assert rows["leaf_shape"].to_list() == ["usage.completion_tokens"] * 2
    assert rows["leaf_integers"].to_list() == [[7], [7]]
    assert lake.rows("attempt") == 0


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_read(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines.read_lines, "__kwdefaults__", {"max_line": 2_000})
    long = json.dumps(answer(2) | {"note": "x" * 9_000}).encode()
    result = take([jsonl("a.jsonl", [answer(1), long, answer(3)])], lake)
    assert (result.files[0].rows_out, result.files[0].rows_quarantined) == (2, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["line"]) == ("too_large", 1)


def test_a_byte_order_mark_and_blank_lines_are_no_records(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    first = b"\xef\xbb\xbf" + json.dumps(answer(1)).encode()
    result = take([jsonl("a.jsonl", [first, b"", b"   ", answer(2)])], lake)
    assert (result.files[0].rows_in, result.files[0].rows_out) == (2, 2)
    assert lake.scan("attempt").sort("segment_row").collect()["segment_row"].to_list() == [0, 3]


def test_a_file_without_a_last_line_end_loses_nothing(lake: Lake, take: Take, tmp_path: Path, answer: Answer) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(answer(1)).encode() + b"\n" + json.dumps(answer(2)).encode())
    assert take([path], lake).files[0].rows_out == 2


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.csv", "empty.parquet", "empty.txt"])
def test_an_empty_file_has_no_rows_and_is_remembered(lake: Lake, take: Take, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    (file,) = take([path], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (0, 0, 0, 0)
    assert file.segment == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert lake.rows("segment") == 1
    assert take([path], lake).files[0].skipped


def test_a_file_of_blank_lines_has_no_rows(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    (file,) = take([jsonl("a.jsonl", [b"", b""])], lake, importer="recorded_answers").files
    assert (file.rows_in, file.rows_out) == (0, 0)


UNREADABLE = [
    (
        "no JSON in any line",
        "a.jsonl",
        b"text\nmore text\n",
        "recorded_answers",
        "no JSON object in any of its records",
    ),
    ("another format", "a.jsonl", b'{"some": "thing"}\n', None, "no importer recognises"),
    ("another format", "a.csv", b"x,y\n1,2\n", None, "--mapping"),
    ("torn gzip", "a.jsonl.gz", b"\x1f\x8b\x08\x00torn", "recorded_answers", "damaged gzip file"),
    ("no table", "a.parquet", b"PAR1nonsense", None, "no importer recognises"),
]


@pytest.mark.parametrize(
    ("name", "content", "importer", "said"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
def test_a_file_that_cannot_be_read_at_all_stops_the_call_before_anything_is_written(
    lake: Lake,
    take: Take,
    jsonl: Jsonl,
    answer: Answer,
    tmp_path: Path,
    name: str,
    content: bytes,
    importer: str | None,
    said: str,
) -> None:
    bad = tmp_path / name
    bad.write_bytes(content)
    with pytest.raises(ContractError, match=said) as caught:
        take([jsonl("good.jsonl", [answer(1)]), bad], lake, importer=importer)
    assert name in str(caught.value)
    assert lake.digests() == {}


def test_a_file_that_is_not_there_is_named(lake: Lake, take: Take, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"there is no file .*nowhere\.jsonl"):
        take([tmp_path / "nowhere.jsonl"], lake)


def test_a_folder_without_input_is_named(lake: Lake, take: Take, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ContractError, match="holds no sealed segment"):
        take([tmp_path / "folder"], lake)


def test_a_folder_stands_for_what_lies_in_it(lake: Lake, take: Take, tmp_path: Path, answer: Answer) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.jsonl", "a.jsonl", ".hidden.jsonl", "notes.txt"):
        (folder / name).write_text(json.dumps(answer(len(name))) + "\n")
    assert [file.name for file in take([folder], lake).files] == ["a.jsonl", "b.jsonl"]


def test_an_unknown_importer_is_answered_with_the_nearest_one(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Answer
) -> None:
    with pytest.raises(ConfigError, match="did you mean 'recorded_answers'"):
        take([jsonl("a.jsonl", [answer(1)])], lake, importer="recorded-answer")


@pytest.mark.parametrize("what", ["provider", "model", "task"])
def test_a_sentence_is_no_name(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer, what: str) -> None:
    with pytest.raises(ConfigError, match=f"the {what} given for a.jsonl is no name") as caught:
        take([jsonl("a.jsonl", [answer(1)])], lake, **{what: "what a lovely day"})
    assert "lovely" not in str(caught.value)


def test_a_key_that_is_too_short_is_refused(lake: Lake, take: Take, jsonl: Jsonl, answer: Answer) -> None:
    with pytest.raises(ConfigError, match="16 to 64 are needed"):
        take([jsonl("a.jsonl", [answer(1)])], lake, key=b"short")
