"""Conservation: the rows of every file that was taken in are in the lake, to the row, or a receipt says why not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import real_folder
from tests.pipeline.ingest.conftest import answer_of, attempt_of, report_of
from tests.pipeline.validate.conftest import DAY, Row, Rows, clean, take

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate import accounts as accounts_module
from weighbridge.pipeline.validate.accounts import Held, hold
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.counts import count

STRATEGY: Row = {
    "strategy_id": "0" * 32,
    "name": "dense",
    "family": "dense",
    "token_events": False,
    "parameters": "{}",
}
UNREADABLE = answer_of(9, response={"id": "chatcmpl-9", "usage": {"prompt_tokens": 1.5, "completion_tokens": 2}})
PLACE: Row = {"attempt_hi": 1001, "attempt_lo": -5001, "day": DAY, "source": "agent-1"}
FOREIGN: Row = {**PLACE, "kind": "client_request_id", "value": "req-1"}
ALIAS: Row = {"alias_hi": 5, "alias_lo": 6, "kind": "client_request_id", **PLACE}


def held(lake: Lake) -> Held:
    return hold(lake, {}, None)


def balanced(lake: Lake) -> bool:
    found = held(lake)
    return not found.missing and not found.surplus


def without(lake: Lake, table: str, gone: pl.Expr) -> None:
    """Take rows out of a table behind everybody's back."""
    rows = lake.scan(table).collect()
    lake.replace(table, rows.filter(~gone), days=lake.days(table))


@pytest.fixture
def lake(rows: Rows) -> Lake:
    return rows.lake


def test_what_was_taken_in_balances_line_by_line(lake: Lake, lines: Callable[..., Path]) -> None:
    """Stored, held already, a line twice, unreadable: every record of every file is accounted for."""
    take(lake, lines("a.jsonl", answer_of(1), answer_of(2), answer_of(2), b"torn"))
    take(lake, lines("b.jsonl", answer_of(2), answer_of(3)))
    take(lake, lines("c.jsonl", UNREADABLE))
    assert held(lake).looked == 3
    assert balanced(lake)


def test_what_was_taken_in_balances_row_by_row(lake: Lake, sealed: Callable[..., Path]) -> None:
    """With tables that keep no file (strategies, aliases), refused rows and rows that are there already."""
    first = sealed(
        "a", attempt=[attempt_of(1), attempt_of(2, queue_us=-1)], usage_report=[report_of(1)], strategy=[STRATEGY],
        foreign_id=[FOREIGN], alias=[ALIAS],
    )  # fmt: skip
    take(lake, first)
    take(lake, sealed("b", attempt=[attempt_of(1), attempt_of(3)], strategy=[STRATEGY]))
    assert balanced(lake)


def test_a_record_that_is_gone_is_missed(lake: Lake, lines: Callable[..., Path], sealed: Callable[..., Path]) -> None:
    one, other = lines("a.jsonl", answer_of(1), answer_of(2)), sealed("s", attempt=[attempt_of(1), attempt_of(2)])
    digests = [file.segment for file in take(lake, one, other).files]
    for table in ("attempt", "usage_report"):
        without(lake, table, (pl.col("segment") == digests[0]) & (pl.col("segment_row") == 1))
    without(lake, "attempt", (pl.col("segment") == digests[1]) & (pl.col("segment_row") == 0))
    found = held(lake)
    assert (found.missing, found.surplus) == ({digests[0]: 1, digests[1]: 1}, {})


def test_a_line_is_there_for_as_long_as_any_of_its_rows_is(lake: Lake, lines: Callable[..., Path]) -> None:
    take(lake, lines("a.jsonl", answer_of(1), answer_of(2)))
    without(lake, "usage_report", pl.col("segment_row") == 1)
    assert balanced(lake), "its attempt is still there; the report of an attempt is no record of its own"


