"""Conservation: the rows of every file that was taken in are in the lake, to the row, or a receipt says why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import real_folder
from tests.pipeline.ingest.conftest import DAY as TAKEN
from tests.pipeline.ingest.conftest import answer_of, attempt_of, report_of
from tests.pipeline.validate.conftest import DAY, Row, Rows, clean, take

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.validate import accounts as accounts_module
from weighbridge.pipeline.validate.accounts import Held, hold
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.counts import count
from weighbridge.pipeline.validate.excuses import Span, excused
from weighbridge.schemas.receipt import receipt_id

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


def receipt(number: int, rows: int, first: date | None = TAKEN, last: date | None = TAKEN, **changes: Any) -> Row:
    """A receipt of attempts that went on these days."""
    said: Row = {"scope": "tenant=x", "method": "deleted", "table_name": "attempt", "key_ids": [], **changes}
    row = dict.fromkeys(polars_schema("receipt")) | clean("receipt", number, rows=rows, **said)
    row |= {"first_day": first, "last_day": last}
    return row | {"receipt_id": receipt_id(row)}


def lost(lake: Lake, *receipts: Row) -> int:
    """How many rows are gone of which these receipts do not speak."""
    for row in receipts:
        lake.append("receipt", pl.DataFrame([row], schema=polars_schema("receipt")))
    return sum(held(lake).lost.values())


A_WEEK = timedelta(days=7)
RECEIPTS: list[tuple[str, Row, int]] = [
    ("as many rows", receipt(1, 2), 0),
    ("more rows", receipt(1, 9), 0),
    ("fewer rows", receipt(1, 1), 1),
    ("a longer time", receipt(1, 2, TAKEN - A_WEEK, TAKEN + A_WEEK), 0),
    ("any time", receipt(1, 2, None, None), 0),
    ("before these days", receipt(1, 9, TAKEN - A_WEEK, TAKEN - timedelta(days=1)), 2),
    ("after these days", receipt(1, 9, TAKEN + timedelta(days=1), TAKEN + A_WEEK), 2),
    ("rows that stay", receipt(1, 9, method="cleared"), 2),
    ("another table", receipt(1, 9, table_name="reading"), 2),
    ("the pack of a close", receipt(1, 9, scope="close=2026-01; tenant=x"), 2),
    ("a figure that was changed", receipt(1, 2) | {"rows": 9}, 2),
]


@pytest.mark.parametrize(("told", "left"), [each[1:] for each in RECEIPTS], ids=[each[0] for each in RECEIPTS])
def test_a_receipt_accounts_for_as_many_rows_as_it_says_of_the_days_it_names(
    lake: Lake, sealed: Callable[..., Path], told: Row, left: int
) -> None:
    take(lake, sealed("s", attempt=[attempt_of(number) for number in range(3)]))
    without(lake, "attempt", pl.col("segment_row") > 0)
    assert lost(lake) == 2
    assert lost(lake, told) == left


def test_a_row_of_a_receipt_excuses_one_row_of_one_file_also_of_files_nobody_asked_about(
    lake: Lake, sealed: Callable[..., Path]
) -> None:
    files = [take(lake, sealed(name, attempt=[attempt_of(n)])).files[0].segment for n, name in enumerate("abc", 1)]
    without(lake, "attempt", pl.col("segment").is_not_null())
    assert lost(lake, receipt(1, 2)) == 1
    assert sum(len(hold(lake, {}, {file}).lost) for file in files) == 1


def test_files_whose_rows_are_all_gone_are_asked_about_by_their_days(
    lake: Lake, sealed: Callable[..., Path], lines: Callable[..., Path]
) -> None:
    digests = {
        file.segment for file in take(lake, sealed("s", attempt=[attempt_of(1)]), lines("a.jsonl", answer_of(2))).files
    }
    accounts = lake.scan("segment").collect()
    assert set(accounts["first_day"]) == set(accounts["last_day"]) == set(lake.days("attempt"))
    for table in ("attempt", "usage_report"):
        without(lake, table, pl.col("segment").is_not_null())
    assert set(hold(lake, {}, set(), lake.days("reading")).missing) == digests
    assert hold(lake, {}, set(), [TAKEN + A_WEEK]).missing == {}


spans = st.tuples(st.integers(0, 5), st.integers(0, 3)).map(
    lambda of: (TAKEN + timedelta(days=of[0]), TAKEN + timedelta(days=of[0] + of[1]))
)


@given(
    files=st.lists(st.tuples(spans, st.integers(1, 4)), max_size=5),
    receipts=st.lists(st.tuples(spans, st.integers(1, 4)), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_as_much_is_excused_as_can_be(files: list[tuple[Span, int]], receipts: list[tuple[Span, int]]) -> None:
    """By the theorem of minimal cuts: the set of files that receipts cover worst tells how much is lost."""
    erased = Counter[Span]()
    for of, rows in receipts:
        erased[of] += rows
    missing = {str(number): rows for number, (_, rows) in enumerate(files)}
    days = {str(number): of for number, (of, _) in enumerate(files)}
    found = excused(missing, days, erased)
    assert all(0 < rows <= missing[file] for file, rows in found.items())

    def short(chosen: Iterable[str]) -> int:
        mine = [days[file] for file in chosen]
        cover = sum(n for of, n in erased.items() if any(a <= of[1] and of[0] <= b for a, b in mine))
        return sum(missing[file] for file in chosen) - cover

    worst = max(short(chosen) for n in range(len(files) + 1) for chosen in combinations(missing, n))
    assert sum(missing.values()) - sum(found.values()) == worst


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
    later = TAKEN + timedelta(days=1)
    take(lake, sealed("s", attempt=[attempt_of(1), attempt_of(2, day=later, arrived_at=None)]))
    days = lake.days("attempt")
    parts = [part for part in lake.parts("attempt") if part.day == days[0]]
    counted = {"attempt": count(lake, "attempt", contract("attempt"), days[:1], parts)}
    found = hold(lake, counted, None)
    assert (found.missing, found.surplus) == ({}, {})
