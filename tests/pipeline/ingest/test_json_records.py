"""Exports as lines, as lists and as pages of an API give the same records, each with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from weighbridge.pipeline.ingest import json_records
from weighbridge.pipeline.ingest.json_records import is_json, read_records
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ContractError

ROWS = [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3}]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("rows.ndjson.gz", "\n".join(map(json.dumps, ROWS))),
        ("rows.json", json.dumps(ROWS)),
        ("rows.json", "\ufeff" + json.dumps(ROWS, indent=2)),
        ("rows.json.gz", json.dumps({"data": ROWS, "meta": {"page": 1}})),
        ("rows.jsonl", json.dumps({"data": ROWS[:2]}) + "\n" + json.dumps({"data": ROWS[2:]})),
        ("rows.json", "\n".join(map(json.dumps, ROWS)) + "\n"),
    ],
)
def test_every_form_gives_the_same_records(tmp_path: Path, name: str, text: str) -> None:
    path = written(tmp_path, name, text)
    assert is_json(path)
    found = list(read_records(path, ("data",)))
    assert [line.value for line in found] == ROWS
    assert [line.number for line in found] == [0, 1, 2]


def test_an_object_without_a_list_is_a_record(tmp_path: Path) -> None:
    path = written(tmp_path, "one.json", json.dumps(ROWS[0]))
    assert [line.value for line in read_records(path, ("data",))] == [ROWS[0]]


def test_numbers_keep_every_digit(tmp_path: Path) -> None:
    path = written(tmp_path, "one.json", '[{"n": 9007199254740993, "cost": 0.1000000000000000055}]')
    (line,) = read_records(path)
    assert line.value is not None
    assert str(line.value["n"]) == "9007199254740993"
    assert str(line.value["cost"]) == "0.1000000000000000055"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"id": 1}, 5]', QuarantineReason.NOT_AN_OBJECT),
        ('{"id": 1', QuarantineReason.NOT_JSON),
        ('[{"id": 1}', QuarantineReason.NOT_JSON),
        ('{"id": 1, "id": 2}', QuarantineReason.DUPLICATE_KEY),
        ("[" * 300 + "]" * 300, QuarantineReason.TOO_DEEP),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, text: str, reason: QuarantineReason) -> None:
    path = written(tmp_path, "odd.json", text)
    assert [line.reason for line in read_records(path) if line.value is None] == [reason]


def test_nothing_is_in_an_empty_file(tmp_path: Path) -> None:
    assert list(read_records(written(tmp_path, "none.json", " \n"))) == []


def test_a_document_that_cannot_be_held_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_DOCUMENT", 10)
    with pytest.raises(ContractError, match="JSON Lines"):
        list(read_records(written(tmp_path, "rows.json", json.dumps(ROWS))))