def test_rows_too_many_are_seen(lake: Lake, sealed: Callable[..., Path]) -> None:
    (file,) = take(lake, sealed("s", attempt=[attempt_of(1)])).files
    stray = lake.scan("attempt").collect().with_columns(attempt_lo=pl.lit(9, dtype=pl.Int64))
    lake.append("attempt", stray)
    assert held(lake).surplus == {file.segment: 1}


def test_an_account_that_does_not_say_what_is_unplaced_is_not_looked_at(
    lake: Lake, sealed: Callable[..., Path]
) -> None:
    take(lake, sealed("s", attempt=[attempt_of(1)], strategy=[STRATEGY]))
    older = lake.scan("segment").collect().with_columns(rows_unplaced=pl.lit(None, dtype=pl.Int64))
    lake.replace("segment", older, days=None)
    found = held(lake)
    assert (found.looked, found.unknown, found.missing) == (0, 1, {})


@pytest.mark.parametrize(("erased", "lawful"), [(1, True), (3, True), (0, False)])
def test_a_receipt_accounts_for_as_many_rows_as_it_says(
    lake: Lake, sealed: Callable[..., Path], erased: int, lawful: bool
) -> None:
    take(lake, sealed("s", attempt=[attempt_of(1), attempt_of(2)]))
    without(lake, "attempt", pl.col("segment_row") == 0)
    if erased:
        lake.append("receipt", pl.DataFrame([clean("receipt", 1, table_name="attempt", rows=erased)]))
    assert held(lake).lawful is lawful


def test_more_rows_gone_than_the_receipts_say_are_missed(lake: Lake, sealed: Callable[..., Path]) -> None:
    take(lake, sealed("s", attempt=[attempt_of(1), attempt_of(2)]))
    without(lake, "attempt", pl.col("segment_row") >= 0)
    lake.append("receipt", pl.DataFrame([clean("receipt", 1, table_name="attempt", rows=1)]))
    assert not held(lake).lawful


def test_only_files_asked_for_are_held(lake: Lake, sealed: Callable[..., Path]) -> None:
    digests = [take(lake, sealed(name, attempt=[attempt_of(n)])).files[0].segment for n, name in enumerate("ab", 1)]
    without(lake, "attempt", pl.col("segment").is_not_null())
    assert hold(lake, {}, {digests[0]}).missing == {digests[0]: 1}


def test_files_in_groups_are_held_as_they_are_together(
    lake: Lake, lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Any = [take(lake, lines(f"{n}.jsonl", answer_of(n), answer_of(n + 10))).files[0].segment for n in range(5)]
    without(lake, "attempt", (pl.col("segment") == taken[2]) & (pl.col("segment_row") == 0))
    without(lake, "usage_report", (pl.col("segment") == taken[2]) & (pl.col("segment_row") == 0))
    together = held(lake)
    monkeypatch.setattr(accounts_module, "_AT_ONCE", 3)
    assert held(lake) == together
    assert together.missing == {taken[2]: 1}


@pytest.mark.real
def test_recorded_files_balance(lake: Lake, shared_real: Path) -> None:
    take(lake, shared_real / "api_responses_small.jsonl")
    take(lake, shared_real / "traces" / "azure2023_code.csv")
    assert real_folder() == shared_real
    assert held(lake).looked == 2
    assert balanced(lake)


def test_days_counted_already_are_not_read_again(lake: Lake, sealed: Callable[..., Path]) -> None:
    """What was counted on a day stands for its files; the rest is read."""
    later = DAY + timedelta(days=1)
    take(lake, sealed("s", attempt=[attempt_of(1), attempt_of(2, day=later, arrived_at=None)]))
    days = lake.days("attempt")
    parts = [part for part in lake.parts("attempt") if part.day == days[0]]
    counted = {"attempt": count(lake, "attempt", contract("attempt"), days[:1], parts)}
    found = hold(lake, counted, None)
    assert (found.missing, found.surplus) == ({}, {})
