"""`weighbridge quarantine`: what is held and why, read again, or let stand by somebody who says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.by_hand import judging_by_hand
from tests.cli.conftest import quietly
from tests.cli.test_validate import DAY, change, installed

from weighbridge.pipeline.lake import Lake

Run = Callable[..., Any]
TABLE = "when,in,out\n2026-01-15T10:00:00Z,5,6\n2026-01-15T11:00:00Z,five,7\n2026-01-15T12:00:00Z,8,n/a\n"
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
LENIENT = STRICT.replace('"usage.output_total" = "out"\n', "")


@pytest.fixture(scope="module")
def held_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation and its files; only to be copied."""
    folder = tmp_path_factory.mktemp("held")
    home = installed(quietly, folder)
    (folder / "calls.csv").write_text(TABLE)
    (folder / "strict.toml").write_text(STRICT)
    (folder / "lenient.toml").write_text(LENIENT)
    mapping = ("--mapping", folder / "strict.toml")
    quietly("ingest", folder / "calls.csv", *mapping, "--config", home, allowed=frozenset({1}))
    change_first(home)
    with judging_by_hand():
        quietly("validate", "--config", home, allowed=frozenset({3}))
    return folder


@pytest.fixture
def held(held_once: Path, tmp_path: Path) -> Path:
    """An installation with two lines that could not be read and a row that breaks two rules."""
    shutil.copytree(held_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "home"


def change_first(home: Path) -> None:
    """Break two rules with one row of the recorded answers; the table's lines are numbered alike."""
    lake = Lake.open(home / "lake")
    rows = lake.scan("attempt").collect()
    import polars as pl  # noqa: PLC0415 - one helper changes rows

    first = (pl.col("segment_row") == 0) & (pl.col("source") == "recorded-answers")
    changed = rows.with_columns(
        queue_us=pl.when(first).then(-1).otherwise("queue_us"),
        task=pl.when(first).then(pl.lit("two words")).otherwise("task"),
    )
    lake.replace("attempt", changed, days=lake.days("attempt"))


def entries(weighbridge: Run, home: Path, *options: object) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = weighbridge("quarantine", "ls", *options, "--json", "--config", home).json["entries"]
    return listed


def test_everything_that_is_held_is_counted_and_listed(weighbridge: Run, held: Path) -> None:
    ran = weighbridge("quarantine", "ls", "--json", "--config", held)
    told = ran.json
    assert (ran.code, told["records"]) == (1, 4)
    counts = {(each["table"], each["rule"], each["reason"], each["records"], each["files"]) for each in told["counts"]}
    assert counts == {
        (None, None, "type", 2, 1),
        ("attempt", "minimum.queue_us", "contract", 1, 1),
        ("attempt", "pattern.task", "contract", 1, 1),
    }
    assert {(each["line"], *each["values"]) for each in told["entries"]} == {
        (2, "usage.input_total"),
        (3, "usage.output_total"),
        (1, "attempt.queue_us"),
        (1, "attempt.task"),
    }
    people = weighbridge("quarantine", "ls", "--config", held)
    assert "4 records in quarantine, 4 listed" in people.out
    assert people.out.count(" calls.csv ") == 2
    assert "two words" not in people.out


def test_a_validation_tells_what_could_not_be_read(weighbridge: Run, held: Path) -> None:
    assert "2 records of these days could not be read" in weighbridge("validate", "--config", held).out
    told = weighbridge("validate", "--json", "--config", held).json
    assert (told["unread"], told["quarantined"], told["released"]) == (2, 2, 0)


def test_filters(weighbridge: Run, held: Path) -> None:
    def lines(*options: object) -> list[int]:
        return [each["line"] for each in entries(weighbridge, held, *options)]

    assert lines("--rule", "pattern.task") == [1]
    assert lines("--reason", "type") == [2, 3]
    assert lines("--table", "attempt") == [1, 1]
    assert lines("--month", "2026-02") == lines("--since", "2026-01-16") == lines("--until", "2026-01-14") == []
    digest = entries(weighbridge, held, "--reason", "type")[0]["segment"]
    assert lines("--file", digest[:8]) == [2, 3]
    assert len(lines("--limit", 1)) == 1
    assert weighbridge("quarantine", "ls", "--month", "2026-02", "--config", held).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--table", "atempt"], "there is no table 'atempt'; known are request_scope, attempt"),
        (["--rule", "minimum.queue"], "no rule is called 'minimum.queue'; did you mean minimum.queue_us"),
        (["--table", "child", "--rule", "minimum.queue_us"], "no rule of child is called 'minimum.queue_us'"),
        (["--reason", "typo"], "'typo' is not one of"),
        (["--since", "2026-01-16", "--until", "2026-01-14"], "--until 2026-01-14 is before --since 2026-01-16"),
    ],
)
def test_what_does_not_exist_is_no_empty_list(weighbridge: Run, held: Path, options: list[str], said: str) -> None:
    """An empty list with exit code 0 would say that all is well."""
    ran = weighbridge("quarantine", "ls", *options, "--config", held)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())


def test_show_tells_why_and_where_and_never_what_it_says(weighbridge: Run, held: Path) -> None:
    unread = next(each for each in entries(weighbridge, held) if each["line"] == 3)
    told = weighbridge("quarantine", "show", unread["id"][:8], "--json", "--config", held).json
    assert (told["name"], told["line"], told["reasons"]) == ("calls.csv", 3, ["type"])
    assert told["leaves"] == {"usage.input_total": 8}
    assert told["history"] == []
    rule = next(each for each in entries(weighbridge, held) if each["rule"] == "pattern.task")
    ran = weighbridge("quarantine", "show", rule["id"][:8], "--config", held)
    assert ran.code == 0
    assert "matches" in ran.out
    assert rule["segment"] in ran.out
    assert "weighbridge quarantine release" in ran.out
    assert "two words" not in ran.out


