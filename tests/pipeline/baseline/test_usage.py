"""One row per attempt, with what its usage adds up to, whoever wrote about it and on whichever day."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.pipeline.baseline.memory import DAY, TENANT, Memory, later

from weighbridge.pipeline.baseline import usage
from weighbridge.pipeline.baseline.usage import BETWEEN, SERIES, attempts_with_usage

ORDER = ["attempt_lo"]


def told(memory: Memory) -> list[dict[str, Any]]:
    """All rows, by key, with the parts of their label."""
    rows = (
        pl.concat(attempts_with_usage(memory, DAY, later(3))).sort(ORDER).with_columns(pl.col("series").cast(pl.String))
    )
    found = rows.to_dicts()
    for row in found:
        row |= dict(zip(SERIES, row.pop("series").split(BETWEEN), strict=True))
    return found


def test_an_attempt_stands_beside_its_usage() -> None:
    memory = Memory()
    memory.call(1, 250, model_revision="r1", tokenizer="o200k", strategy_id="a" * 32)
    (row,) = told(memory)
    assert (row["day"], row["hour"], row["input_uncached"], row["cache_read"]) == (DAY, 9, 250, 0)
    assert [row[name] for name in SERIES] == [TENANT, "chat", "m-1", "r1", "o200k", "a" * 32]


@pytest.mark.parametrize("batch", [1, 1_500_000], ids=["a day at a time", "all at once"])
def test_usage_of_another_day_comes_home(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """Booked after midnight, or dated two days later: it is the attempt's day that counts, and it counts once."""
    monkeypatch.setattr(usage, "BATCH", batch)
    memory = Memory()
    for number, late in ((1, 0), (2, 1), (3, 2)):
        memory.attempt(number)
        memory.reading(number, day=later(late), input_uncached=number)
    memory.call(4, day=later(1))
    assert [(row["day"], row["input_uncached"]) for row in told(memory)] == [
        (DAY, 1),
        (DAY, 2),
        (DAY, 3),
        (later(1), 100),
    ]


@pytest.mark.parametrize("batch", [1, 1_500_000], ids=["a day at a time", "all at once"])
def test_usage_nobody_saw_the_attempt_of_belongs_to_nobody(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(usage, "BATCH", batch)
    memory = Memory()
    memory.call(1)
    memory.reading(2, model="m-9", day=later(1))
    row = told(memory)[1]
    assert [row[name] for name in ("tenant", "task", "model", "hour", "attempt_number")] == [
        *("unassigned", "unassigned", "m-9", None, None)
    ]


@pytest.mark.parametrize("batch", [1, 1_500_000], ids=["a day at a time", "all at once"])
def test_two_accounts_of_an_attempt_are_one_attempt(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """The client names the tenant, the engine the tokenizer; one of them is a day late."""
    monkeypatch.setattr(usage, "BATCH", batch)
    for day in (DAY, later(1)):
        memory = Memory()
        memory.call(1)
        memory.attempt(1, source="engine", tenant="unassigned", task="unassigned", tokenizer="o200k", day=day)
        (row,) = told(memory)
        assert (row["tenant"], row["task"], row["input_uncached"]) == (TENANT, "chat", 100)
        if day == DAY:
            assert row["tokenizer"] == "o200k"


def test_the_last_revision_counts() -> None:
    memory = Memory()
    memory.attempt(1)
    memory.attempt(1, revision=1, task="code")
    memory.reading(1, input_uncached=5)
    memory.reading(1, input_uncached=7, revision=1)
    (row,) = told(memory)
    assert (row["task"], row["input_uncached"]) == ("code", 7)


def test_children_add_up_and_what_one_leaves_open_is_open() -> None:
    memory = Memory()
    memory.attempt(1)
    memory.reading(1, child=0, input_uncached=10, cache_read=1)
    memory.reading(1, child=1, input_uncached=20, cache_read=None)
    (row,) = told(memory)
    assert (row["input_uncached"], row["cache_read"]) == (30, None)


def test_repetitions_and_second_sources_are_not_added() -> None:
    memory = Memory()
    memory.call(1, 40)
    memory.reading(1, report=1, input_uncached=40)
    memory.reading(1, source="gateway", input_uncached=41)
    (row,) = told(memory)
    assert row["input_uncached"] == 40


@pytest.mark.parametrize(
    "columns",
    [{"verdict": "CONTRADICTORY"}, {"verdict": "UNKNOWN"}, {"input_uncached": 2**40 + 1}, {"input_uncached": -5}],
    ids=["contradictory", "unknown", "implausible", "negative"],
)
def test_what_cannot_be_believed_is_not_measured(columns: dict[str, Any]) -> None:
    memory = Memory()
    memory.attempt(1)
    memory.reading(1, **columns)
    (row,) = told(memory)
    assert row["input_uncached"] is None


def test_attempts_whose_keys_share_a_half_are_two() -> None:
    memory = Memory()
    memory.call(1, 10)
    memory.attempt(1, attempt_hi=99)
    memory.reading(1, attempt_hi=99, input_uncached=20)
    assert sorted(row["input_uncached"] for row in told(memory)) == [10, 20]


def test_an_attempt_without_usage_is_an_attempt() -> None:
    memory = Memory()
    memory.attempt(1, status="rejected")
    memory.attempt(2, attempt_number=2)
    memory.reading(2)
    assert [(row["attempt_number"], row["input_uncached"]) for row in told(memory)] == [(1, None), (2, 100)]


def test_no_rows_no_rows() -> None:
    assert list(attempts_with_usage(Memory(), DAY, later(3))) == []
