"""What a hold keeps of an erasure beside the lake: rows of packs, and pages that show its days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.retention.world import ACME, BETA, Attempt, World, frame, policy, row

from weighbridge.pipeline.close.closed import closes
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.retention.apply import apply
from weighbridge.pipeline.retention.erase import Erased, erase, preview
from weighbridge.pipeline.retention.holds import place, release
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import KEY, NO_ATTEMPTS, Subject

DAY = date(2026, 1, 5)
NOW = datetime(2026, 1, 20, tzinfo=UTC)


def keys(made: Sequence[Attempt]) -> pl.DataFrame:
    return pl.DataFrame([tuple(each.key) for each in made], schema=NO_ATTEMPTS.schema, orient="row")


@dataclass
class Packs:
    """An installation with a pack that holds its attempts, and what is taken out of it."""

    world: World
    taken: list[set[tuple[int, int]]] = field(default_factory=list)

    @property
    def places(self) -> Places:
        return replace(self.world.places, forget_closed=self._forget)

    def _forget(self, packs: Path, lake: Lake, *, attempts: pl.DataFrame, **_rest: Any) -> None:
        assert (packs, lake) == (self.world.closes, self.world.lake)
        self.taken.append(set(attempts.select(KEY).iter_rows()))

    def close(self, made: Sequence[Attempt]) -> None:
        folder = self.world.closes / "2026-01" / "rows" / "attempt"
        folder.mkdir(parents=True)
        about = [(*each.key, each.day, each.tenant, each.bucket) for each in made]
        names = [*KEY, "day", "tenant", "subject_bucket"]
        pl.DataFrame(about, schema=names, orient="row").write_parquet(folder / "2026-01-05.parquet")


@pytest.mark.parametrize("tables", [(), ("closes",)], ids=["everything", "packs alone"])
def test_a_hold_keeps_its_rows_of_packs_where_attempts_are_erased_one_by_one(
    world: World, tables: tuple[str, ...]
) -> None:
    packs = Packs(world)
    acme, beta = world.add(ACME, [DAY]), world.add(BETA, [DAY])
    packs.close([*acme, *beta])
    hold = place(world.ledger, why="file 7", by="law", now=NOW, tenant=ACME, tables=tables)
    whom = Subject(attempts=keys([acme[0], beta[0]]))
    done = erase(packs.places, whom, by="me", now=NOW, billing_too=True, look=False)
    assert packs.taken == [{tuple(beta[0].key)}]
    assert done.held["closes"] == 1
    assert not done.complete
    release(world.ledger, hold, why="settled", by="law", now=NOW)
    apply(plan(packs.places, policy(), NOW.date()), by="me", now=NOW)
    assert tuple(acme[0].key) in packs.taken[-1]


def test_a_hold_of_other_days_keeps_nothing_of_packs(world: World) -> None:
    packs = Packs(world)
    acme = world.add(ACME, [DAY])
    packs.close(acme)
    place(world.ledger, why="file 7", by="law", now=NOW, first=date(2025, 1, 1), last=date(2025, 12, 31))
    done = erase(packs.places, Subject(attempts=keys(acme[:1])), by="me", now=NOW, billing_too=True, look=False)
    assert packs.taken == [{tuple(acme[0].key)}]
    assert done.complete


def erased(world: World, whom: Subject) -> Erased:
    return erase(world.places, whom, by="me", now=NOW, billing_too=True, look=False)


@pytest.mark.parametrize("held", [ACME, BETA], ids=["of whom is erased", "of somebody else"])
def test_a_hold_keeps_pages_that_show_its_days_until_it_is_released(world: World, held: str) -> None:
    world.add(ACME, [DAY])
    pages = {month: world.reports / f"weighbridge-{month}.html" for month in ("2025-12", "2026-01")}
    for page in pages.values():
        page.write_text(f"<p>{ACME}</p>")
    hold = place(world.ledger, why="file 7", by="law", now=NOW, tenant=held, first=DAY, last=DAY)
    seen = preview(world.places, Subject(tenant=ACME), now=NOW, billing_too=True)
    done = erased(world, Subject(tenant=ACME))
    for said in (seen, done):
        assert (said.pages, said.held_pages) == ((pages["2025-12"],), (pages["2026-01"],))
    assert [page.exists() for page in pages.values()] == [False, True]
    assert done.held["reports"] == 1
    assert not done.complete
    apply(plan(world.places, policy(), NOW.date()), by="me", now=NOW)
    assert pages["2026-01"].exists()
    release(world.ledger, hold, why="settled", by="law", now=NOW)
    apply(plan(world.places, policy(), NOW.date()), by="me", now=NOW)
    assert not pages["2026-01"].exists()
    assert world.lake.scan("finding").collect().filter(pl.col("code") == "erasure_unfinished").is_empty()


def test_what_comes_back_goes_with_its_pages_and_pages_of_later_days_stay(world: World) -> None:
    """A backup brought the rows back, and a night made their page; meanwhile the tenant goes on."""
    world.add(ACME, [DAY])
    erased(world, Subject(tenant=ACME))
    world.add(ACME, [DAY, date(2026, 3, 3)])
    again, later = (world.reports / f"weighbridge-{month}.html" for month in ("2026-01", "2026-03"))
    for page in (again, later):
        page.write_text(f"<p>{ACME}</p>")
    at = datetime(2026, 3, 4, tzinfo=UTC)
    apply(plan(world.places, policy(), at.date()), by="me", now=at)
    assert world.lake.days("attempt") == [date(2026, 3, 3)]
    assert [page.exists() for page in (again, later)] == [False, True]


def test_a_file_nobody_can_read_is_named_and_the_erasure_is_remembered(world: World) -> None:
    world.add(ACME, [DAY], count=1)
    damaged = [world.scheduler / "cache.parquet", world.reports / "weighbridge-2026-01.gz"]
    for path in damaged:
        path.write_bytes(b"neither of them")
    done = erase(world.places, Subject(tenant=ACME), by="me", now=NOW, billing_too=True)
    assert {path for path in damaged if any(said.startswith(f"{path}: ") for said in done.unsearched)} == {*damaged}
    assert done.left == ()
    assert world.ledger.entry("erasures", str(done.erasure_id)) is not None
    assert done.receipts


def test_drafts_of_killed_processes_go_and_what_others_hide_in_the_ledger_stays(world: World) -> None:
    folder = world.ledger.folder
    kept = [folder / ".git" / "config", folder / "receipts" / ".gitignore", folder / ".nfs0001"]
    drafts = [folder / ".clock.json.4711", folder / "receipts" / f".{'0' * 32}.json.4711"]
    for path in (*kept, *drafts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    world.ledger.tidy()
    assert [path.exists() for path in (*kept, *drafts)] == [True] * 3 + [False] * 2


def test_a_month_stays_closed_when_its_pack_has_gone(world: World) -> None:
    world.lake.append("close", frame("close", [row("close", DAY, period="2026-01")]))
    (world.closes / "2026-01").mkdir()
    apply(plan(world.places, policy(reports=1), NOW.date().replace(month=3)), by="me", now=NOW)
    assert not (world.closes / "2026-01").exists()
    assert list(closes(world.lake)) == ["2026-01"]
