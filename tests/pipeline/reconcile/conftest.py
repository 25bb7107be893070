"""A small closed world: attempts, readings and prices written down in a test, in a lake of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile import rows
from weighbridge.pipeline.reconcile.explain.explanation import explained, lessons_of
from weighbridge.pipeline.reconcile.explain.late import of_children, of_running
from weighbridge.pipeline.reconcile.explain.template import learnt
from weighbridge.pipeline.reconcile.frames import Frame, collected, frame_of
from weighbridge.pipeline.reconcile.match import coverage, match
from weighbridge.pipeline.reconcile.match.attempts import one_per_attempt
from weighbridge.pipeline.reconcile.match.links import Links, linked
from weighbridge.pipeline.reconcile.match.members import members
from weighbridge.pipeline.reconcile.match.reports import per_attempt
from weighbridge.pipeline.reconcile.match.side import side
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.pipeline.reconcile.reconcile import ReconcileResult, reconcile
from weighbridge.schemas.enumerations import Direction
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.identity import AttemptKey

DAY = date(2026, 3, 2)
TENANT = "t_00000000000000aa"
SEGMENT = "a" * 64
PRICE_ID = "5" * 32
Row = dict[str, Any]

ATTEMPT: Row = {
    "day": DAY,
    "source": "agent",
    "provider": "openai",
    "api": "openai_chat",
    "model_served": "m-1",
    "tenant": TENANT,
    "task": "chat",
    "route": "main",
    "status": "succeeded",
    "usage_expected": True,
    "segment": SEGMENT,
    "segment_row": 0,
    "revision": 0,
}
READING: Row = {
    "day": DAY,
    "source": "agent",
    "child": 0,
    "report": 0,
    "provider": "openai",
    "api": "openai_chat",
    "model": "m-1",
    "dialect": "openai_chat",
    "verdict": "PROVED",
    "ended": "complete",
    "flags": [],
    "segment": SEGMENT,
    "segment_row": 0,
    "revision": 0,
}
PRICED: Row = {
    **{name: READING[name] for name in ("day", "source", "child", "report", "revision")},
    "basis": "reported",
    "price_id": PRICE_ID,
    "currency": "USD",
    "status": "priced",
}
# Per million: uncached input 2, cache read 0.5, visible output 8, reasoning 10.
PRICES = {"input_uncached": "2", "cache_read": "0.5", "output_visible": "8", "reasoning": "10"}


def key(number: int) -> AttemptKey:
    """The key of a made-up attempt; its digits end in its number."""
    return AttemptKey(number << 32, number)


@dataclass
class World:
    """Rows by table, and the lake they are put into."""

    root: Path
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Put rows of a table into the world."""
        self.tables.setdefault(table, []).extend(dict(row) for row in rows)

    def attempt(self, number: int, **columns: Any) -> None:
        """An attempt that succeeded and owes a usage report."""
        self.add("attempt", {**ATTEMPT, **_key(number), **columns})

    def reading(self, number: int, **columns: Any) -> None:
        """A proved reading of a usage report."""
        self.add("reading", {**READING, **_key(number), **columns})

    def priced(self, number: int, **columns: Any) -> None:
        """What a reading costs."""
        self.add("priced_amount", {**PRICED, **_key(number), **columns})

    def lost(self, attempts: int, **columns: Any) -> None:
        """A gap record."""
        begun = {"began_at": datetime(2026, 3, 2, 12, tzinfo=UTC), "ended_at": datetime(2026, 3, 2, 13, tzinfo=UTC)}
        row = {"day": DAY, "source": "agent", "reason": "buffer_full", "attempts": attempts, "segment": SEGMENT}
        self.add("gap", {**row, **begun, **columns})

    def prices(self) -> None:
        """The price row PRICE_ID."""
        common = {"price_id": PRICE_ID, "provider": "openai", "match": "equals", "model": "m-1", "currency": "USD"}
        for token_class, value in PRICES.items():
            cell = {"token_class": token_class, "modality": "text", "per_million": Decimal(value), "origin": "a test"}
            self.add("price", {**common, **cell})

    def day_of(self, text: str) -> date:
        """A day written as ISO text."""
        return date.fromisoformat(text)

    def frame(self, table: str) -> pl.DataFrame:
        """The rows of a table, in the order they were put in."""
        return pl.DataFrame(self.tables.get(table, []), schema=polars_schema(table))

    def lake(self) -> Lake:
        """A new lake with everything that was put in so far."""
        lake = Lake.create(self.root / f"lake{len(list(self.root.glob('lake*')))}")
        for table in self.tables:
            lake.append(table, self.frame(table))
        return lake


