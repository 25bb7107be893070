"""Two sources that know a call by one identifier meet in one attempt; where that is not certain, they stay apart."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.sampling import some

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import keyed_key

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Row = Callable[..., dict[str, object]]
Segment = Callable[..., Path]
DAY = date(2026, 1, 15)


@pytest.fixture
def recorded(segment: Segment, attempt: Row) -> Callable[..., Path]:
    """A sealed segment with one attempt per (number, response id)."""

    def write(name: str, *pairs: tuple[int, str], day: date = DAY) -> Path:
        ids = [
            {
                "attempt_hi": 1000 + number,
                "attempt_lo": -5000 - number,
                "day": day,
                "source": "agent-1",
                "kind": "provider_response_id",
                "value": value,
            }
            for number, value in pairs
        ]
        return segment(name, attempt=[attempt(number, day=day) for number, _ in pairs], foreign_id=ids)

    return write


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """A usage export as CSV with its mapping: rows of (row id, response id, tokens)."""

    def write(name: str, *rows: tuple[str, str, int]) -> Path:
        path = tmp_path / name
        path.write_text("row,response,tokens\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
        (tmp_path / "export.toml").write_text(
            '[source]\nname = "export"\nprovider = "openai"\n'
            '[columns]\nrecord_id = "row"\nprovider_response_id = "response"\n'
            '[leaves]\n"usage.input_total" = "tokens"\n'
        )
        return path

    return write


def keys(lake: Lake, table: str, source: str) -> list[tuple[int, int]]:
    rows = lake.scan(table).filter(pl.col("source") == source).sort("attempt_hi")
    return rows.select("attempt_hi", "attempt_lo").collect().rows()


def ambiguous(lake: Lake) -> list[str]:
    """Identifiers under which the lake has several attempts."""
    several = pl.struct("attempt_hi", "attempt_lo").n_unique() > 1
    found = lake.scan("alias").group_by("alias_hi", "alias_lo", "kind").agg(several.alias("several"))
    return found.filter("several").collect()["kind"].to_list()


def test_a_record_takes_the_key_of_the_attempt_that_has_its_response_id(
    lake: Lake, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    take([recorded("s", (1, "chatcmpl-1"))], lake)
    take([jsonl("a.jsonl", [answer(1), answer(2)])], lake)
    assert keys(lake, "attempt", "agent-1") == [(1001, -5001)]
    for table in ("attempt", "usage_report", "alias", "foreign_id", "reading"):
        assert (1001, -5001) in keys(lake, table, "recorded-answers"), table
    assert len(keys(lake, "attempt", "recorded-answers")) == 2
    assert ambiguous(lake) == []


def test_files_of_one_call_meet_whatever_their_order(
    lake: Lake, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    result = take([jsonl("a.jsonl", [answer(1)]), recorded("s", (1, "chatcmpl-1"))], lake)
    assert [file.name for file in result.files] == ["a.jsonl", "s.segment"]
    assert keys(lake, "usage_report", "recorded-answers") == [(1001, -5001)]


def test_a_recorded_attempt_that_comes_late_takes_over_what_was_stored(
    tmp_path: Path, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    segment, answers = recorded("s", (1, "chatcmpl-1")), jsonl("a.jsonl", [answer(1), answer(2)])
    early, late = Lake.create(tmp_path / "early"), Lake.create(tmp_path / "late")
    take([segment], early)
    take([answers], early)
    take([answers], late)
    result = take([segment], late)
    assert date(2026, 1, 15) in result.days
    assert late.digests() == early.digests()
    # The same rows in another file are still known.
    again = take([jsonl("b.jsonl", [answer(2), answer(1)])], late)
    assert again.files[0].rows_duplicate == 2


def test_two_exports_meet_in_the_attempt_of_the_first(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row, export: Segment, tmp_path: Path, key: bytes
) -> None:
    take([jsonl("a.jsonl", [answer(1)])], lake)
    take([export("e.csv", ("17", "chatcmpl-1", 11), ("18", "chatcmpl-9", 12))], lake, mapping=tmp_path / "export.toml")
    first = keyed_key(key, "recorded-answers", "record_id", "r_1")
    assert set(keys(lake, "usage_report", "export")) == {first, keyed_key(key, "export", "record_id", "18")}


def test_equal_record_ids_of_two_sources_mean_nothing(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row, export: Segment, tmp_path: Path
) -> None:
    take([jsonl("a.jsonl", [answer(1, id="17", response={})])], lake)
    take([export("e.csv", ("17", "", 11))], lake, mapping=tmp_path / "export.toml")
    assert lake.scan("attempt").select(pl.col("attempt_lo").n_unique()).collect().item() == 2
    assert ambiguous(lake) == []


def test_one_response_id_under_two_attempts_is_kept_twice_and_matches_nothing(
    lake: Lake, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row, key: bytes
) -> None:
    take([recorded("s", (1, "chatcmpl-1"), (2, "chatcmpl-1"))], lake)
    take([jsonl("a.jsonl", [answer(1)])], lake)
    assert keys(lake, "attempt", "agent-1") == [(1001, -5001), (1002, -5002)]
    own = keyed_key(key, "recorded-answers", "record_id", "r_1")
    assert keys(lake, "usage_report", "recorded-answers") == [own]
    assert ambiguous(lake) == ["provider_response_id"]
    assert lake.scan("alias").filter(pl.col("kind") == "provider_response_id").collect().height == 3


def test_two_records_of_one_source_under_one_response_id_stay_two(
    tmp_path: Path, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    other = answer(2, response={"id": "chatcmpl-1", "usage": {"prompt_tokens": 9}})
    segment = recorded("s", (1, "chatcmpl-1"))
    files = [segment, jsonl("a.jsonl", [answer(1)]), jsonl("b.jsonl", [other])]
    together, apart = Lake.create(tmp_path / "together"), Lake.create(tmp_path / "apart")
    take(files, together)
    for path in files:
        take([path], apart)
    assert together.digests() == apart.digests()
    assert len(set(keys(apart, "usage_report", "recorded-answers"))) == 2
    assert (1001, -5001) in keys(apart, "usage_report", "recorded-answers")
    assert ambiguous(apart) == ["provider_response_id"]


def test_a_recorded_attempt_takes_over_nothing_where_the_identifier_is_ambiguous(
    lake: Lake, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    take([jsonl("a.jsonl", [answer(1), answer(2, response={"id": "chatcmpl-1"})])], lake)
    before = keys(lake, "attempt", "recorded-answers")
    take([recorded("s", (1, "chatcmpl-1"))], lake)
    assert keys(lake, "attempt", "recorded-answers") == before
    assert ambiguous(lake) == ["provider_response_id"]


def test_recorded_attempts_are_never_moved(
    lake: Lake, take: Take, recorded: Segment, segment: Segment, attempt: Row
) -> None:
    take([recorded("s", (1, "chatcmpl-1"))], lake)
    foreign = {
        "attempt_hi": 77,
        "attempt_lo": 78,
        "day": DAY,
        "source": "agent-2",
        "kind": "provider_response_id",
        "value": "chatcmpl-1",
    }
    take(
        [segment("t", attempt=[attempt(1, attempt_hi=77, attempt_lo=78, source="agent-2")], foreign_id=[foreign])], lake
    )
    assert keys(lake, "attempt", "agent-1") == [(1001, -5001)]
    assert keys(lake, "attempt", "agent-2") == [(77, 78)]
    assert ambiguous(lake) == ["provider_response_id"]


def test_a_move_that_was_cut_off_is_finished_by_the_next_run(
    tmp_path: Path, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment, answers = recorded("s", (1, "chatcmpl-1")), jsonl("a.jsonl", [answer(1), answer(2)])
    whole = Lake.create(tmp_path / "whole")
    take([answers], whole)
    take([segment], whole)
    before = Lake.create(tmp_path / "before")
    take([answers], before)
    plain = Lake.replace
    for commits in some(range(7), 4):
        lake = Lake.open(shutil.copytree(tmp_path / "before", tmp_path / f"cut{commits}"))
        left = [commits]

        def replace(self: Lake, *arguments: object, left: list[int] = left, **more: object) -> None:
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            plain(self, *arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(Lake, "replace", replace)
        with suppress(KeyboardInterrupt):
            take([segment], lake)
        monkeypatch.setattr(Lake, "replace", plain)
        take([segment], lake)
        assert lake.digests() == whole.digests(), commits


def test_a_record_that_was_matched_is_known_again_in_another_file(
    lake: Lake, take: Take, recorded: Segment, jsonl: Jsonl, answer: Row
) -> None:
    take([recorded("s", (1, "chatcmpl-1"))], lake)
    take([jsonl("a.jsonl", [answer(1)])], lake)
    result = take([jsonl("b.jsonl", [answer(1), answer(3)])], lake)
    assert (result.files[0].rows_out, result.files[0].rows_duplicate) == (1, 1)
    assert ambiguous(lake) == []


def test_traces_name_many_attempts_and_match_none(lake: Lake, take: Take, segment: Segment, attempt: Row) -> None:
    ids = [
        {
            "attempt_hi": 1000 + n,
            "attempt_lo": -5000 - n,
            "day": DAY,
            "source": "agent-1",
            "kind": "trace_id",
            "value": "trace-1",
        }
        for n in (1, 2)
    ]
    take([segment("s", attempt=[attempt(1), attempt(2)], foreign_id=ids)], lake)
    assert lake.rows("foreign_id") == 2
    assert lake.rows("alias") == 0
