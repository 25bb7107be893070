"""Retry: what can be read now is stored exactly once, nothing else of the file is, and the account moves along."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
from tests.conftest import KEY
from tests.pipeline.ingest.conftest import answer_of, attempt_of
from tests.pipeline.validate.conftest import DAY, TODAY, Rows, clean, take

from weighbridge.pipeline.ingest.answers import calls, is_answer
from weighbridge.pipeline.ingest.importers import recorded_answers
from weighbridge.pipeline.ingest.importers import segment as segment_importer
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate import accounts, whole
from weighbridge.pipeline.validate.counts import count
from weighbridge.pipeline.validate.quarantine import entries, entry_id, history
from weighbridge.pipeline.validate.retry import Retried, RetryResult, retry
from weighbridge.pipeline.validate.validate import validate
from weighbridge.schemas.errors import ConfigError, ContractError, LakeError
from weighbridge.schemas.segment import sha256_file

pytestmark = pytest.mark.usefixtures("by_hand")
NOW = datetime(2026, 1, 6, 9, tzinfo=UTC)
TABLE = "when,in,out\n2026-01-05T10:00:00Z,5,6\n2026-01-05T11:00:00Z,five,7\n2026-01-05T12:00:00Z,8,n/a\n"
STRICT = """
[source]
name = "gateway"
provider = "openai"
[columns]
time = "when"
[leaves]
"usage.input_total" = "in"
"usage.output_total" = "out"
"""
# The same file, read without the column of outputs: what stood in it no longer matters.
LENIENT = STRICT.replace('"usage.output_total" = "out"\n', "")
RENAMED = LENIENT.replace('"gateway"', '"another"')
TABLES = ("attempt", "usage_report", "reading", "alias", "foreign_id")


def again(lake: Lake, *paths: Path, **given: Any) -> RetryResult:
    usual: dict[str, Any] = {"key": KEY, "by": "ann", "now": NOW}
    return retry(paths, lake, **usual | given)


def figures(result: RetryResult) -> list[tuple[int, int, int, int]]:
    return [(file.held, file.stored, file.replaced, file.left) for file in result.files]


def account(lake: Lake) -> tuple[int, ...]:
    names = ["rows_in", "rows_out", "rows_quarantined", "rows_duplicate"]
    return lake.scan("segment").select(names).collect().row(0)


def sound(lake: Lake) -> bool:
    """Whether the account adds up and is what the lake and its quarantine hold."""
    rows_in, out, quarantined, duplicate = account(lake)
    held = accounts.hold(lake, {}, None)
    unread = [entry for entry in entries(lake) if not entry.stored]
    return (
        rows_in == out + quarantined + duplicate
        and not held.missing
        and not held.surplus
        and quarantined == len(unread)
    )


@pytest.fixture
def lake(rows: Rows) -> Lake:
    return rows.lake


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "calls.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def mapping(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "mapping.toml"
        path.write_text(text)
        return path

    return write


def test_another_mapping_reads_what_one_did_not(lake: Lake, table: Path, mapping: Callable[[str], Path]) -> None:
    take(lake, table, mapping=mapping(STRICT))
    assert account(lake) == (3, 1, 2, 0)
    done = again(lake, table, mapping=mapping(LENIENT))
    assert figures(done) == [(2, 1, 0, 1)]
    assert account(lake) == (3, 2, 1, 0)
    assert sound(lake)
    stored = lake.scan("attempt").sort("segment_row").collect()
    assert stored["segment_row"].to_list() == [0, 2]
    assert lake.scan("reading").collect().height == 2
    assert [(entry.line, entry.reasons) for entry in entries(lake)] == [(1, ("type",))]
    assert done.days == (DAY,)


def test_more_records_held_than_the_account_knows_of_is_an_error(
    lake: Lake, table: Path, mapping: Callable[[str], Path]
) -> None:
    take(lake, table, mapping=mapping(STRICT))
    lake.replace("segment", lake.scan("segment").collect().with_columns(rows_quarantined=pl.lit(1)), days=None)
    before = lake.digest("quarantine")
    with pytest.raises(LakeError, match=r"2 records of the file .* its account knows of 1: .* Restore the lake"):
        again(lake, table, mapping=mapping(STRICT))
    assert lake.digest("quarantine") == before


def test_a_second_retry_changes_nothing(lake: Lake, table: Path, mapping: Callable[[str], Path]) -> None:
    take(lake, table, mapping=mapping(STRICT))
    again(lake, table, mapping=mapping(LENIENT))
    digests, versions = lake.digests(), {name: lake.version(name) for name in lake.digests()}
    done = again(lake, table, mapping=mapping(LENIENT))
    assert (figures(done), done.days) == ([(1, 0, 0, 1)], ())
    assert lake.digests() == digests
    assert {name: lake.version(name) for name in digests} == versions


def test_rows_that_were_stored_are_not_stored_again_under_another_name(
    lake: Lake, table: Path, mapping: Callable[[str], Path]
) -> None:
    """A mapping that names another source gives every line another key; only what was held takes it."""
    take(lake, table, mapping=mapping(STRICT))
    again(lake, table, mapping=mapping(RENAMED))
    stored = lake.scan("attempt").sort("segment_row").select("segment_row", "source").collect().rows()
    assert stored == [(0, "gateway"), (2, "another")]
    assert sound(lake)


def test_what_was_read_at_last_is_noted(lake: Lake, table: Path, mapping: Callable[[str], Path]) -> None:
    take(lake, table, mapping=mapping(STRICT))
    entry = next(entry for entry in entries(lake) if entry.line == 2)
    again(lake, table, mapping=mapping(LENIENT))
    (change,) = history(lake, [entry.entry_id])
    assert (change["state"], change["changed_by"], change["changed_at"], change["reason"]) == ("read", "ann", NOW, None)


def test_nothing_of_a_file_of_which_nothing_is_held_is_read(lake: Lake, lines: Callable[..., Path]) -> None:
    path = lines("a.jsonl", answer_of(1))
    take(lake, path)
    done = again(lake, path)
    assert done == RetryResult((Retried("a.jsonl", sha256_file(path), 0, 0, 0, 0),), ())


def test_a_file_that_was_changed_is_refused(lake: Lake, table: Path, mapping: Callable[[str], Path]) -> None:
    take(lake, table, mapping=mapping(STRICT))
    table.write_text(TABLE.replace("five", "5"))
    with pytest.raises(ContractError, match="none of the 1 files named was ever taken in as it is now"):
        again(lake, table, mapping=mapping(LENIENT))
    assert account(lake) == (3, 1, 2, 0)


def test_of_a_folder_only_the_file_with_the_digest_is_read(
    lake: Lake, table: Path, mapping: Callable[[str], Path], tmp_path: Path
) -> None:
    take(lake, table, mapping=mapping(STRICT))
    folder = tmp_path / "exports"
    folder.mkdir()
    shutil.copy(table, folder / "renamed.csv")
    (folder / "other.csv").write_text(TABLE + "\n")
    done = again(lake, folder, mapping=mapping(LENIENT))
    assert [(file.name, file.stored) for file in done.files] == [("renamed.csv", 1)]
    assert sound(lake)


def test_a_file_of_which_nothing_could_be_read_is_read_at_last(
    lake: Lake, mapping: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("when,in,out\n2026-01-05T10:00:00Z,5,n/a\n2026-01-05T11:00:00Z,6,n/a\n")
    take(lake, path, mapping=mapping(STRICT))
    assert account(lake) == (2, 0, 2, 0)
    assert figures(again(lake, path, mapping=mapping(LENIENT))) == [(2, 2, 0, 0)]
    assert account(lake) == (2, 2, 0, 0)
    assert sound(lake)


def test_a_record_that_turns_out_to_be_there_already_is_a_duplicate(
    lake: Lake, lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another export brought the same answer meanwhile: it is counted once."""
    odd = answer_of(1) | {"extra": "x"}
    with monkeypatch.context() as patch:
        refuse_odd(patch)
        take(lake, lines("a.jsonl", odd, answer_of(2)))
    take(lake, lines("b.jsonl", answer_of(1)))
    assert figures(again(lake, lines("a.jsonl", odd, answer_of(2)))) == [(1, 1, 0, 0)]
    accounts_by_rows = (
        lake.scan("segment").sort("rows_in").select("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")
    )
    assert accounts_by_rows.collect().rows() == [(1, 1, 0, 0), (2, 1, 0, 1)]
    assert lake.rows("attempt") == 2


