"""Random worlds of an engine and its attempts: every cause that was put in comes out with its amount, in any order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.engine.engine import weigh_engines
from weighbridge.pipeline.engine.facts import Facts, facts, kinds
from weighbridge.pipeline.engine.gaps import Gap, explained
from weighbridge.pipeline.engine.lives import told
from weighbridge.pipeline.engine.servers import servers
from weighbridge.pipeline.engine.windows import placed
from weighbridge.pipeline.lake import Lake, polars_schema

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
Row = dict[str, Any]
NAMES = {
    "prompt_tokens": "tokens",
    "generation_tokens": "tokens",
    "prefix_cache_queries": "tokens",
    "requests_finished": "requests",
    "finished_prompt_tokens": "tokens",
    "finished_generation_tokens": "tokens",
}


@dataclass
class Engine:
    """What an engine counts and who ran on it, call by call; one call is over before the next begins."""

    now: datetime = START
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    began: datetime = START
    attempts: list[Row] = field(default_factory=list)
    scrapes: list[Row] = field(default_factory=list)
    injected: dict[str, dict[str, int]] = field(default_factory=dict)
    sums_told: bool = True

    def scrape(self) -> None:
        """Its counters as they stand."""
        self.now += timedelta(seconds=1)
        for number, (name, value) in enumerate(self.sums.items()):
            if not self.sums_told and name.startswith("finished_"):
                continue
            self.scrapes.append(
                {
                    "cell_hi": len(self.scrapes), "cell_lo": number, "day": self.now.date(), "source": "engine-metrics",
                    "engine": "vllm", "model": "m", "series": f"{number:032x}", "counter": name, "unit": NAMES[name],
                    "metric": f"vllm:{name}", "scraped_at": self.now, "started_at": self.began, "value": value,
                    "undated": False, "revision": 0,
                }
            )  # fmt: skip
        self.now += timedelta(seconds=1)

    def call(self, prompt: int, output: int, *, kind: str = "done", choices: int = 1) -> None:
        """One call: `done`, `aborted`, `prefill`, `unseen` or `health`."""
        begin, self.now = self.now, self.now + timedelta(seconds=2)
        row: Row = {"begin": begin, "end": self.now, "engine_counted": True}
        self.sums["prefix_cache_queries"] += prompt * choices
        if kind != "prefill":
            self.sums["prompt_tokens"] += prompt * choices
            self.sums["generation_tokens"] += output
        if kind in ("done", "unseen", "health"):
            self.sums["requests_finished"] += choices
            self.sums["finished_prompt_tokens"] += prompt * choices
            self.sums["finished_generation_tokens"] += output
        if kind in ("done", "health"):
            row |= {"input": prompt, "output": output, "requests": choices, "several": choices}
            row |= {"health": kind == "health"}
            if choices > 1:
                row |= {"prompts": prompt * choices, "outputs": output}
                self.note("children", prompt * (choices - 1), 0, prompt * (choices - 1))
        if kind in ("aborted", "prefill"):
            row |= {"unfinished": True, "engine_counted": False}
        if kind != "unseen":
            self.attempts.append(row)
        if kind == "aborted":
            self.note("aborted", prompt, output, prompt)
        if kind == "prefill":
            self.note("aborted_in_prefill", 0, 0, prompt)
        if kind == "unseen":
            self.note("unobserved", prompt, output, prompt)
        if kind == "health":
            self.note("health_checks", prompt, output, prompt)

    def note(self, cause: str, prompt: int, output: int, queries: int) -> None:
        """Remember what a call adds to each counter beyond the attempts."""
        for name, size in (("prompt_tokens", prompt), ("generation_tokens", output), ("prefix_cache_queries", queries)):
            held = self.injected.setdefault(name, {})
            held[cause] = held.get(cause, 0) + size

    def restart(self) -> None:
        """It is started anew: what it counted since the last scrape is lost."""
        self.sums, self.began = dict.fromkeys(NAMES, 0), self.now
        self.now += timedelta(seconds=1)

    def gaps(self, order: random.Random) -> list[Gap]:
        """All windows and counters, from rows in any order."""
        scraped, lives = list(self.scrapes), [
            {"attempt_lo": number, "attempt_hi": 0, "day": row["begin"].date(), **row}
            for number, row in enumerate(self.attempts)
        ]  # fmt: skip
        order.shuffle(scraped)
        order.shuffle(lives)
        counters = pl.DataFrame(scraped, schema=polars_schema("engine_counter"))
        ((_, intervals),) = servers(counters, from_start=False).items()
        frame = told(lives)
        place = placed(intervals, frame, at_rest=False)
        rows = frame.with_columns(window=place.inside, across=pl.lit(value=False)).drop_nulls("window")
        if place.across:
            numbers, places = zip(*place.across, strict=True)
            over = frame[list(places)].with_columns(
                window=pl.Series(numbers, dtype=pl.Int64), across=pl.lit(value=True)
            )
            rows = pl.concat([rows, over])
        beside: dict[int, list[Facts]] = facts(place.windows, kinds(rows))
        return [explained(each) for number in sorted(beside) for each in beside[number]]


def totals(gaps: list[Gap], counter: str) -> dict[str, int]:
    """Cause -> what it explains of a counter in all windows."""
    out: dict[str, int] = {}
    for gap in gaps:
        if gap.facts.figure.series == (counter, None):
            for part in gap.causes:
                out[part.cause.code] = out.get(part.cause.code, 0) + part.amount
    return out


CALLS = st.tuples(
    st.sampled_from(["done", "done", "done", "aborted", "prefill", "unseen", "health", "scrape"]),
    st.integers(1, 10**6),
    st.integers(1, 10**4),
    st.integers(1, 3),
)


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(CALLS, max_size=25), seed=st.integers(0, 3))
def test_what_was_put_in_comes_out_with_its_amount(calls: list[tuple[str, int, int, int]], seed: int) -> None:
    """An engine that keeps sums of finished requests says every cause exactly, and nothing is left."""
    engine = Engine()
    engine.scrape()
    for kind, prompt, output, choices in calls:
        if kind == "scrape":
            engine.scrape()
        else:
            engine.call(prompt, output, kind=kind, choices=choices if kind == "done" else 1)
    engine.scrape()
    gaps = engine.gaps(random.Random(seed))
    for gap in gaps:
        assert gap.attempted + gap.explained + gap.residual == gap.facts.counted
        assert gap.residual == 0
        assert len({part.cause.code for part in gap.causes}) == len(gap.causes)
    for counter, causes in engine.injected.items():
        assert totals(gaps, counter) == {cause: size for cause, size in causes.items() if size}, counter


@settings(max_examples=25, deadline=None)
@given(calls=st.lists(CALLS, max_size=15), seed=st.integers(0, 3))
def test_without_sums_of_finished_requests_bounds_hold_what_is_left(
    calls: list[tuple[str, int, int, int]], seed: int
) -> None:
    """Aborted attempts and calls nobody saw cannot always be told apart then; the sum is the same, nothing is left."""
    engine = Engine(sums_told=False)
    engine.scrape()
    for kind, prompt, output, choices in calls:
        if kind == "scrape":
            engine.scrape()
        else:
            engine.call(prompt, output, kind=kind, choices=choices if kind == "done" else 1)
    engine.scrape()
    gaps = engine.gaps(random.Random(seed))
    assert all(gap.residual == 0 for gap in gaps)
    for counter, causes in engine.injected.items():
        found = totals(gaps, counter)
        assert sum(found.values()) == sum(causes.values()), counter
        exact = {"children", "health_checks", "aborted_in_prefill"}
        assert {cause: size for cause, size in found.items() if cause in exact} == {
            cause: size for cause, size in causes.items() if cause in exact and size
        }


@pytest.mark.parametrize("lost", [0, 1, 700])
def test_a_restart_takes_with_it_what_was_counted_since_the_last_scrape(lost: int) -> None:
    """Ten tokens of the second call were counted by the new process; what the old one had counted is missing."""
    engine = Engine()
    engine.scrape()
    engine.call(100, 40)
    if lost:
        engine.call(lost, lost)
    engine.restart()
    engine.call(30, 10)
    engine.scrape()
    gaps = {gap.facts.figure.series[0]: gap for gap in engine.gaps(random.Random(0))}
    found = {part.cause.code: part.amount for part in gaps["prompt_tokens"].causes}
    assert (gaps["prompt_tokens"].facts.counted, found) == (30, {"counter_reset": -100 - lost})
    assert gaps["prompt_tokens"].residual == 0


def test_an_attempt_across_midnight_is_bounded_and_its_parts_add_up() -> None:
    """It generated 30 tokens before the last scrape of the day and 70 after; each window says from 0 to 100."""
    engine = Engine(now=datetime(2026, 3, 2, 23, 50, tzinfo=UTC))
    engine.scrape()
    begin = engine.now
    engine.sums["generation_tokens"] += 30
    engine.scrape()
    engine.now = datetime(2026, 3, 3, 0, 10, tzinfo=UTC)
    engine.sums["generation_tokens"] += 70
    engine.attempts.append(
        {"begin": begin, "end": engine.now, "engine_counted": True, "input": 0, "output": 100, "requests": 1}
    )
    engine.scrape()
    rows = [gap for gap in engine.gaps(random.Random(0)) if gap.facts.figure.series[0] == "generation_tokens"]
    told_of = [(gap.facts.counted, gap.status, [(p.cause.code, p.amount) for p in gap.causes]) for gap in rows]
    assert told_of == [(30, "PROVISIONAL", [("edge", 30)]), (70, "PROVISIONAL", [("edge", 70)])]
    bounds = [part.bounds for gap in rows for part in gap.causes]
    assert all(each is not None and (each.low, each.high) == (0, 100) for each in bounds)


def lake_of(engine: Engine, root: Any, order: random.Random) -> Lake:
    """The world in a lake, rows in any order."""
    lake = Lake.create(root)
    rows = [
        {
            "attempt_hi": 0, "attempt_lo": number, "day": row["begin"].date(), "source": "agent", "framework": "vllm",
            "model_served": "m", "tenant": "unassigned", "task": "health_check" if row.get("health") else "unassigned",
            "route": "unassigned", "status": "aborted" if row.get("unfinished") else "succeeded",
            "arrived_at": row["begin"], "total_us": (row["end"] - row["begin"]) // timedelta(microseconds=1),
            "input_computed": row.get("input"), "output_computed": row.get("output"), "revision": 0,
        }
        for number, row in enumerate(engine.attempts)
    ]  # fmt: skip
    order.shuffle(rows)
    lake.append("attempt", pl.DataFrame(rows, schema=polars_schema("attempt")))
    scraped = list(engine.scrapes)
    order.shuffle(scraped)
    lake.append("engine_counter", pl.DataFrame(scraped, schema=polars_schema("engine_counter")))
    return lake


def test_a_month_is_weighed_the_same_in_any_order_and_a_second_time_changes_nothing(tmp_path: Any) -> None:
    engine = Engine()
    engine.scrape()
    for kind, size in (("done", 100), ("aborted", 70), ("unseen", 9), ("health", 3), ("prefill", 500), ("done", 40)):
        engine.call(size, size, kind=kind)
        engine.scrape()
    digests = []
    for seed in (1, 2):
        lake = lake_of(engine, tmp_path / str(seed), random.Random(seed))
        result = weigh_engines(lake, month="2026-03")
        digests.append([lake.digest(table) for table in ("engine_gap", "engine_gap_cause", "engine_share", "finding")])
        assert "UNEXPLAINED" not in result.statuses
        version = lake.version("engine_gap")
        weigh_engines(lake)
        assert lake.version("engine_gap") == version
    assert digests[0] == digests[1]
    shares = lake.scan("engine_share").sort("input_computed").collect()
    assert shares.select("input_computed", "output_computed").rows() == [(70, 70), (500, 0)]
    codes = {
        finding.code: finding.difference for finding in result.findings if finding.subject["counter"] == "prompt_tokens"
    }
    assert codes == {"engine_aborted": 70, "engine_unobserved": 9, "engine_health_checks": 3}
    assert date(2026, 3, 2) in {finding.first_day for finding in result.findings}


def test_days_are_weighed_one_after_the_other_and_what_runs_across_midnight_stands_in_both(tmp_path: Any) -> None:
    """The last call of the day generates 30 tokens before its last scrape, and 70 on the next day."""
    engine = Engine(now=datetime(2026, 3, 31, 23, 50, tzinfo=UTC), began=datetime(2026, 3, 31, tzinfo=UTC))
    engine.scrape()
    engine.call(5, 7)
    engine.scrape()
    begin = engine.now
    engine.sums["generation_tokens"] += 30
    engine.scrape()
    engine.now = datetime(2026, 4, 1, 0, 10, tzinfo=UTC)
    engine.sums["generation_tokens"] += 70
    engine.attempts.append({"begin": begin, "end": engine.now, "engine_counted": True, "input": 0, "output": 100})
    engine.scrape()
    lake = lake_of(engine, tmp_path / "lake", random.Random(0))
    assert weigh_engines(lake).months == ("2026-03", "2026-04")
    rows = lake.scan("engine_gap").filter(pl.col("counter") == "generation_tokens").sort("until").collect()
    assert rows.select("day", "counted", "attempted", "across", "status").rows() == [
        (date(2026, 3, 31), 7, 7, 0, "MATCHED"),
        (date(2026, 3, 31), 30, 0, 1, "PROVISIONAL"),
        (date(2026, 4, 1), 70, 0, 1, "PROVISIONAL"),
    ]
