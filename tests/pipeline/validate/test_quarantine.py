"""Quarantine: one entry per record and rule; what a person lets stand is kept with who, when and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import polars as pl
import pytest
from tests.pipeline.ingest.conftest import answer_of, attempt_of
from tests.pipeline.validate.conftest import DAY, FILE, TODAY, Rows, account, clean, take

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate import quarantine as quarantine_module
from weighbridge.pipeline.validate import whole
from weighbridge.pipeline.validate.quarantine import Entry, entries, entry_id, history, release
from weighbridge.pipeline.validate.validate import validate
from weighbridge.pipeline.validate.whole import beyond, release_rule
from weighbridge.schemas.errors import ConfigError

pytestmark = pytest.mark.usefixtures("by_hand")
NOW = datetime(2026, 1, 6, 9, tzinfo=UTC)
USAGE = {"prompt_tokens": 1.5, "completion_tokens": 2, "total_tokens": "many"}
TWICE = answer_of(9, response={"id": "chatcmpl-9", "created": 1767609000, "usage": USAGE})


def held(rows: Rows) -> list[Entry]:
    return entries(rows.lake)


@pytest.fixture
def broken(rows: Rows) -> Rows:
    """A lake with two rows that break one rule each, and one of them another as well."""
    rows.attempts(clean("attempt", 1, queue_us=-1, status="fine"), clean("attempt", 2, queue_us=-2))
    validate(rows.lake, today=TODAY, tables=["attempt", "segment"])
    return rows


def test_a_record_with_several_values_that_could_not_be_read_is_one_entry(
    rows: Rows, lines: Callable[..., Path]
) -> None:
    """Its numbers that could be read are there; of the rest only where it stands and why."""
    (file,) = take(rows.lake, lines("a.jsonl", answer_of(1), TWICE, b"torn")).files
    unread, torn = held(rows)
    assert (unread.segment, unread.line, unread.table, unread.rule, unread.stored) == (
        file.segment,
        1,
        None,
        None,
        False,
    )
    assert (unread.reasons, unread.paths) == (("fraction", "type"), ("usage.prompt_tokens", "usage.total_tokens"))
    assert unread.leaves == (("usage.completion_tokens", 2),)
    assert (torn.line, torn.reasons, torn.leaves) == (2, ("not_json",), ())
    assert torn.entry_id == entry_id(file.segment, 2, None, None)


def test_rows_of_two_tables_of_a_segment_are_two_entries(rows: Rows, sealed: Callable[..., Path]) -> None:
    bad = attempt_of(1, queue_us=-1, task="two words")
    child = {
        "attempt_hi": 1,
        "attempt_lo": 1,
        "day": bad["day"],
        "source": "agent-1",
        "child": 0,
        "kind": "none",
        "revision": 0,
    }
    take(rows.lake, sealed("s", attempt=[bad, attempt_of(2)], child=[child]))
    assert [(entry.table, entry.line, entry.paths) for entry in held(rows)] == [
        ("attempt", 0, ("attempt.queue_us", "attempt.task")),
        ("child", 0, ("child.kind",)),
    ]


def test_a_row_of_the_lake_is_one_entry_per_rule(broken: Rows) -> None:
    assert [(entry.table, entry.line, entry.rule, entry.reasons) for entry in held(broken)] == [
        ("attempt", 1, "minimum.queue_us", ("contract",)),
        ("attempt", 1, "word.status", ("contract",)),
        ("attempt", 2, "minimum.queue_us", ("contract",)),
    ]
    assert {entry.segment for entry in held(broken)} == {FILE}
    assert len({entry.entry_id for entry in held(broken)}) == 3


def test_a_release_keeps_who_when_and_why(broken: Rows) -> None:
    first, *_ = held(broken)
    assert release(broken.lake, [first], by="ann", reason="a clock went back", now=NOW) == 1
    (change,) = history(broken.lake, [first.entry_id])
    assert change == {
        "entry_id": first.entry_id,
        "change": 0,
        "state": "released",
        "segment": FILE,
        "line": 1,
        "table_name": "attempt",
        "rule": "minimum.queue_us",
        "changed_at": NOW,
        "changed_by": "ann",
        "reason": "a clock went back",
    }
    assert [(entry.line, entry.rule) for entry in held(broken)] == [(1, "word.status"), (2, "minimum.queue_us")]


@pytest.mark.parametrize(
    ("table", "rule", "columns", "broken"),
    [
        ("attempt", "minimum.queue_us", {"queue_us": -1}, 7),
        ("attempt", "pattern.task", {"task": "two words"}, 7),
        ("attempt", "unique.key", {"attempt_hi": 7, "attempt_lo": 7, "source": "a", "revision": 0}, 6),
        ("request_scope", "minimum.scope", {"scope": -1}, 7),
    ],
)
def test_a_rule_is_released_for_all_rows_of_the_days_that_are_held(
    rows: Rows, table: str, rule: str, columns: dict[str, Any], broken: int
) -> None:
    """Those too many to be held included, and none of another day or rule."""
    later = DAY + timedelta(days=1)
    rows.put("segment", account(rows=8))
    rows.put(table, *(clean(table, n, **columns) for n in range(7)), clean(table, 8, later, **columns))

    def looked() -> list[tuple[str, date | None, int, int, int]]:
        found = validate(rows.lake, today=TODAY, tables=[table], most=2).broken
        return sorted((v.rule, v.day, v.rows, v.held, v.released) for v in found)

    before = [each for each in looked() if each[0] != rule]
    assert beyond(rows.lake)[table, rule, DAY] == broken - 2
    chosen = [entry for entry in held(rows) if (entry.rule, entry.day) == (rule, DAY)]
    assert len(chosen) == 2
    assert release_rule(rows.lake, chosen, by="ann", reason="a clock went back", now=NOW) == broken
    left = looked()
    assert [each for each in left if each[0] != rule] == before
    assert [each for each in left if each[0] == rule] == [(rule, later, 1, 1, 0)]
    assert rows.lake.rows("quarantine_status") == broken
    assert beyond(rows.lake) == {}


def test_a_release_of_a_rule_is_decided_one_day_at_a_time_and_finished_by_the_next_where_it_was_cut_off(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [DAY, DAY + timedelta(days=1)]
    for day, how_many in zip(days, (4, 3), strict=True):
        rows.put("attempt", *(clean("attempt", how_many * 10 + n, day, queue_us=-1) for n in range(how_many)))
    validate(rows.lake, today=days[1], tables=["attempt"], most=1)
    chosen = [entry for entry in held(rows) if entry.rule == "minimum.queue_us"]
    decided = Mock(wraps=quarantine_module.decide, side_effect=[DEFAULT, Killed])
    monkeypatch.setattr(whole, "decide", decided)
    with pytest.raises(Killed):
        release_rule(rows.lake, chosen, by="ann", reason="a clock went back", now=NOW)
    assert [{entry.day for entry in call.args[1]} for call in decided.call_args_list] == [{day} for day in days]
    assert [len(call.args[1]) for call in decided.call_args_list] == [4, 3]
    monkeypatch.undo()
    assert [entry for entry in held(rows) if entry.rule == "minimum.queue_us"] == chosen
    release_rule(rows.lake, chosen, by="ann", reason="a clock went back", now=NOW)
    assert rows.lake.rows("quarantine_status") == 7
    assert [entry for entry in held(rows) if entry.rule == "minimum.queue_us"] == []


def test_rows_of_a_table_that_is_not_kept_by_day_are_held_on_all_their_days(rows: Rows) -> None:
    starts = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 2)]
    rows.put("invoice_line", *(clean("invoice_line", n, period_start=at, currency="?") for n, at in enumerate(starts)))
    rows.put("segment", account(rows=3))
    validate(rows.lake, today=TODAY, tables=["invoice_line"])
    assert len([entry for entry in held(rows) if entry.rule == "pattern.currency"]) == 3
    assert beyond(rows.lake) == {}


def test_the_same_release_again_changes_nothing(broken: Rows) -> None:
    chosen = held(broken)[:2]
    release(broken.lake, chosen, by="ann", reason="known", now=NOW)
    before = {table: broken.lake.version(table) for table in ("quarantine", "quarantine_status")}
    assert release(broken.lake, chosen, by="bob", reason="known too", now=NOW) == 0
    assert {table: broken.lake.version(table) for table in before} == before
    assert {change["changed_by"] for change in history(broken.lake, [entry.entry_id for entry in chosen])} == {"ann"}


@pytest.mark.parametrize(
    ("by", "reason", "now", "said"),
    [
        ("ann", "  ", NOW, "needs a reason"),
        ("two words", "known", NOW, "cannot be used as a name"),
        ("ann", "known", NOW.replace(tzinfo=None), "no time zone"),
    ],
)
def test_a_release_without_who_when_or_why_is_refused(
    broken: Rows, by: str, reason: str, now: datetime, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        release(broken.lake, held(broken), by=by, reason=reason, now=now)
    assert len(held(broken)) == 3
    assert history(broken.lake, [entry.entry_id for entry in held(broken)]) == []


def test_what_was_never_read_cannot_stand(rows: Rows, lines: Callable[..., Path]) -> None:
    take(rows.lake, lines("a.jsonl", answer_of(1), b"torn"))
    with pytest.raises(
        ConfigError, match="could not be read, so there is no row that could stand; read its file again"
    ):
        release(rows.lake, held(rows), by="ann", reason="known", now=NOW)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["decide", "remove"])
def test_killed_before_either_of_its_commits_a_release_is_finished_by_the_next(
    broken: Rows, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    chosen = held(broken)

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(quarantine_module, step, killed)
        with pytest.raises(Killed):
            release(broken.lake, chosen, by="ann", reason="known", now=NOW)
    assert held(broken) == chosen
    assert release(broken.lake, chosen, by="ann", reason="known", now=NOW) == 3
    assert held(broken) == []
    assert broken.lake.rows("quarantine_status") == 3


def test_entries_of_some_days_and_files(broken: Rows) -> None:
    assert entries(broken.lake, first=TODAY) == []
    assert len(entries(broken.lake, last=DAY)) == 3
    assert entries(broken.lake, files=["b" * 64]) == []
    assert len(entries(broken.lake, where=pl.col("rule") == "word.status")) == 1


def test_an_empty_quarantine_has_no_entries(tmp_path: Path) -> None:
    assert entries(Lake.create(tmp_path)) == []