def refuse_odd(patch: pytest.MonkeyPatch) -> None:
    """A version of the importer that cannot read lines with something extra."""
    patch.setattr(recorded_answers, "is_answer", lambda record: "extra" not in record and is_answer(record))


def test_a_newer_version_reads_rows_of_a_sealed_segment(
    lake: Lake, sealed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older one did not know the word; the segment is acknowledged when something of it could be read."""
    path = sealed("s", attempt=[attempt_of(1), attempt_of(2)])

    def strict(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame({"row": [0, 1], "path": [f"{table}.status"] * 2, "reason": ["schema"] * 2})

    with monkeypatch.context() as patch:
        patch.setattr(segment_importer, "misfits", strict)
        take(lake, path)
    assert (account(lake), list(path.parent.glob("*.ack"))) == ((2, 0, 2, 0), [])
    assert figures(again(lake, path)) == [(2, 2, 0, 0)]
    assert lake.scan("attempt").collect()["segment_row"].sort().to_list() == [0, 1]
    assert sound(lake)
    assert len(list(path.parent.glob("*.ack"))) == 1
    assert lake.scan("segment").collect()["rows_unplaced"].to_list() == [0]


def test_rows_too_many_to_be_held_are_replaced_as_those_that_are(
    lake: Lake, lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a file of which none is held."""
    paths = [lines(f"{name}.jsonl", answer_of(n), answer_of(n + 1)) for n, name in ((1, "a"), (3, "b"))]

    def wrong(*arguments: Any, **named: Any) -> list[Call]:
        found = calls(*arguments, **named)
        for call in found:
            call.attempt["model_requested"] = "two words"
        return found

    with monkeypatch.context() as patch:
        patch.setattr(recorded_answers, "calls", wrong)
        take(lake, *paths)
    validate(lake, today=TODAY, tables=["attempt"], most=1)
    (entry,) = entries(lake)
    files = again(lake, *paths).files
    assert [file.replaced for file in files] == [2, 2]
    assert [file.left for file in files] == [int(file.segment == entry.segment) for file in files]
    assert validate(lake, today=TODAY, tables=["attempt", "segment"]).gate
    assert lake.rows("attempt") == 4


def test_of_rows_too_many_to_be_held_only_those_of_the_files_that_are_retried_are_looked_at(
    lake: Lake, mapping: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No day is read on which these files have no rows, and no entry is made of another file's row."""
    for name, days in (("a", ["05"]), ("b", ["05", "06"])):
        lines = (f"2026-01-{day}T1{hour}:00:00Z,5,6\n" for day in days for hour in range(3))
        (tmp_path / f"{name}.csv").write_text("when,in,out\n" + "".join(lines))
        named = LENIENT.replace('"gateway"', f'"{name}"')
        take(lake, tmp_path / f"{name}.csv", mapping=mapping(named))
    lake.replace("attempt", lake.scan("attempt").collect().with_columns(queue_us=-1), days=lake.days("attempt"))
    validate(lake, today=TODAY, tables=["attempt"], most=1)
    looked, made = Mock(wraps=count), Mock(wraps=entry_id)
    monkeypatch.setattr(whole, "count", looked)
    monkeypatch.setattr(whole, "entry_id", made)
    path = tmp_path / "a.csv"
    assert [file.replaced for file in again(lake, path, mapping=mapping(LENIENT)).files] == [3]
    assert [call.args[3] for call in looked.call_args_list] == [[DAY]]
    assert [call.args[0] for call in made.call_args_list] == [sha256_file(path)] * 3


def test_a_row_that_breaks_a_rule_is_replaced_where_its_line_reads_differently(
    lake: Lake, lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The importer wrote a name that is none; mended, it writes another, and the rest of the file stays as it is."""
    path = lines("a.jsonl", answer_of(1), answer_of(2))

    def wrong(*arguments: Any, **named: Any) -> list[Call]:
        found = calls(*arguments, **named)
        for call in found:
            if call.ids and "r_1" in call.ids.values():
                call.attempt["model_requested"] = "two words"
        return found

    with monkeypatch.context() as patch:
        patch.setattr(recorded_answers, "calls", wrong)
        take(lake, path)
    assert not validate(lake, today=TODAY, tables=["attempt"]).gate
    done = again(lake, path)
    assert figures(done) == [(0, 0, 1, 1)]
    assert account(lake) == (2, 2, 0, 0)
    assert lake.scan("attempt").sort("segment_row").select(
        "segment_row", "model_requested", "revision"
    ).collect().rows() == [
        (0, "gpt-4o", 0),
        (1, "gpt-4o", 0),
    ]
    assert lake.rows("usage_report") == lake.rows("reading") == 2
    assert validate(lake, today=TODAY, tables=["attempt"]).gate
    assert entries(lake) == []
    assert figures(again(lake, path)) == [(0, 0, 0, 0)]


def test_a_row_whose_line_reads_the_same_stays(lake: Lake, lines: Callable[..., Path]) -> None:
    path = lines("a.jsonl", answer_of(1, model="two words"))
    take(lake, path)
    lake.replace(
        "attempt",
        lake.scan("attempt").collect().with_columns(drafted=1, accepted=2, rejected=0),
        days=lake.days("attempt"),
    )
    validate(lake, today=TODAY, tables=["attempt"])
    assert figures(again(lake, path)) == [(0, 0, 1, 1)], "it reads as it did before somebody changed it"
    versions = {name: lake.version(name) for name in TABLES}
    assert figures(again(lake, path)) == [(0, 0, 0, 1)]
    assert {name: lake.version(name) for name in TABLES} == versions


def test_a_file_that_was_not_taken_in_to_its_end_is_to_be_taken_in_first(
    lake: Lake, table: Path, mapping: Callable[[str], Path], tmp_path: Path
) -> None:
    take(lake, table, mapping=mapping(STRICT))
    lake.replace("segment", lake.scan("segment").collect().clear(), days=None)
    other = tmp_path / "b.csv"
    other.write_text(TABLE + "2026-01-05T13:00:00Z,1,1\n")
    take(lake, other, mapping=mapping(STRICT))
    with pytest.raises(ContractError, match="was not taken in to its end; run the same `weighbridge ingest` again"):
        again(lake, table, other, mapping=mapping(LENIENT))


def test_a_name_or_importer_that_cannot_be_used_is_refused_before_anything_is_written(
    lake: Lake, table: Path, mapping: Callable[[str], Path]
) -> None:
    take(lake, table, mapping=mapping(STRICT))
    before = lake.digests()
    with pytest.raises(ConfigError, match="there is no importer 'maped'"):
        again(lake, table, mapping=mapping(LENIENT), importer="maped")
    with pytest.raises(ConfigError, match="cannot be used as a name"):
        again(lake, table, mapping=mapping(LENIENT), by="two words")
    assert lake.digests() == before


def test_what_an_agent_could_not_read_has_no_line_to_be_read_again(lake: Lake, sealed: Callable[..., Path]) -> None:
    unread = clean("quarantine", 0, segment="d" * 64, importer="capture", reason="type", path="usage.prompt_tokens")
    path = sealed("s", attempt=[attempt_of(1)], quarantine=[unread | {"rule": None, "table_name": None}])
    take(lake, path)
    assert figures(again(lake, path)) == [(0, 0, 0, 1)]


class Killed(BaseException):
    """The process ends here."""


def interrupted(patch: pytest.MonkeyPatch, commits: int) -> None:
    """End the process when it is about to commit for the (commits + 1)th time."""
    done = 0
    commit = Lake._commit

    def until(lake: Lake, *arguments: Any) -> None:
        nonlocal done
        if done == commits:
            raise Killed
        done += 1
        commit(lake, *arguments)

    patch.setattr(Lake, "_commit", until)


@pytest.mark.system
def test_killed_before_any_of_its_commits_a_retry_comes_to_the_same_end(
    new_rows: Callable[[], Rows], table: Path, mapping: Callable[[str], Path]
) -> None:
    def begun() -> Lake:
        lake = new_rows().lake
        take(lake, table, mapping=mapping(STRICT))
        return lake

    whole = begun()
    again(whole, table, mapping=mapping(LENIENT))
    for commits in range(30):
        lake = begun()
        with pytest.MonkeyPatch.context() as patch:
            interrupted(patch, commits)
            try:
                again(lake, table, mapping=mapping(LENIENT))
                break
            except Killed:
                pass
        again(lake, table, mapping=mapping(LENIENT))
        assert lake.digests() == whole.digests(), f"killed before commit {commits + 1}"
        assert sound(lake)
    assert commits >= 6, "attempt, report, reading, account, decision, quarantine"


def test_a_record_without_a_time_lies_on_the_day_its_file_was_taken_in_under(
    lake: Lake, mapping: Callable[[str], Path], tmp_path: Path
) -> None:
    """However many stored rows of the file break a rule on days of their own."""
    path = tmp_path / "calls.csv"
    path.write_text("when,in,out\n" + "2026-01-02T10:00:00Z,5,6\n" * 3 + ",8,n/a\n")
    take(lake, path, mapping=mapping(STRICT))
    lake.replace("attempt", lake.scan("attempt").collect().with_columns(queue_us=-1), days=lake.days("attempt"))
    validate(lake, today=TODAY, tables=["attempt"])
    assert sorted(entry.stored for entry in entries(lake)) == [False, True, True, True]
    again(lake, path, mapping=mapping(LENIENT))
    read = lake.scan("attempt").filter(pl.col("segment_row") == 3).select("undated", "day").collect()
    assert read.rows() == [(True, DAY)]


def test_killed_while_a_row_is_replaced_it_is_not_lost(
    new_rows: Callable[[], Rows], lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between taking the old row out and storing the new one, quarantine still says what there is to do."""
    path = lines("a.jsonl", answer_of(1), answer_of(2))

    def begun() -> Lake:
        lake = new_rows().lake
        take(lake, path)
        rows = (
            lake.scan("attempt")
            .collect()
            .with_columns(
                model_requested=pl.when(pl.col("segment_row") == 0)
                .then(pl.lit("two words"))
                .otherwise("model_requested")
            )
        )
        lake.replace("attempt", rows, days=lake.days("attempt"))
        validate(lake, today=TODAY, tables=["attempt"])
        return lake

    whole = begun()
    again(whole, path)
    for commits in range(30):
        lake = begun()
        with pytest.MonkeyPatch.context() as patch:
            interrupted(patch, commits)
            try:
                again(lake, path)
                break
            except Killed:
                pass
        again(lake, path)
        assert lake.digests() == whole.digests(), f"killed before commit {commits + 1}"
    assert commits >= 4
