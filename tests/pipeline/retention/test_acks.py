"""Acknowledgements go by the rule of the spool, once nobody waits for them."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

from tests.pipeline.retention.world import ACME, KEY, World, policy

from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.retention.apply import Applied, apply
from weighbridge.pipeline.retention.holds import place
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.simulate.simulate import simulate

GIVEN = date(2026, 2, 1)
DUE = date(2026, 2, 9)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


def applied(world: World, today: date) -> Applied:
    return apply(plan(world.places, policy(), today), by="timer", now=NOW)


def given(world: World, day: date = GIVEN) -> Path:
    """The acknowledgement, as if it had been given on a day."""
    (word,) = world.spool.glob("*.ack")
    moment = datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC).timestamp()
    os.utime(word, (moment, moment))
    return word


def taken(world: World) -> Path:
    """A segment the lake has read, with its acknowledgement."""
    return world.seal("taken", world.add(ACME, [date(2026, 1, 10)]), taken_in=True)


def test_they_go_with_their_segments(world: World) -> None:
    segment, word = taken(world), given(world)
    assert "acks" not in {due.table for due in plan(world.places, policy(), date(2026, 2, 8)).due}
    done = applied(world, DUE)
    assert (segment.exists(), word.exists()) == (False, False)
    (found,) = (receipt for receipt in done.receipts if receipt.table_name == "acks")
    assert (found.rows, found.rule, found.first_day, found.last_day) == (1, "retention.spool", GIVEN, GIVEN)
    assert applied(world, DUE).receipts == ()


def test_one_whose_segment_still_lies_there_stays(world: World) -> None:
    segment, word = taken(world), given(world)
    place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME, tables=("spool",))
    applied(world, DUE)
    assert (segment.exists(), word.exists()) == (True, True)


def test_one_that_is_young_or_that_the_lake_does_not_know_stays(world: World) -> None:
    taken(world)
    unknown = world.spool / f"{'f' * 64}.ack"
    unknown.touch()
    os.utime(unknown, (0, 0))
    word = given_of(world, unknown)
    applied(world, date(2026, 2, 8))
    assert (word.exists(), unknown.exists()) == (True, True)
    applied(world, DUE)
    assert (word.exists(), unknown.exists()) == (False, True)


def given_of(world: World, other: Path) -> Path:
    (word,) = set(world.spool.glob("*.ack")) - {other}
    moment = datetime(GIVEN.year, GIVEN.month, GIVEN.day, tzinfo=UTC).timestamp()
    os.utime(word, (moment, moment))
    return word


def test_a_host_that_ships_the_same_segment_again_brings_nothing_twice(tmp_path: Path) -> None:
    """The serving host may not have looked for so long, and ships its copy once more."""
    world = World(tmp_path)
    simulate(tmp_path / "host", attempts=30, days=1, key=KEY)
    (copy, *_) = sorted((tmp_path / "host").glob("*.segment"))

    def shipped() -> IngestResult:
        if not (world.spool / copy.name).exists():
            _copied(copy, tmp_path).rename(world.spool / copy.name)
        return ingest([world.spool], world.lake, key=KEY, day=GIVEN)

    assert not shipped().files[0].skipped
    digests = content(world.lake)
    word = given(world)
    applied(world, DUE)
    assert list(world.spool.iterdir()) == []
    again = shipped()
    assert [file.skipped for file in again.files] == [True]
    assert content(world.lake) == digests
    assert word.exists(), "and it is told so again"


def _copied(segment: Path, folder: Path) -> Path:
    place = folder / "on-its-way"
    place.mkdir()
    for file in segment.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place


def content(lake: Lake) -> dict[str, str]:
    return {table: digest for table, digest in lake.digests().items() if table != "receipt"}
