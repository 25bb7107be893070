"""Policy: one rule per row, most specific first; facts about every table; holds."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.retention.world import ACME, BETA, World, policy

from weighbridge.pipeline.retention.facts import CONTENT, FACTS, Erasure, Kept, Owner
from weighbridge.pipeline.retention.holds import holds, mask, place, release, standing
from weighbridge.pipeline.retention.keys import due_keys
from weighbridge.pipeline.retention.policy import Rule
from weighbridge.pipeline.settings import RETENTION
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import erased
from weighbridge.schemas.tables import TABLES

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


def test_every_table_has_a_class_or_a_reason_to_stay() -> None:
    assert set(FACTS) == set(TABLES), "name the class of a new table in retention/facts.py and docs/retention.md"
    for fact in FACTS.values():
        assert bool(fact.why) is (fact.kept is None)
        assert bool(fact.cleared) is (fact.erasure is Erasure.CLEARED)
        assert set(fact.cleared) <= set(TABLES[fact.table].names)
        if fact.owner is Owner.EVIDENCE:
            assert fact.cleared == ("evidence",)


def test_no_table_that_names_a_tenant_or_an_attempt_is_left_out_of_erasures() -> None:
    for name, table in TABLES.items():
        if {"tenant", "attempt_hi", "request_hi", "evidence"} & set(table.names):
            assert FACTS[name].erasure is not Erasure.STAYS, name
        if any(column.personal for column in table.columns) and FACTS[name].erasure is Erasure.STAYS:
            # A user's own words about a decision; they go with the row.
            assert all(column.name.endswith("reason") for column in table.columns if column.personal), name


def test_whose_attempt_it_is_is_lost_last() -> None:
    order = [name for name, fact in FACTS.items() if fact.owner not in {Owner.NOBODY, Owner.ROW}]
    assert order[-1] == "attempt"


def test_the_settings_name_every_class_and_only_classes_of_rows_per_tenant_and_task() -> None:
    assert {line.name for line in RETENTION.lines} == {str(kept) for kept in Kept}
    for named in RETENTION.named:
        assert [line.name for line in named.lines] == ["billing", "operations", "ids", "traces"]
    assert {table for table, _ in CONTENT.values()} == {"token_run", "state_event"}


def test_most_specific_wins() -> None:
    told = policy(ids=30, tenants={ACME: {"ids": 90}}, tasks={"chat": {"ids": 7}, "code": {"traces": 1}})
    assert told.rule(Kept.IDS) == Rule(Kept.IDS, 30)
    assert told.rule(Kept.IDS, BETA, "summary") == Rule(Kept.IDS, 30)
    assert told.rule(Kept.IDS, BETA, "chat") == Rule(Kept.IDS, 7, task="chat")
    assert told.rule(Kept.IDS, ACME, "chat") == Rule(Kept.IDS, 90, tenant=ACME), "the tenant goes before the task"
    assert told.rule(Kept.TRACES, ACME, "chat") == Rule(Kept.TRACES, 7), "a line of another class changes nothing"
    assert told.rule(Kept.TRACES, ACME, "code").days == 1
    assert [rule.days for rule in told.rules(Kept.IDS)] == [90, 7, 30]


def test_a_key_follows_the_mildest_rule_of_what_it_covers() -> None:
    told = policy(ids=30, tenants={ACME: {"ids": 5}}, tasks={"chat": {"ids": 7}, "evaluation": {"ids": 60}})
    assert told.mildest(Kept.IDS, BETA).days == 60
    assert told.mildest(Kept.IDS, ACME).days == 5
    names = [f"{tenant}.3.2026-01.ids.1" for tenant in (ACME, BETA)]
    due, held = due_keys(names, told, date(2026, 2, 6), [])
    assert ([key for keys in due.values() for key in keys], held) == ([names[0]], [])
    due, _ = due_keys(names, told, date(2026, 4, 2), [])
    assert [key for keys in due.values() for key in keys] == names
    assert due_keys(names, told, date(2026, 2, 5), []) == ({}, [])


def test_a_row_is_due_when_its_days_are_over_and_not_before() -> None:
    rule = Rule(Kept.IDS, 30)
    assert rule.last_due(date(2026, 3, 3)) == date(2026, 1, 31)
    assert Rule(Kept.TRACES, 0).last_due(date(2026, 3, 1)) == date(2026, 2, 28)
    assert (date(2026, 3, 3) - rule.last_due(date(2026, 3, 3))).days == 31


def test_a_receipt_names_no_tenant() -> None:
    scope = Rule(Kept.IDS, 5, tenant=ACME).scope(date(2026, 3, 3))
    assert scope == {"tenant": erased(ACME), "days": "5", "due_to": "2026-02-25"}
    assert Rule(Kept.IDS, 5, task="chat").scope(date(2026, 3, 3))["task"] == "chat"
    assert (Rule(Kept.IDS, 5, tenant=ACME).name, Rule(Kept.IDS, 5).name) == ("retention.tenants.ids", "retention.ids")


def test_a_hold_is_placed_once_and_its_release_is_written_down(world: World) -> None:
    placed = place(world.ledger, why="file 4711", by="counsel", now=NOW, tenant=ACME, tables=("token_run", "attempt"))
    again = place(world.ledger, why="file 4711", by="counsel", now=NOW + timedelta(days=1), tenant=ACME,
                  tables=("attempt", "token_run"))  # fmt: skip
    assert again == placed == standing(world.ledger)[0]
    ended = release(world.ledger, placed, why="settled", by="counsel", now=NOW + timedelta(days=2))
    assert standing(world.ledger) == []
    assert holds(world.ledger) == [ended]
    assert (ended.released, ended.released_by, ended.released_why) == (NOW + timedelta(days=2), "counsel", "settled")
    assert release(world.ledger, ended, why="again", by="x", now=NOW) == ended
    mask(world.ledger, ACME)
    assert holds(world.ledger) == [replace(ended, tenant=erased(ACME))]


def test_a_hold_that_stands_keeps_its_tenant(world: World) -> None:
    placed = place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME)
    mask(world.ledger, ACME)
    assert standing(world.ledger) == [placed]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"why": " "}, "needs a reason"),
        ({"bucket": 3}, "belongs to a tenant"),
        ({"first": date(2026, 2, 2), "last": date(2026, 2, 1)}, "would end on 2026-02-01, before it begins"),
        ({"tables": ("attempts",)}, "there is no table 'attempts'"),
    ],
)
def test_a_hold_that_makes_no_sense_is_refused(world: World, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        place(world.ledger, **{"why": "file 1", **given}, by="counsel", now=NOW)
    assert holds(world.ledger) == []


def test_a_release_needs_a_reason(world: World) -> None:
    placed = place(world.ledger, why="file 1", by="counsel", now=NOW)
    with pytest.raises(ConfigError, match="needs a reason"):
        release(world.ledger, placed, why="", by="counsel", now=NOW)
    assert standing(world.ledger) == [placed]


def test_a_file_of_the_ledger_that_was_damaged_is_named(world: World) -> None:
    placed = place(world.ledger, why="file 1", by="counsel", now=NOW)
    path = world.ledger.folder / "holds" / f"{placed.hold_id}.json"
    path.write_text("[")
    with pytest.raises(ConfigError, match=f"{placed.hold_id}.json is not what retention wrote there"):
        standing(world.ledger)


def test_the_documentation_names_the_class_of_every_table() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "retention.md").read_text(encoding="utf-8")
    classes, _, _ = page.partition("Days are UTC days")
    lines = re.findall(r"^\| (?:`(\w+)`|kept for good) \| ?(\d*) \| (.+) \|$", classes, re.MULTILINE)
    assert {name: int(days) for name, days, _ in lines if name} == {str(kept): policy().days[kept] for kept in Kept}
    named = {table: name or None for name, _, tables in lines for table in re.findall(r"`(\w+)`", tables)}
    assert named == {table: None if fact.kept is None else str(fact.kept) for table, fact in FACTS.items()}


def test_the_documentation_says_what_an_erasure_does_to_every_table() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "retention.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w.+) \| (\*\*stay.+|deleted|stay.+) \| (.+) \|$", page, re.MULTILINE)
    told = {table: said for tables, said, _ in rows for table in re.findall(r"`(\w+)`", tables)}
    goes = {name for name, fact in FACTS.items() if fact.erasure is Erasure.GOES and fact.kept not in CONTENT}
    stays = {name for name, fact in FACTS.items() if fact.erasure is Erasure.BILLING}
    assert {table for table, said in told.items() if said == "deleted"} == goes
    assert {table for table, said in told.items() if "under the pseudonym" in said} == stays
