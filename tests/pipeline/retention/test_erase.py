"""Erasing somebody: from every place, with nothing of it left, and nothing coming back."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.retention.world import ACME, BETA, Attempt, World, policy, rows_of
from tests.pipeline.retention.world import frame as framed

from weighbridge.pipeline.retention.apply import apply
from weighbridge.pipeline.retention.erase import Erased, erase, preview
from weighbridge.pipeline.retention.facts import FACTS, Erasure
from weighbridge.pipeline.retention.holds import holds, place, release
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.receipts import receipts
from weighbridge.pipeline.retention.search import Needles, search
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.errors import ConfigError, LakeBusyError
from weighbridge.schemas.identity import erased
from weighbridge.schemas.keys import KeyScope
from weighbridge.schemas.segment import verify_segment

# Many models or many erasures: with the tests of whole systems.
pytestmark = pytest.mark.system

DAYS = [date(2026, 2, 28), date(2026, 3, 1)]
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
COUNTS = {
    "attempt",
    "child",
    "usage_report",
    "reading",
    "priced_amount",
    "reconciled",
    "gap_cause",
    "gap",
    "engine_share",
    "adjustment",
}


def done(world: World, subject: Subject, *, now: datetime = NOW, **given: Any) -> Erased:
    return erase(world.places, subject, by="officer", now=now, **given)


def nightly(world: World) -> Any:
    return apply(plan(world.places, policy(ids=400, traces=400), NOW.date()), by="tester", now=NOW)


def attempts(*made: Attempt) -> Subject:
    rows = [tuple(each.key) for each in made]
    return Subject(attempts=pl.DataFrame(rows, schema=["attempt_hi", "attempt_lo"], orient="row"))


def everything(made: list[Attempt], *tenants: str) -> Needles:
    """All that is of some attempts, and the pseudonyms of tenants."""
    texts = {each.foreign.encode(): "foreign id" for each in made} | {name.encode(): "tenant" for name in tenants}
    ids = {
        what: pl.DataFrame([tuple(getattr(each, what)) for each in made], schema=["hi", "lo"], orient="row")
        for what in ("key", "request", "alias")
    }
    return Needles(texts, ids)


def whole(world: World, made: list[Attempt], *tenants: str) -> list[tuple[str, str]]:
    """What is found of somebody anywhere but in the names of keys."""
    folders = [path for path in world.root.iterdir() if path.name not in {"content-keys", "backup"}]
    return [(found.what, found.path.name) for found in search(folders, everything(made, *tenants))]


def test_a_tenant_goes_from_everywhere_and_a_search_finds_nothing(world: World) -> None:
    acme, beta = world.add(ACME, DAYS, count=3), world.add(BETA, DAYS, count=3)
    world.seal("mixed", acme[:2] + beta[:2])
    world.seal("own", acme[2:4])
    world.seal("taken", acme[4:6] + beta[4:6], taken_in=True)
    (world.reports / "weighbridge-2026-02.html").write_text(f"<td>{ACME}</td>")
    (world.reports / "weighbridge-2026-03.html").write_text(f"<td>{BETA}</td>")
    material = [world.keys.get(name) for name in world.keys.names() if name.startswith(ACME)]
    assert len(whole(world, acme, ACME)) > 20, "the search of this test sees what is there"
    before = {table: world.lake.scan(table).collect() for table in world.counts()}
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert (found.complete, found.left, found.kept, found.held, found.failed, found.unsearched) == (
        True, (), {}, {}, (), (),
    )  # fmt: skip
    assert whole(world, acme, ACME) == []
    assert not any(key in path.read_bytes() for key in material for path in world.root.rglob("*") if path.is_file())
    assert [name for name in world.keys.names() if name.startswith(ACME)] == []
    assert set(found.keys) == set(world.keys.destroyed())
    assert [path.name for path in found.pages] == ["weighbridge-2026-02.html"]
    assert [path.name for path in world.reports.iterdir()] == ["weighbridge-2026-03.html"]
    for table, rows in before.items():  # of others nothing is lost, and what was not cleared is as it was
        left = world.lake.scan(table).collect()
        if "tenant" in rows.columns:
            assert left.equals(rows.filter(pl.col("tenant") == BETA), null_equal=True), table
        elif "attempt_lo" in rows.columns:
            assert set(left["attempt_lo"]) == {each.key.lo for each in beta}, table
    assert world.lake.scan("quarantine").collect()["leaf_integers"].null_count() == 4


def test_what_is_shown_before_is_what_goes(world: World) -> None:
    world.add(ACME, DAYS)
    world.add(BETA, DAYS)
    state = sorted(world.root.rglob("*"))
    for billing_too in (False, True):
        shown = preview(world.places, Subject(tenant=ACME), now=NOW, billing_too=billing_too)
        assert sorted(world.root.rglob("*")) == state
        copy = World(shutil.copytree(world.root, world.root.parent / f"copy-{billing_too}", symlinks=True))
        made = done(copy, Subject(tenant=ACME), billing_too=billing_too)
        assert (made.rows, made.keys, made.kept, made.held) == (shown.rows, shown.keys, shown.kept, shown.held)
        told = {found.table_name: found.rows for found in made.receipts if found.table_name in shown.rows}
        assert {table: rows for table, rows in told.items() if table not in {"finding", "baseline"}} == {
            table: rows for table, rows in shown.rows.items() if table not in {"finding", "baseline"}
        }


def test_billing_counts_stay_pseudonymous_unless_they_are_asked_for(world: World) -> None:
    made = world.add(ACME, DAYS)
    counts = {table: world.lake.digest(table) for table in COUNTS}
    found = done(world, Subject(tenant=ACME))
    assert found.complete
    assert found.kept == {table: 2 if table == "adjustment" else 4 for table in COUNTS}
    assert {table: world.lake.digest(table) for table in COUNTS} == counts
    gone = {"token_run", "state_event", "request_scope", "alias", "foreign_id"}
    assert all(world.lake.rows(table) == 0 for table in gone)
    assert world.lake.scan("finding").collect()["evidence"].to_list() == [[]] * 2
    assert world.lake.scan("baseline").collect()["evidence"].to_list() == [[]] * 2
    assert {each for each, _ in whole(world, made)} == {"key", "request"}, "in the counts that stay, and only there"
    assert {path for _, path in whole(world, made) if not path.startswith("part-")} <= {
        path.name for path in Path(world.lake.root).rglob("_delta_log/*")
    }
    assert {each.method for each in found.receipts} == {
        ReceiptMethod.BOTH,
        ReceiptMethod.DELETED,
        ReceiptMethod.CLEARED,
    }


def test_pages_are_remembered_only_where_they_have_to_go(world: World) -> None:
    world.add(ACME, DAYS)
    page = world.reports / f"weighbridge-{DAYS[0]:%Y-%m}.html"
    page.write_text(ACME)
    asked = done(world, Subject(tenant=ACME))
    assert page.exists()
    assert asked.pages
    remembered = world.ledger.entry("erasures", str(asked.erasure_id))
    assert remembered is not None
    assert remembered["pages"] == []


def test_a_bucket_goes_and_its_neighbour_stays(world: World) -> None:
    one, two = world.add(ACME, DAYS, bucket=3), world.add(ACME, DAYS, bucket=4)
    found = done(world, Subject(tenant=ACME, bucket=3), billing_too=True)
    assert found.complete
    assert whole(world, one) == []
    for table in ("attempt", "usage_report", "token_run", "state_event", "request_scope", "foreign_id", "alias"):
        assert world.lake.rows(table) == len(two), table
    assert {name.split(".")[1] for name in world.keys.names()} == {"4"}
    assert world.lake.scan("finding").collect()["tenant"].to_list() == [ACME] * 4, "they are about others too"


def test_single_attempts_go_and_the_ids_of_their_bucket_with_them(world: World) -> None:
    made = world.add(ACME, DAYS, bucket=None)
    others = world.add(ACME, DAYS, bucket=7)
    found = done(world, attempts(made[0], made[-1]), billing_too=True)
    assert found.complete
    assert whole(world, [made[0], made[-1]]) == []
    assert world.lake.rows("attempt") == len(made) + len(others) - 2
    assert world.lake.rows("request_scope") == len(made) + len(others) - 2
    assert set(world.lake.scan("token_run").collect()["subject_bucket"]) == {7}
    assert {name.split(".")[1] for name in world.keys.names()} == {"7"}
    assert world.lake.rows("state_event") == len(others), "traces under the same keys"
    assert found.rows["state_event"] == len(made), "and what is told is what went"
    evidence = [each for told in world.lake.scan("finding").collect()["evidence"].to_list() for each in told]
    assert made[0].key.to_hex() not in evidence


@pytest.mark.system
def test_traffic_of_later_days_stays(world: World) -> None:
    before, after = world.add(ACME, DAYS), world.add(ACME, [NOW.date() + timedelta(days=1)])
    later = world.add(ACME, [date(2026, 4, 2)])
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert found.left == ()
    assert whole(world, before) == []
    assert set(world.lake.scan("attempt").collect()["attempt_lo"]) == {each.key.lo for each in [*after, *later]}
    assert [name for name in world.keys.names() if ".2026-04." in name] == [
        f"{ACME}.3.2026-04.ids.1", f"{ACME}.3.2026-04.traces.1",
    ]  # fmt: skip
    nightly(world)
    assert set(world.lake.scan("attempt").collect()["attempt_lo"]) == {each.key.lo for each in [*after, *later]}


def test_the_memory_and_the_receipts_hold_nothing_of_it(world: World) -> None:
    made = world.add(ACME, DAYS)
    done(world, Subject(tenant=ACME), billing_too=True)
    done(world, attempts(*world.add(BETA, DAYS)[:2]))
    told = "".join(path.read_text() for path in world.ledger.folder.rglob("*") if path.is_file())
    assert ACME not in told
    assert BETA not in told
    assert not any(each.key.to_hex() in told or each.foreign in told for each in made)
    assert erased(ACME) in told
    scopes = [found.scope for found in receipts(world.lake)]
    assert {scope.get("tenant") for scope in scopes} == {erased(ACME), None}
    assert {scope["billing"] for scope in scopes} == {"erased", "kept"}


@pytest.mark.parametrize(
    ("billing_too", "ledger"),
    [
        (False, "kept"),
        (True, "lost"),
        pytest.param(True, "kept", marks=pytest.mark.system),
        pytest.param(False, "lost", marks=pytest.mark.system),
    ],
)
def test_what_a_restore_brings_back_goes_again(world: World, billing_too: bool, ledger: str) -> None:
    acme, beta = world.add(ACME, DAYS), world.add(BETA, DAYS)
    backup = world.root / "backup"
    for name in ("lake", "content-keys"):
        shutil.copytree(world.root / name, backup / name)
    done(world, Subject(tenant=ACME), billing_too=billing_too)
    ended = {table: world.lake.digest(table) for table in world.counts() if table != "receipt"}
    kept = world.lake.scan("receipt").collect()
    for name in ("lake", "content-keys"):
        shutil.rmtree(world.root / name)
        shutil.copytree(backup / name, world.root / name)
    if ledger == "lost":
        shutil.rmtree(world.ledger.folder)
        world.lake.append("receipt", kept)
    world = World(world.root)
    assert world.lake.rows("token_run") == len(acme) + len(beta)
    again = nightly(world)
    assert len(again.repeated) == 1
    assert {table: world.lake.digest(table) for table in world.counts() if table != "receipt"} == ended
    assert [name for name in world.keys.names() if name.startswith(ACME)] == []
    assert len({found.receipt_id for found in receipts(world.lake)}) == kept.height + len(again.receipts)
    assert nightly(world).receipts == ()


@pytest.mark.system
def test_single_attempts_are_found_again_by_their_hashes(world: World) -> None:
    made = world.add(ACME, DAYS)
    shutil.copytree(world.root / "lake", world.root / "backup")
    done(world, attempts(made[0]), billing_too=True)
    shutil.rmtree(world.root / "lake")
    (world.root / "backup").rename(world.root / "lake")
    world = World(world.root)
    assert len(nightly(world).repeated) == 1
    assert whole(world, made[:1]) == []
    assert world.lake.rows("attempt") == len(made) - 1
    assert nightly(world).receipts == ()


def test_rows_that_come_late_go_with_the_next_night(world: World) -> None:
    world.add(ACME, DAYS)
    done(world, Subject(tenant=ACME), billing_too=True)
    late = world.add(ACME, DAYS[:1])
    names = [name for name in world.keys.names() if name.startswith(ACME)]
    assert len(nightly(world).repeated) == 1
    assert [found for found in whole(world, late, ACME) if found[0] == "key"] == []
    assert world.lake.rows("attempt") == 0
    assert [name for name in world.keys.names() if name.startswith(ACME)] == names, "a key made since is of data since"


def test_a_night_without_news_looks_at_nothing_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add(ACME, DAYS)
    done(world, Subject(tenant=ACME))
    nightly(world)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("weighbridge.pipeline.retention.repeat.carry_out", refused)
    nightly(world)
    world.add(BETA, [NOW.date() + timedelta(days=1)])
    nightly(world)


@pytest.mark.parametrize("attempt_first", [True, pytest.param(False, marks=pytest.mark.system)])
def test_evidence_that_is_gathered_since_is_cleared_again(world: World, attempt_first: bool) -> None:
    """Erasures are repeated in the order they were asked for: one that finds the work done has nothing to repeat."""
    made = world.add(ACME, DAYS)
    asked = [Subject(tenant=ACME), attempts(made[0])]
    for at, subject in enumerate(reversed(asked) if attempt_first else asked):
        done(world, subject, now=NOW + timedelta(minutes=at))
    nightly(world)
    world.lake.replace("finding", framed("finding", rows_of(made)["finding"]), days=None)
    assert len(nightly(world).repeated) == (2 if attempt_first else 1)
    assert world.lake.scan("finding").collect()["evidence"].to_list() == [[]] * 2
    assert nightly(world).repeated == ()


def test_a_hold_stops_an_erasure_and_its_release_finishes_it(world: World) -> None:
    made = world.add(ACME, DAYS)
    other = world.add(BETA, DAYS)
    world.seal("own", made[:2])
    hold = place(world.ledger, why="file 4711", by="counsel", now=NOW, tenant=ACME, first=DAYS[0], last=DAYS[0])
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert not found.complete
    assert found.held["attempt"] == 2
    assert found.held["token_run"] == 2
    assert [path.name for path in found.held_segments] == ["own.segment"]
    assert set(world.lake.scan("attempt").collect()["attempt_lo"]) == {each.key.lo for each in [*made[:2], *other]}
    assert whole(world, made[2:]) == []
    assert {name for name in world.keys.names() if name.startswith(ACME)} == {
        f"{ACME}.3.2026-02.{kind}.1" for kind in ("ids", "traces")
    }
    assert [each.hold_id for each in found.holds] == [hold.hold_id]
    assert found.held["keys"] == 2
    before = set(world.keys.names())
    world.add(ACME, DAYS[1:])
    since = set(world.keys.names()) - before
    back = nightly(world)
    assert (len(back.repeated), back.finished, back.furthered) == (1, (), ()), "what the hold keeps is still there"
    release(world.ledger, hold, why="settled", by="counsel", now=NOW)
    ended = nightly(world)
    assert (ended.repeated, ended.finished, ended.furthered) == ((), (found.erasure_id,), ())
    assert {name for name in world.keys.names() if name.startswith(ACME)} == since, "of data since"
    assert world.lake.scan("attempt").collect()["tenant"].unique().to_list() == [BETA]
    assert [(each.what, each.path.parent.name) for each in search([world.root], everything(made, ACME))
            if each.path.parent.name not in {"content-keys", "holds"}] == []  # fmt: skip
    done(world, Subject(tenant=ACME), billing_too=True)
    assert [each.tenant for each in holds(world.ledger)] == [erased(ACME)]


def test_segments_the_lake_has_not_read_lose_the_subject_and_keep_the_rest(world: World) -> None:
    acme, beta = world.add(ACME, DAYS), world.add(BETA, DAYS)
    mixed = world.seal("mixed", acme[:2] + beta[:2])
    other = world.seal("other", beta[2:])
    before = verify_segment(other)[1]
    found = done(world, Subject(tenant=ACME))
    manifest, _ = verify_segment(mixed)
    assert {table: rows for table, (rows, _, _) in manifest.files.items()} == {
        "attempt": 4, "usage_report": 4, "foreign_id": 2, "request_scope": 2, "token_run": 2,
    }  # fmt: skip
    assert (manifest.writer, manifest.sequence_first, manifest.sequence_last, manifest.labels) == (
        "agent-1", 0, 3, {"erased": "true"},
    )  # fmt: skip
    assert verify_segment(other)[1] == before
    assert [each.rows for each in found.receipts if each.table_name == "spool"] == [6]
    done(world, Subject(tenant=ACME), billing_too=True)
    assert {rows for rows, _, _ in verify_segment(mixed)[0].files.values()} == {2}
    assert sorted(path.name for path in world.spool.iterdir()) == ["mixed.segment", "other.segment"]


def test_what_is_not_sealed_yet_is_named_and_notes_of_ids_are_emptied(world: World) -> None:
    acme, beta = world.add(ACME, DAYS), world.add(BETA, DAYS)
    (world.spool / "agent-1-17-0.journal").write_bytes(b"WB" + acme[0].key.to_bytes())
    note = world.spool / "process.agent-1-17-0.journal.ids"
    expected = {each.key.to_hex(): [20, 1_770_000_000_000_000] for each in (acme[0], beta[0])}
    note.write_text(json.dumps({"source": "agent-1", "expected": expected}))
    came = world.spool / "process.agent-1-17-1.content.ids"
    came.write_text(json.dumps({"source": "agent-1", "came": {acme[0].key.to_hex(): 20}}))
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert [path.name for path in found.not_yet] == ["agent-1-17-0.journal"]
    assert [(each.what, each.path.name) for each in found.left or ()] == [("an attempt id", "agent-1-17-0.journal")]
    assert not found.complete
    assert json.loads(note.read_text())["expected"] == {beta[0].key.to_hex(): [20, 1_770_000_000_000_000]}
    assert json.loads(came.read_text()) == {"source": "agent-1", "came": {}}


def test_what_somebody_else_wrote_down_is_found_and_named(world: World) -> None:
    made = world.add(ACME, DAYS)
    (world.scheduler / "run.json").write_text(json.dumps({"attempt": made[3].key.to_hex()}))
    (world.scheduler / "server.db").write_bytes(b"SQLite" + ACME.encode() + bytes(100))
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert [(each.what, each.path.name) for each in found.left or ()] == [
        ("an attempt id", "run.json"),
        ("the pseudonym of the tenant", "server.db"),
    ]
    assert not found.complete
    assert done(world, Subject(tenant=BETA), look=False).left is None


def test_identifiers_that_others_have_too_are_not_looked_for(world: World) -> None:
    acme, beta = world.add(ACME, DAYS[:1]), world.add(BETA, DAYS[:1])
    rows = world.lake.scan("foreign_id").collect()
    shared = rows.with_columns(
        value=pl.when(pl.col("attempt_lo").is_in([acme[0].key.lo, beta[0].key.lo])).then(pl.lit("trace-of-both"))
        .when(pl.col("attempt_lo") == acme[1].key.lo).then(pl.lit("r1")).otherwise("value")
    )  # fmt: skip
    world.lake.replace("foreign_id", shared, days=DAYS[:1])
    found = done(world, Subject(tenant=ACME))
    assert found.left == ()
    assert found.unsearched == ("1 identifiers of other systems are too short to be told from chance",)
    assert world.lake.scan("foreign_id").collect()["value"].to_list().count("trace-of-both") == 1


def test_asking_again_does_nothing_more(world: World) -> None:
    world.add(ACME, DAYS)
    first = done(world, Subject(tenant=ACME), billing_too=True)
    again = done(world, Subject(tenant=ACME), billing_too=True)
    assert (again.erasure_id, again.receipts, again.rows) == (first.erasure_id, (), {})
    made = world.add(ACME, DAYS[:1])
    third = done(world, Subject(tenant=ACME), billing_too=True)
    assert len(third.keys) == 2, "whoever asks again means what came since as well"
    assert whole(world, made, ACME) == []


def test_nobody_is_erased_from_an_empty_lake(world: World) -> None:
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert (found.rows, found.keys, found.receipts, found.complete) == ({}, (), (), True)
    assert nightly(world).receipts == ()


@pytest.mark.parametrize("where", ["segment", "pack", "key", "page", "memory"])
def test_whoever_is_known_by_one_place_alone_is_known(world: World, where: str) -> None:
    whom = Subject(tenant=ACME)
    with pytest.raises(ConfigError, match="knows no such tenant"):
        done(world, whom, only_known=True)
    assert not world.ledger.folder.exists()
    if where == "segment":
        other = World(world.root / "other")
        shutil.move(other.seal("own", other.add(ACME, DAYS[:1])), world.spool)
    elif where == "pack":
        folder = world.closes / "2026-02" / "rows" / "attempt"
        folder.mkdir(parents=True)
        rows = framed("attempt", rows_of(World(world.root / "other").add(ACME, DAYS[:1]))["attempt"])
        rows.write_parquet(folder / "2026-02-28.parquet")
    elif where == "key":
        world.keys.current(KeyScope(ACME, 3, "2026-02"))
    elif where == "page":
        (world.reports / "weighbridge-2026-02.html").write_text(f"<td>{ACME}</td>")
    else:
        done(world, whom)
    preview(world.places, whom, now=NOW, only_known=True)
    if where in {"segment", "pack", "key"}:
        preview(world.places, Subject(tenant=ACME, bucket=3), now=NOW, only_known=True)
    if where != "memory":  # all of a tenant was erased: whatever bucket it had
        with pytest.raises(ConfigError, match=r"has no bucket 17 here; known of it: (3|none)"):
            preview(world.places, Subject(tenant=ACME, bucket=17), now=NOW, only_known=True)


def test_whoever_is_not_there_takes_nothing_of_others_along(world: World) -> None:
    world.add(BETA, DAYS[:1])
    before = world.lake.digests()
    found = done(world, Subject(tenant=ACME), billing_too=True)
    assert (found.rows, found.keys, found.receipts, found.complete) == ({}, (), (), True)
    assert world.lake.digests() == before


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (Subject(), "nobody is named"),
        (Subject(bucket=3), "a bucket needs --tenant"),
        (attempts(), "names no attempt"),
        (Subject(tenant=ACME, attempts=pl.DataFrame({"attempt_hi": [1], "attempt_lo": [2]})), "leave the tenant"),
    ],
)
def test_a_request_about_nobody_is_refused(world: World, subject: Subject, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        done(world, subject)
    assert not world.ledger.folder.exists()


def test_while_somebody_writes_nothing_is_erased(world: World) -> None:
    world.add(ACME, DAYS)
    other = World(world.root).lake
    with other.lock(), pytest.raises(LakeBusyError):
        done(world, Subject(tenant=ACME))
    assert world.lake.rows("token_run") == 4
    assert not world.ledger.folder.exists()


def test_every_table_that_may_hold_somebody_was_filled(world: World) -> None:
    world.add(ACME, DAYS)
    named = {table for table, fact in FACTS.items() if fact.erasure is not Erasure.STAYS}
    assert named - {"usage_period", "invoice_gap"} <= set(world.counts()), (
        "what is about no attempt has a test of its own"
    )