def test_an_id_that_is_none_is_wrong_usage(weighbridge: Run, held: Path) -> None:
    for text, said in (("0" * 12, "no record in quarantine has an id that begins with"), ("abc", "is no id")):
        ran = weighbridge("quarantine", "show", text, "--config", held)
        assert ran.code == 2
        assert said in ran.err


def test_retry_stores_what_can_be_read_now_and_prices_it(weighbridge: Run, held: Path, tmp_path: Path) -> None:
    def run() -> Any:
        return weighbridge(
            "quarantine",
            "retry",
            tmp_path / "calls.csv",
            "--mapping",
            tmp_path / "lenient.toml",
            "--json",
            "--config",
            held,
        )

    ran = run()
    (file,) = ran.json["files"]
    assert (ran.code, file["held"], file["stored"], file["left"]) == (1, 2, 1, 1)
    assert ran.json["days"] == [DAY]
    lake = Lake.open(held / "lake")
    assert lake.rows("priced_amount") == lake.rows("reading") == 5
    before = lake.digests()
    again = run()
    assert (again.json["files"][0]["stored"], again.json["days"]) == (0, [])
    assert lake.digests() == before
    assert [each["line"] for each in entries(weighbridge, held, "--reason", "type")] == [2]


def test_a_file_that_was_changed_is_refused_with_the_next_step(weighbridge: Run, held: Path, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(TABLE + "\n")
    ran = weighbridge("quarantine", "retry", tmp_path / "calls.csv", "--config", held)
    assert ran.code == 2
    assert "was ever taken in as it is now" in ran.err
    assert "`weighbridge quarantine show` says its digest" in ran.err


def test_released_rows_open_the_gate(weighbridge: Run, held: Path) -> None:
    first = next(each for each in entries(weighbridge, held) if each["rule"] == "pattern.task")
    ran = weighbridge(
        "quarantine", "release", first["id"][:8], "--reason", "our own test", "--by", "ann", "--config", held
    )
    assert (ran.code, "1 row may stand" in ran.out) == (0, True)
    assert weighbridge("validate", "--config", held).code == 3
    by_rule = ("--table", "attempt", "--rule", "minimum.queue_us", "--reason", "a clock went back")
    assert weighbridge("quarantine", "release", *by_rule, "--config", held).code == 0
    assert weighbridge("validate", "--config", held).code == 0
    told = Lake.open(held / "lake").scan("quarantine_status").sort("rule").collect()
    assert told.select("rule", "state", "reason").rows() == [
        ("minimum.queue_us", "released", "a clock went back"),
        ("pattern.task", "released", "our own test"),
    ]
    assert told["changed_by"][1] == "ann"


def test_a_row_that_was_released_is_shown_and_not_released_twice(weighbridge: Run, held: Path) -> None:
    entry = next(each for each in entries(weighbridge, held) if each["rule"] == "pattern.task")["id"]

    def release() -> Any:
        return weighbridge("quarantine", "release", entry, "--reason", "known", "--by", "ann", "--config", held)

    assert release().code == 0
    again = release()
    assert (again.code, "is not in quarantine any more: ann had it released on" in again.err) == (2, True)
    shown = weighbridge("quarantine", "show", entry[:8], "--json", "--config", held)
    assert (shown.code, shown.json["rule"], shown.json["line"]) == (0, "pattern.task", 1)
    assert [(each["state"], each["reason"]) for each in shown.json["history"]] == [("released", "known")]
    people = weighbridge("quarantine", "show", entry[:8], "--config", held)
    assert "It is not in quarantine any more." in people.out
    assert Lake.open(held / "lake").rows("quarantine_status") == 1


def test_a_file_that_is_gone_is_named(weighbridge: Run, held: Path, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").unlink()
    before = Lake.open(held / "lake").digests()
    ran = weighbridge("quarantine", "retry", tmp_path / "calls.csv", "--config", held)
    assert ran.code == 2
    assert "does not exist" in ran.err
    (tmp_path / "empty").mkdir()
    assert weighbridge("quarantine", "retry", tmp_path / "empty", "--config", held).code == 2
    assert Lake.open(held / "lake").digests() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--reason", "known"], "say which rows"),
        (["0" * 12, "--reason", "known", "--table", "attempt"], "and not both"),
        (["--reason", "known", "--table", "attempt"], "say which rows"),
        (
            ["--reason", "known", "--table", "attempt", "--rule", "word.status"],
            "no row of attempt is held for the rule word.status",
        ),
        (["--reason", " ", "--table", "attempt", "--rule", "pattern.task"], "needs a reason"),
    ],
)
def test_a_release_says_what_it_lacks(weighbridge: Run, held: Path, options: list[str], said: str) -> None:
    ran = weighbridge("quarantine", "release", *options, "--config", held)
    assert ran.code == 2
    assert said in ran.err


def test_what_was_never_read_cannot_be_released(weighbridge: Run, held: Path) -> None:
    unread = next(each for each in entries(weighbridge, held) if each["rule"] is None)
    ran = weighbridge("quarantine", "release", unread["id"][:8], "--reason", "known", "--config", held)
    assert ran.code == 2
    assert "could not be read, so there is no row that could stand" in ran.err


def test_a_record_that_is_mended_is_gone_after_the_next_validation(weighbridge: Run, held: Path) -> None:
    change(held, queue_us=1, task="chat")
    assert weighbridge("validate", "--config", held).code == 0
    assert entries(weighbridge, held, "--table", "attempt") == []
