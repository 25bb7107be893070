"""Where windows begin and end, which attempts lie in them, and which servers are one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.engine.lives import told
from weighbridge.pipeline.engine.servers import Interval, servers
from weighbridge.pipeline.engine.twins import without_twins
from weighbridge.pipeline.engine.windows import Placed, placed
from weighbridge.pipeline.lake import polars_schema

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TOKENS = ("generation_tokens", None)
Row = dict[str, Any]


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def intervals(*sizes: tuple[float, float, int]) -> list[Interval]:
    """From, to and what was counted."""
    return [Interval(at(since), at(until), {TOKENS: size}) for since, until, size in sizes]


def lives(*spans: tuple[float, float]) -> pl.DataFrame:
    return told([{"attempt_lo": n, "attempt_hi": 0, "begin": at(a), "end": at(b)} for n, (a, b) in enumerate(spans)])


def shown(place: Placed) -> list[tuple[float, float, int | None]]:
    """Each window: seconds from noon, and what was counted."""
    return [
        ((w.since - NOON).total_seconds(), (w.until - NOON).total_seconds(), w.counts.get(TOKENS))
        for w in place.windows
    ]


def test_a_window_ends_where_nobody_runs() -> None:
    """The first attempt runs across the scrape at 10: the two intervals beside it are one window."""
    place = placed(intervals((0, 10, 5), (10, 20, 7), (20, 30, 9)), lives((5, 15), (21, 22)), at_rest=False)
    assert shown(place) == [(0, 20, 12), (20, 30, 9)]
    assert (place.inside.to_list(), place.across) == ([0, 1], [])


def test_where_no_counter_moved_a_window_may_end_anywhere_in_between() -> None:
    """Both attempts run across a scrape, but from 8 to 16 nothing was counted, and from 11 to 12 nobody ran."""
    place = placed(intervals((0, 8, 5), (8, 16, 0), (16, 30, 9)), lives((5, 11), (12, 20)), at_rest=False)
    assert shown(place) == [(0, 11, 5), (11, 30, 9)]
    assert place.inside.to_list() == [0, 1]


def test_what_runs_across_the_first_or_last_scrape_is_said_so() -> None:
    place = placed(intervals((0, 10, 5)), lives((-5, 3), (8, 12), (20, 21)), at_rest=False)
    assert shown(place) == [(0, 10, 5)]
    assert (place.inside.to_list(), sorted(place.across)) == ([None, None, None], [(0, 0), (0, 1)])


def test_between_scrapes_that_are_apart_nothing_is_known() -> None:
    place = placed(intervals((0, 10, 5), (20, 30, 9)), lives((1, 2), (12, 13), (22, 23)), at_rest=False)
    assert shown(place) == [(0, 10, 5), (20, 30, 9)]
    assert place.inside.to_list() == [0, None, 1]


def test_at_rest_an_attempt_that_is_alive_belongs_to_the_stretch_it_was_worked_on_in() -> None:
    """Its client waited for a second after the last token, and the way there took a moment."""
    steps = intervals((0, 1, 0), (1, 2, 30), (2, 5, 0), (5, 6, 40))
    place = placed(steps, lives((0.99, 3.0), (4.98, 6.01)), at_rest=True)
    assert [size for *_, size in shown(place) if size] == [30, 40]
    of = [place.windows[number].counts[TOKENS] for number in place.inside]
    assert of == [30, 40]


def test_the_last_scrape_of_a_day_ends_a_window_whoever_runs() -> None:
    midnight = 12 * 3600.0
    place = placed(
        intervals((midnight - 20, midnight - 10, 5), (midnight - 10, midnight + 10, 7)),
        lives((midnight - 15, midnight + 5)),
        at_rest=False,
    )
    assert [size for *_, size in shown(place)] == [5, 7]
    assert (place.inside.to_list(), place.across) == ([None], [(0, 0), (1, 0)])


def counter(minute: int, value: int, **more: Any) -> Row:
    name = f"{abs(hash((more.get('instance'), more.get('rank'), more.get('counter'), more.get('label')))):032x}"[-32:]
    return {
        "cell_hi": abs(hash(name)) % 2**60, "cell_lo": minute, "day": NOON.date(), "source": "engine-metrics",
        "engine": "vllm", "model": "m", "series": name, "counter": "generation_tokens", "unit": "tokens",
        "metric": "x", "scraped_at": NOON + timedelta(minutes=minute), "value": value, "undated": False, "revision": 0,
        **more,
    }  # fmt: skip


def found(*rows: Row, apart: Any = ()) -> dict[str, list[dict[Any, int]]]:
    """Server -> what each of its intervals counted."""
    frame = pl.DataFrame(list(rows), schema=polars_schema("engine_counter"))
    told_of = servers(frame, from_start=False, apart=apart)
    return {server.instance: [interval.counts for interval in held] for server, held in told_of.items()}


def test_data_parallel_ranks_add_up_and_tensor_parallel_ones_repeat_each_other() -> None:
    rows = [counter(m, v * m, rank=rank) for rank, v in (("engine:0", 10), ("engine:1", 5)) for m in (1, 2)]
    assert found(*rows) == {"": [{TOKENS: 15}]}
    rows = [counter(m, 10 * m, rank=f"tp_rank:{rank}") for rank in (0, 1) for m in (1, 2)]
    assert found(*rows) == {"": [{TOKENS: 10}]}


def test_blocks_and_units_that_nothing_tells_are_not_compared() -> None:
    told_in = (("blocks", "prefix_cache_queries"), (None, "drafts"))
    rows = [counter(m, m, unit=unit, counter=name) for unit, name in told_in for m in (1, 2)]
    assert found(*rows) == {}


def test_reasons_of_finished_requests_are_one_figure_and_aborts_are_none_of_it() -> None:
    reasons = ("stop", "length", "abort")
    rows = [counter(m, 3 * m, counter="requests_finished", unit="requests", label=r) for r in reasons for m in (1, 2)]
    assert found(*rows) == {"": [{("requests_finished", None): 6}]}


@pytest.mark.parametrize("apart", [(), {("vllm", "m")}])
def test_servers_that_attempts_do_not_tell_apart_are_one(apart: Any) -> None:
    one, two = "i_00000000000000aa", "i_00000000000000bb"
    rows = [counter(m, v * m, instance=server) for server, v in ((one, 10), (two, 5)) for m in (1, 2)]
    expected = {one: [{TOKENS: 10}], two: [{TOKENS: 5}]} if apart else {"": [{TOKENS: 15}]}
    assert found(*rows, apart=apart) == expected


def alias(attempt: int, name: int = 1) -> Row:
    return {"alias_hi": name, "alias_lo": name, "attempt_hi": 0, "attempt_lo": attempt}


def twins(*rows: Row, named: list[Row] | None = None) -> list[int]:
    """The attempts that are left of some that one identifier names."""
    frame = told([{"attempt_hi": 0, "attempt_lo": n, **row} for n, row in enumerate(rows)])
    names = pl.LazyFrame(named or [alias(n) for n in range(len(rows))], schema=dict.fromkeys(alias(0), pl.Int64))
    return without_twins(frame, names)["attempt_lo"].to_list()


ENGINE: Row = {"engine_counted": True}


def test_two_calls_under_one_id_meet_their_records_by_time() -> None:
    """One after the other: only one fits each."""
    early, late = {"begin": at(0), "end": at(1)}, {"begin": at(2), "end": at(3)}
    assert twins({**early, **ENGINE}, {**late, **ENGINE}, early, late) == [0, 1]


def test_two_calls_at_once_meet_by_the_limit_that_was_asked_for() -> None:
    life = {"begin": at(0), "end": at(1)}
    few, many = {**life, "max_tokens": 20}, {**life, "max_tokens": 25}
    assert twins({**few, **ENGINE}, {**many, **ENGINE}, many, few) == [0, 1]


def test_where_both_fit_both_stand_beside_each_other() -> None:
    life = {"begin": at(0), "end": at(1)}
    assert twins({**life, **ENGINE}, {**life, **ENGINE}, life, life) == [0, 1, 2, 3]


def test_an_id_of_one_attempt_takes_nobody_away() -> None:
    life = {"begin": at(0), "end": at(1)}
    assert twins({**life, **ENGINE}, life, named=[alias(0, 1), alias(1, 2)]) == [0, 1]