@dataclass(frozen=True)
class Reconciled:
    """A world after it was reconciled."""

    lake: Lake
    result: ReconcileResult

    def row(self, number: int, direction: str = "input") -> Row:
        """The row of `reconciled` of an attempt."""
        hi, lo = key(number)
        mine = (pl.col("attempt_hi") == hi) & (pl.col("attempt_lo") == lo) & (pl.col("direction") == direction)
        return self.lake.scan("reconciled").filter(mine).collect().row(0, named=True)

    def outcome(self, number: int, direction: str = "input") -> tuple[Any, ...]:
        """observed, reported, gap, residual, status."""
        row = self.row(number, direction)
        return row["observed"], row["reported"], row["gap"], row["residual"], row["status"]

    def causes(self, number: int, direction: str = "input") -> dict[str, int]:
        """cause -> tokens."""
        return {row["cause"]: row["tokens"] for row in self.cause_rows(number, direction)}

    def cause_rows(self, number: int, direction: str = "input") -> list[Row]:
        """The rows of `gap_cause` of an attempt."""
        hi, lo = key(number)
        mine = (pl.col("attempt_hi") == hi) & (pl.col("attempt_lo") == lo) & (pl.col("direction") == direction)
        return self.lake.scan("gap_cause").filter(mine).sort("cause").collect().to_dicts()

    def finding(self, code: str) -> Finding:
        """The only finding of that code."""
        (found,) = [finding for finding in self.result.findings if finding.code == code]
        return found

    @property
    def codes(self) -> list[str]:
        """The codes of all findings, in their order."""
        return [finding.code for finding in self.result.findings]


def _key(number: int) -> Row:
    hi, lo = key(number)
    return {"attempt_hi": hi, "attempt_lo": lo}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty world."""
    return World(tmp_path)


def weighed(world: World, **options: Any) -> Reconciled:
    """A world in a lake of its own, reconciled."""
    lake = world.lake()
    return Reconciled(lake, reconcile(lake, **options))


def on_duckdb(rows: pl.DataFrame) -> Frame:
    """The rows as a lazy frame that DuckDB computes."""
    import duckdb  # noqa: PLC0415 - optional

    return nw.from_native(duckdb.from_arrow(rows.to_arrow()))


@dataclass(frozen=True)
class Core:
    """The pure functions one after the other on one engine; what one of them gives is handed to the next as rows.

    On Polars they are noted once and repeated, as a month does it (`by_recipe`).
    """

    engine: Callable[[pl.DataFrame], Frame]

    def _rows(self, frame: Frame) -> Frame:
        return self.engine(collected(frame))

    def attempts(self, world: World) -> pl.DataFrame:
        """One row per attempt."""
        return collected(by_recipe(one_per_attempt, self.engine(self._linked(world, "attempt"))))

    def reports(self, world: World) -> pl.DataFrame:
        """One row per attempt that has reports."""
        return collected(by_recipe(per_attempt, self.engine(self._linked(world, "reading"))))

    def links(self, world: World) -> Links:
        """Which attempts are the same, and which are tries of one request."""
        return linked(members(lambda table, columns: world.frame(table).lazy().select(columns)))

    def _linked(self, world: World, table: str) -> pl.DataFrame:
        return self.links(world).rekeyed(world.frame(table).lazy()).collect()

    def compared(self, world: World) -> pl.DataFrame:
        """Both sides."""
        seen = self._linked(world, "attempt").select("attempt_lo", "attempt_hi")
        orphans = self._linked(world, "reading").join(seen, on=["attempt_lo", "attempt_hi"], how="anti")
        unseen = orphans.group_by("attempt_lo", "attempt_hi").agg(pl.col("day").min())
        gaps = world.frame("gap")
        losses, named = self.engine(coverage.losses(gaps)), self.engine(coverage.named_losses(gaps))
        held = self._rows(by_recipe(match.held_against, self.engine(unseen), losses, named))
        speaking = by_recipe(match.speakers, self.engine(world.frame("reading")))
        attempts, reports = self.engine(self.attempts(world)), self.engine(self.reports(world))
        related = self.links(world).related
        return collected(by_recipe(match.compared, attempts, reports, speaking, held, None, self.engine(related)))

    def explained(self, compared: pl.DataFrame, world: World, direction: Direction) -> pl.DataFrame:
        """One direction with its causes."""
        both = self.engine(compared)
        taught = self._rows(by_recipe(lessons_of, by_recipe(side, both, Direction.INPUT)))
        lessons = self._rows(by_recipe(learnt, taught))
        children = self._rows(by_recipe(of_children, self.engine(world.frame("child"))))
        running = self.engine(of_running(world.frame("usage_report")))
        sided = self._rows(by_recipe(side, both, direction))
        return collected(by_recipe(explained, sided, direction, lessons, children, running))

    def weighed(self, world: World) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows of `reconciled` and the parts of gaps, both in order."""
        compared, outcomes, parts = self.compared(world), [], []
        for direction in Direction:
            frame = self.engine(self.explained(compared, world, direction))
            outcomes.append(collected(by_recipe(rows.reconciled, frame)))
            parts.append(collected(by_recipe(rows.parts, frame, direction)))
        order = ["attempt_lo", "attempt_hi", "direction"]
        return pl.concat(outcomes).sort(order), pl.concat(parts).sort(*order, "cause")


