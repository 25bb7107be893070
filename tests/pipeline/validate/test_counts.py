"""Counting: the same counts whatever way rows lie in files, and from footers only what they prove."""

from __future__ import annotations

from datetime import date, timedelta

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.validate.conftest import DAY, FILE, MOMENT, Row, Rows, clean

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.words import bounds
from weighbridge.pipeline.validate import counts as counts_module
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.counts import Counted, _Judge, count
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule
from weighbridge.schemas.tables import TABLES

RULES = contract("attempt", {FILE})
DAYS = [DAY + timedelta(days=number) for number in range(5)]


def counted(lake: Lake, days: list[date | None] | None = None) -> dict[date | None, Counted]:
    parts = lake.parts("attempt")
    of = days or [*{part.day for part in parts}]
    return count(lake, "attempt", RULES, of, [part for part in parts if part.day in of])


def odd(number: int, day: date) -> Row:
    """An attempt with something wrong, another thing for each number."""
    changes: list[Row] = [
        {"queue_us": -1},
        {"drafted": 3, "accepted": 1, "rejected": 1},
        {"drafted": 3, "accepted": 4},
        {"temperature": float("inf")},
        {"status": "fine"},
        {"task": "two words"},
        {"tenant": None},
        {"arrived_at": None},
        {"undated": True},
    ]
    return clean("attempt", number, day) | {"arrived_at": None} | changes[number % len(changes)]


def told(found: dict[date | None, Counted]) -> dict[date | None, tuple[int, dict[str, int], dict[str, int]]]:
    return {
        day: (of.rows, {n: rows for n, rows in of.broken.items() if rows}, of.asked)
        for day, of in sorted(found.items())
    }


def test_small_files_read_together_and_alone_give_the_same_counts(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, day in enumerate(DAYS):
        rows.put("attempt", *(odd(number, day) for number in range(place, 20)))
        rows.put("attempt", *(odd(number, day) for number in range(40, 44)))
    together = told(counted(rows.lake))
    monkeypatch.setattr(counts_module, "_TOGETHER", 1)
    alone = told(counted(rows.lake))
    assert together == alone
    # By hand, of the first day: numbers 0-19 and 40-43, nine kinds of wrong in turn.
    numbers = [n % 9 for n in (*range(20), *range(40, 44))]
    assert together[DAY][0] == 24
    assert together[DAY][1] == {
        "minimum.queue_us": numbers.count(0),
        "identity.drafted": numbers.count(1) + numbers.count(2),
        "finite.temperature": numbers.count(3),
        "word.status": numbers.count(4),
        "pattern.task": numbers.count(5),
        "null.tenant": numbers.count(6),
        "note.undated": numbers.count(8),
    }


def test_a_day_without_rows_counts_none(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1))
    later = DAY + timedelta(days=1)
    found = counted(rows.lake, [DAY, later])
    assert (found[DAY].rows, found[later].rows) == (1, 0)
    assert not any(found[later].broken.values())


def test_a_footer_that_shows_a_value_too_small_has_the_rows_counted(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, queue_us=5), clean("attempt", 2, queue_us=-3), clean("attempt", 3))
    found = counted(rows.lake)[DAY]
    assert (found.broken["minimum.queue_us"], found.asked["minimum.queue_us"]) == (1, 2)


def test_a_file_whose_footer_says_nothing_is_read(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, queue_us=-3), clean("attempt", 2, queue_us=4))
    (part,) = rows.lake.parts("attempt")
    pq.write_table(pq.read_table(part.address, partitioning=None), part.address, write_statistics=False)
    found = counted(rows.lake)[DAY]
    assert (found.broken["minimum.queue_us"], found.asked["minimum.queue_us"]) == (1, 2)


