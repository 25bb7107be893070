"""A text that stands in every column of texts gets into nothing that validation writes, prints or raises."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.by_hand import judged_by_hand
from tests.pipeline.validate.conftest import DAY, FILE, TODAY, Rows, account, clean

from weighbridge.pipeline.validate.quarantine import entries
from weighbridge.pipeline.validate.rule import Gravity
from weighbridge.pipeline.validate.suite import Sheet, Verdict
from weighbridge.pipeline.validate.validate import validate
from weighbridge.pipeline.validate.violation import NO_NAME
from weighbridge.schemas.tables import TABLES

WORD = "xylotheque"
CANARY = f"the {WORD} of Mrs. Miller"
NUMBER = 731_864_209_517
WRITTEN = {"quarantine", "finding", "finding_status", "quarantine_status"}


def said(path: Path) -> Iterator[bytes]:
    """What a file says: as it lies there, and unpacked where it is packed."""
    yield path.read_bytes()
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path, partitioning=None).to_pydict()).encode()


def telling(folder: Path, words: set[str]) -> set[str]:
    """The files below a folder that hold any of the words."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(word.encode() in text for text in said(path) for word in words)
    }


def canaries(rows: Rows) -> None:
    """Rows of every table: one with a text of somebody for each column of texts, one with an odd number per count."""
    for table, about in TABLES.items():
        if table in WRITTEN:
            continue
        made = [clean(table, 0)]
        for column in about.columns:
            if pa.types.is_string(column.type):
                made.append(clean(table, len(made)) | {column.name: CANARY})
            elif column.minimum is not None and column.type == pa.int64():
                made.append(clean(table, len(made)) | {column.name: -NUMBER})
        rows.put(table, *made)
    rows.put("segment", account(rows=3, importer=CANARY))


@pytest.mark.parametrize("judged", ["by hand", pytest.param("by Great Expectations", marks=pytest.mark.system)])
def test_no_text_and_no_number_of_a_row_is_in_anything_validation_writes(
    rows: Rows,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    judged: str,
    request: pytest.FixtureRequest,
) -> None:
    if judged == "by hand":  # what is not is twenty sheets with a broken rule for almost every column
        request.getfixturevalue("by_hand")
    canaries(rows)
    caplog.set_level(logging.DEBUG)
    page = tmp_path / "page.html"
    found = validate(rows.lake, today=TODAY, page=page)
    assert not found.gate
    broken = {(v.table, v.rule) for v in found.violations if v.gravity is Gravity.CRITICAL}
    patterns = {
        (table, f"pattern.{column.name}")
        for table, about in TABLES.items()
        for column in about.columns
        if column.pattern is not None and table not in WRITTEN
    }
    assert patterns <= broken, "every canary in a column with a pattern was found"
    words = {WORD, str(NUMBER)}
    put = tuple(f"lake/{about.domain}/{table}/" for table, about in TABLES.items() if table not in WRITTEN)
    assert {name for name in telling(tmp_path, words) if not name.startswith(put)} == set()
    for table in ("quarantine", "finding"):
        assert rows.lake.rows(table)
    assert telling(tmp_path / "lake", {WORD}), "the search itself finds what was put in"
    output = "".join(capfd.readouterr())
    spoken = [*found.why, *(v.sentence() for v in found.violations), *map(str, found.unjudged), output, caplog.text]
    spoken += [repr(found), *map(repr, entries(rows.lake))]
    assert not [text for text in spoken if any(word in text for word in words)]


@pytest.mark.usefixtures("by_hand")
def test_a_source_whose_name_is_none_is_not_named(rows: Rows, tmp_path: Path) -> None:
    """It is one source of its own all the same."""
    rows.attempts(clean("attempt", 1, source=CANARY), clean("attempt", 2))
    page = tmp_path / "page.html"
    validate(rows.lake, today=TODAY, page=page)
    assert NO_NAME in page.read_text(encoding="utf-8")
    assert not telling(tmp_path, {WORD}) - telling(tmp_path, {FILE})
    assert rows.lake.scan("quarantine").collect().select("source", "day").rows() == [(NO_NAME, DAY)]


def test_what_great_expectations_is_given_are_counts(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of whole numbers and nothing else: no text, no number of a row."""
    canaries(rows)
    seen: list[Sheet] = []

    def noted(sheets: list[Sheet]) -> list[Verdict]:
        seen.extend(sheets)
        return judged_by_hand(sheets)

    monkeypatch.setattr("weighbridge.pipeline.validate.validate.judge", noted)
    validate(rows.lake, today=TODAY)
    values = [value for sheet in seen for column in sheet.columns.values() for value in column if value is not None]
    counts = [value for value in values if type(value) is int]
    assert len(seen) > 20
    assert len(counts) == len(values)
    assert max(counts) < 1000