@pytest.fixture
def polars_core() -> Core:
    """The core on Polars."""
    return Core(frame_of)


@pytest.fixture
def duckdb_core() -> Core:
    """The core on DuckDB; the test is skipped where it is not installed."""
    pytest.importorskip("duckdb")
    return Core(on_duckdb)


def crowd(world: World, attempts: int, seed: int) -> None:
    """Fill a world with attempts of every kind and fault, alone and together, drawn by a seeded generator."""
    draw = random.Random(seed)
    for number in range(1, attempts + 1):
        _one_of_the_crowd(world, number, draw)
    world.lost(2)


def _one_of_the_crowd(world: World, number: int, draw: random.Random) -> None:
    whole, answer = draw.randint(20, 400), draw.randint(1, 200)
    read, thought = draw.randint(0, whole // 2), draw.randint(0, answer // 2)
    engine = draw.random() < 0.5
    messages, special, template = draw.randint(1, 4), draw.randint(1, 3), draw.choice([None, 4, 9])
    common = {
        "model_served": draw.choice(["m-1", "m-2"]),
        "usage_expected": draw.choice([True, None, False]),
        "status": draw.choice(["succeeded", "succeeded", "succeeded", "failed", "aborted"]),
        "messages": draw.choice([messages, None]),
        "finish_reason": draw.choice(["stop", "length", None]),
        "n": draw.choice([None, 1, 2]),
        "template": draw.choice(["tpl-1", None]),
    }
    seen = {"input_computed": whole, "output_computed": answer, "cached_local": read, "withheld_end_token": 1}
    recounted = {
        "input_recounted": whole,
        "output_recounted": draw.choice([answer, None]),
        "recount_special": special,
        "recount_template": template,
        "recount_has_special": draw.choice([True, False, None]),
        "recount_has_template": draw.choice([True, False, False]),
    }
    if draw.random() < 0.95:
        world.attempt(number, **common, **(seen if engine else recounted))
    if draw.random() < 0.1:
        world.attempt(number, source="other", **{**common, "tenant": "unassigned"}, **(recounted if engine else seen))
    if draw.random() < 0.05:
        world.attempt(number, revision=1, **common, **seen)
    shift = draw.choice([0, 0, -read, special, 3 + 4 * messages, special + (template or 0), 1])
    report: Row = {
        "model": common["model_served"],
        "input_total": max(0, whole + shift),
        "output_total": max(0, answer + draw.choice([0, 0, -thought, thought, -1, 1, 1 - thought, 7])),
        "cache_read": draw.choice([read, None]),
        "cache_write_5m": draw.choice([0, 5, None]),
        "reasoning": draw.choice([thought, None]),
        "verdict": draw.choice(["PROVED"] * 8 + ["ASSUMED", "CONTRADICTORY", "UNKNOWN"]),
    }
    if report["verdict"] == "UNKNOWN":
        report["flags"] = draw.choice([["usage_missing"], [], None])
    if draw.random() < 0.9:
        world.reading(number, **report)
    if draw.random() < 0.1:
        world.reading(number, **report, report=1)
    if draw.random() < 0.1:
        world.reading(number, **report, source="other")
    if draw.random() < 0.1:
        world.reading(number, **report, child=1, revision=draw.randint(0, 1))
    for child in range(draw.choice([0, 0, 2])):
        row = {**_key(number), "day": DAY, "source": "agent", "kind": "choice", "revision": 0}
        world.add("child", {**row, "child": child + 1, "finish_reason": draw.choice(["stop", "length"])})