PROOFS: list[tuple[str, Row, int | None]] = [
    # rule, what the second of two rows has, of how many rows the footer says that none breaks it
    ("minimum.queue_us", {"queue_us": 0}, 1),
    ("minimum.queue_us", {"queue_us": -1}, None),
    ("minimum.queue_us", {}, 0),
    ("null.attempt_lo", {}, 2),
    ("null.attempt_lo", {"attempt_lo": None}, None),
    ("day.arrived_at", {"arrived_at": None}, 1),
    ("day.arrived_at", {"arrived_at": MOMENT.replace(hour=0, minute=0)}, 2),
    ("day.arrived_at", {"arrived_at": MOMENT.replace(day=6, hour=0, minute=0), "revision": 0}, None),
    ("day.arrived_at", {"arrived_at": MOMENT.replace(day=4, hour=23, minute=59), "revision": 0}, None),
    ("identity.drafted", {"accepted": 3, "rejected": 3}, 0),
    ("identity.drafted", {"drafted": 6}, 0),
    ("identity.drafted", {"drafted": 6, "accepted": 7}, None),
]


@pytest.mark.parametrize(("name", "second", "asked"), PROOFS)
def test_what_a_footer_proves(name: str, second: Row, asked: int | None, rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1), clean("attempt", 2, **second))
    (part,) = rows.lake.parts("attempt")
    (rule,) = (rule for rule in RULES if rule.name == name)
    assert rule.proof is not None
    assert rule.proof(bounds(rows.lake, part), part) == asked
    assert rule.proof({}, part) is None, "a footer that says nothing proves nothing"
    assert counted(rows.lake)[DAY].broken[name] == int(asked is None)


def test_many_distinct_texts_are_looked_at_too(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identifiers are more than are remembered; each is held to its pattern as it comes."""
    monkeypatch.setattr(counts_module, "_FEW", 10)
    bad = {3: "no id at all", 77: "nor this one"}
    rows.put("foreign_id", *(clean("foreign_id", n, value=bad.get(n, f"id-{n}")) for n in range(100)))
    rules = contract("foreign_id", {FILE})
    found = count(rows.lake, "foreign_id", rules, [DAY], rows.lake.parts("foreign_id"))[DAY]
    assert {name: n for name, n in found.broken.items() if n} == {"pattern.value": 2}


def test_a_column_that_is_newer_than_a_file_is_unknown_there_and_required_ones_are_missed(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, queue_us=-1), clean("attempt", 2))
    (part,) = rows.lake.parts("attempt")
    older = pl.read_parquet(part.address, hive_partitioning=False).drop("queue_us", "tenant")
    older.write_parquet(part.address)
    found = counted(rows.lake)[DAY]
    assert found.asked["minimum.queue_us"] == 0
    assert found.broken["minimum.queue_us"] == 0
    assert found.broken["null.tenant"] == 2


def test_rows_are_tallied_by_source_and_file(rows: Rows) -> None:
    other = "c" * 64
    rows.put("attempt", clean("attempt", 1), clean("attempt", 2, source="b", segment=other), clean("attempt", 3))
    tallies = counted(rows.lake)[DAY].tallies
    assert {name: dict(of) for name, of in tallies.items()} == {
        "source": {"name": 2, "b": 1},
        "segment": {FILE: 2, other: 1},
    }


def test_texts_that_break_a_rule_are_kept_in_memory_alone(rows: Rows) -> None:
    """They find the rows again without looking at every one; nothing else is made of them."""
    rows.put("attempt", clean("attempt", 1, task="two words"), clean("attempt", 2))
    found = counted(rows.lake)[DAY]
    assert found.bad == {"pattern.task": {"two words"}}
    assert set(TABLES["quarantine"].names) & {"value", "text", "task"} == set()


def test_a_text_is_judged_once_whether_it_breaks_the_rule_or_not() -> None:
    """The same dictionary in every stretch of rows: the second time nothing is left to judge, a third text alone is."""
    asked: list[list[str]] = []

    def holds(texts: pl.Series) -> pl.Series:
        asked.append(texts.to_list())
        return texts != "bad"

    judge = _Judge(Rule("word.task", Kind.WORD, Gravity.CRITICAL, "attempt", "task", "is good", holds=holds))
    stretches = (["good", "bad", "bad"], ["bad", "good", None], ["bad", "other", "good"], ["good"])
    assert [judge.count(pa.array(each, pa.string()).dictionary_encode()) for each in stretches] == [2, 1, 1, 0]
    assert asked == [["good", "bad"], ["other"]]
    assert judge.bad == {"bad"}
