"""Calls on their way into columns: the same keys as one by one, and whatever text a record holds."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.gateway_samples import observation, request, run, spend
from tests.pipeline.ingest.log_samples import invocation, message

from weighbridge.pipeline.ingest.door import admit
from weighbridge.pipeline.ingest.importer import Source, Staged, importers
from weighbridge.pipeline.ingest.keys import alias_key
from weighbridge.pipeline.ingest.parts import Part
from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import Ended, ForeignIdKind, ReportPart
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import keyed_key
from weighbridge.schemas.leaves import Flattened, Leaf

KEY = bytes(range(32))
DAY = date(2026, 1, 15)


def read(path: Path, name: str) -> Staged:
    source = Source(path, KEY, DAY)
    return importers()[name].read(source, importers()[name].check(source))


def lines(tmp_path: Path, *records: dict[str, Any]) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_keys_of_columns_are_those_of_single_calls(tmp_path: Path) -> None:
    ids = [
        {ForeignIdKind.TRACE_ID: "t", ForeignIdKind.RECORD_ID: "a"},
        {},
        {ForeignIdKind.CLIENT_REQUEST_ID: "q", ForeignIdKind.SPAN_ID: "s"},
        {},
    ]
    stage = Stage(Source(tmp_path / "x", KEY, DAY), "log")
    for number, named in enumerate(ids):
        stage.add(
            number, [Call({"provider": "p"}, [], named, request=named.get(ForeignIdKind.CLIENT_REQUEST_ID))], {"a": 1}
        )
    staged = stage.staged(len(ids))
    content = json.dumps({"a": 1}, separators=(",", ":")).encode()
    expected = [
        keyed_key(KEY, "log", "record_id", "a"),
        keyed_key(KEY, "log", content, 0),
        keyed_key(KEY, "log", "span_id", "s"),
        keyed_key(KEY, "log", content, 1),
    ]
    attempt = staged.tables["attempt"]
    assert list(attempt.select("attempt_hi", "attempt_lo").iter_rows()) == expected
    whole = keyed_key(KEY, "log", "request", "q")
    none = (None, None)
    assert list(attempt.select("request_hi", "request_lo").iter_rows()) == [none, none, whole, none]
    assert staged.derived is not None
    aliases = [
        alias_key(KEY, ForeignIdKind.RECORD_ID, "log", "a"),
        none,
        alias_key(KEY, ForeignIdKind.SPAN_ID, "log", "s"),
        none,
    ]
    assert list(staged.derived.select("alias_hi", "alias_lo").iter_rows()) == aliases
    told = staged.tables["foreign_id"].select("segment_row", "kind", "value").rows()
    assert told == [(0, "trace_id", "t"), (0, "record_id", "a"), (2, "client_request_id", "q"), (2, "span_id", "s")]


def test_what_a_record_says_itself_goes_before_what_is_concluded(tmp_path: Path) -> None:
    made = datetime(2026, 2, 3, 4, 5, 6, 7, UTC)
    leaves = Flattened([Leaf("usage.cost", None, "0.5"), Leaf("usage.prompt_tokens", 3, None)])
    parts = [Part(ReportPart.WHOLE, leaves, Ended.COMPLETE, ("one",)), Part(ReportPart.HEADER, Flattened(), Ended.CUT)]
    stage = Stage(Source(tmp_path / "x", KEY, DAY), "log")
    stage.add(
        5, [Call({"provider": "p", "route": "r"}, parts, {ForeignIdKind.RECORD_ID: "a"}, ("two",), "m", made)], {}
    )
    stage.add(9, [Call({"provider": None}, [], {ForeignIdKind.RECORD_ID: "b"})], {})
    staged = stage.staged(2)
    attempt = staged.tables["attempt"]
    assert attempt["route"].to_list() == ["r", "unassigned"]
    assert attempt["arrived_at"].to_list() == [made, None]
    assert attempt["day"].to_list() == [date(2026, 2, 3), DAY]
    assert attempt["undated"].to_list() == [False, True]
    report = staged.tables["usage_report"]
    assert report["segment_row"].to_list() == [5, 5]
    assert report["leaf_integers"].to_list() == [[None, 3], []]
    assert report["leaf_texts"].to_list() == [["0.5", None], None]
    assert report["notes"].to_list() == [["one", "two"], ["two"]]
    assert report["reported_at"].to_list() == [made, made]


def test_half_a_character_in_the_name_of_a_tenant_is_a_name(tmp_path: Path) -> None:
    staged = read(lines(tmp_path, spend(1, team_id="\ud800"), spend(2, team_id="\udfff")), "litellm")
    assert staged.tables["attempt"]["tenant"].n_unique() == 2


@pytest.mark.parametrize(
    ("name", "record", "field"),
    [
        ("litellm", spend(1), "startTime"),
        ("langfuse", observation(1), "startTime"),
        ("langsmith", run(1), "start_time"),
        ("helicone", request(1, response_created_at=""), "request_created_at"),
        ("claude_code", message(1, 9), "timestamp"),
        ("bedrock_invocations", invocation(1), "timestamp"),
    ],
)
@pytest.mark.parametrize("told", ["9999-12-31T23:59:59Z", "-001-01-01T00:00:00Z", 1_768_473_000_000_000_000, "24:00"])
def test_a_time_that_cannot_be_one_is_refused_and_no_time_is_none(
    tmp_path: Path, name: str, record: dict[str, Any], field: str, told: object
) -> None:
    staged = read(lines(tmp_path, record | {field: told}, record | {field: ""}), name)
    assert (staged.records, staged.refused_records) == (2, 1)
    assert staged.refused is not None
    assert staged.refused.select("line", "reason", "path").rows() == [(0, "bad_time", "attempt.arrived_at")]
    assert staged.tables["attempt"]["undated"].to_list() == [True]


def table(path: Path, *rows: dict[str, Any], encoding: str = "utf-8", twice: str | None = None) -> Path:
    names = list(rows[0])
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file)
        writer.writerow([twice if name == "user" and twice else name for name in names])
        for row in rows:
            writer.writerow([json.dumps(row[n]) if isinstance(row[n], dict | list) else row[n] for n in names])
    return path


def test_a_byte_that_is_no_text_is_refused_with_its_row(tmp_path: Path) -> None:
    # Both would be the same tenant, once the byte is replaced.
    rows = [spend(1, team_id="caf\xe9"), spend(2, team_id="caf\xe8"), spend(3)]
    staged = read(table(tmp_path / "a.csv", *rows, encoding="latin-1"), "litellm")
    assert (staged.records, staged.refused_records) == (3, 2)
    assert staged.tables["attempt"]["segment_row"].to_list() == [2]


def test_a_column_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", spend(1), twice="team_id")
    with pytest.raises(ContractError, match="the column team_id more than once"):
        read(path, "litellm")


def test_a_file_of_unreadable_records_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(spend(1))[:-1] + ', "x": 1, "x": 2}\n', encoding="utf-8")
    with pytest.raises(ContractError, match="duplicate_key"):
        read(path, "litellm")


def test_a_document_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([spend(1)]), encoding="utf-8")
    (first,) = admit([Source(path, KEY, DAY)], None)
    assert first.importer.read(first.source, first.heading).records == 1
    path.write_text(json.dumps([spend(1), spend(2)]), encoding="utf-8")
    assert first.importer.read(first.source, first.heading).records == 2
