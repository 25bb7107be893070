"""What retention finds: unfinished deletions and erasures, what is overdue, what a hold keeps beyond its time."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.retention.world import ACME, World, policy

from weighbridge.pipeline.retention import course, work
from weighbridge.pipeline.retention.apply import Applied, apply
from weighbridge.pipeline.retention.erase import erase
from weighbridge.pipeline.retention.found import CODES
from weighbridge.pipeline.retention.holds import place, release
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.keys import KeyFolder, KeyUnavailableError

DAY = date(2026, 1, 10)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


def applied(world: World, *, places: Any = None, **days: int) -> Applied:
    return apply(plan(places or world.places, policy(**days), NOW.date()), by="timer", now=NOW)


def told(world: World) -> dict[tuple[str, ...], int]:
    """(code, values of the subject) -> rows, of what retention found."""
    rows = world.lake.scan("finding").collect().to_dicts()
    own = [row for row in rows if row["origin"] == str(FindingOrigin.RETENTION)]
    assert {row["code"] for row in own} <= set(CODES)
    assert {row["period"] for row in own} <= {"all"}
    assert not any(row["severity"] == str(Severity.ERROR) for row in own), "they hold no month back"
    assert not any(ACME in str(row) for row in own)
    return {(row["code"], *(pair.split("=")[1] for pair in row["subject"].split("; "))): row["rows"] for row in own}


def test_where_all_went_as_it_should_nothing_is_found(world: World) -> None:
    world.add(ACME, [DAY])
    assert applied(world).receipts
    assert told(world) == {}


def test_what_a_hold_keeps_beyond_its_time_is_told_until_it_ends(world: World) -> None:
    world.add(ACME, [DAY])
    hold = place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME, tables=("token_run",))
    applied(world)
    assert told(world) == {
        ("held_past_its_term", "token_run", "rows"): 2,
        ("held_past_its_term", "token_run", "keys"): 1,
    }
    before = world.lake.digest("finding")
    assert applied(world).receipts == ()
    assert world.lake.digest("finding") == before
    release(world.ledger, hold, why="settled", by="counsel", now=NOW)
    applied(world)
    assert told(world) == {}


def test_a_deletion_that_could_not_be_done_is_told_and_so_is_what_is_overdue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = world.reports / "weighbridge-2014-01.html"
    page.write_text("page")
    world.add(ACME, [DAY])

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(course, "_remove", refused)
        patched.setattr(KeyFolder, "destroy", _unreachable)
        assert len(applied(world).failed) == 3
    assert told(world) == {
        ("deletion_unfinished", "reports"): 1,
        ("deletion_unfinished", "state_event"): 1,
        ("deletion_unfinished", "token_run"): 1,
        ("kept_past_its_term", "reports", "retention.reports", "files"): 1,
        ("kept_past_its_term", "state_event", "retention.traces", "keys"): 1,
        ("kept_past_its_term", "token_run", "retention.ids", "keys"): 1,
    }
    applied(world)
    assert told(world) == {}
    assert not page.exists()


def _unreachable(*_: object) -> None:
    raise KeyUnavailableError("the key service cannot be reached")


def test_keys_that_cannot_be_listed_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add(ACME, [DAY])
    with monkeypatch.context() as patched:
        patched.setattr(KeyFolder, "names", _unreachable)
        applied(world)
    assert told(world) == {("deletion_unfinished", "keys"): 1}
    applied(world)
    assert told(world) == {}


def test_an_erasure_that_is_held_is_told_until_it_is_done(world: World) -> None:
    world.add(ACME, [DAY])
    hold = place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME, tables=("request_scope",))
    done = erase(world.places, Subject(tenant=ACME), by="officer", now=NOW)
    assert done.erasure_id is not None
    assert told(world) == {("erasure_unfinished", done.erasure_id): 2}
    applied(world)
    assert told(world)["erasure_unfinished", done.erasure_id] == 2
    release(world.ledger, hold, why="settled", by="counsel", now=NOW)
    applied(world)
    assert told(world) == {}
    assert world.lake.rows("request_scope") == 0


def test_an_erasure_waits_for_files_that_were_not_sealed(world: World) -> None:
    world.add(ACME, [DAY])
    journal = world.spool / "agent-1-17-0.journal"
    journal.write_bytes(b"WB")
    done = erase(world.places, Subject(tenant=ACME), by="officer", now=NOW)
    assert done.erasure_id is not None
    waits = {("erasure_unfinished", done.erasure_id): 1}
    assert told(world) == waits
    applied(world)
    assert told(world) == waits
    journal.unlink()
    (world.spool / "agent-1-17-1.journal").write_bytes(b"WB")  # begun since: of data since
    applied(world)
    assert told(world) == {}


def test_traces_that_were_found_are_told_until_the_same_erasure_finds_none(world: World) -> None:
    world.add(ACME, [DAY])
    note = world.scheduler / "run.json"
    note.write_text(json.dumps({"tenant": ACME}))
    whom, day = Subject(tenant=ACME), timedelta(days=1)
    done = erase(world.places, whom, by="officer", now=NOW, billing_too=True)
    assert done.erasure_id is not None
    assert told(world) == {("erased_traces_left", done.erasure_id): 1}
    applied(world)
    assert told(world) == {("erased_traces_left", done.erasure_id): 1}
    note.unlink()
    erase(world.places, whom, by="officer", now=NOW + day, billing_too=True)
    assert told(world) == {}


def test_of_a_link_among_the_pages_only_the_link_goes(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "page.html").write_text("somebody else's")
    for name, target in (("2014-01", elsewhere), ("2014-02.html", elsewhere / "page.html"), ("2014-03", Path("gone"))):
        (world.reports / name).symlink_to(target)
    done = applied(world)
    assert done.failed == ()
    assert [(found.table_name, found.rows) for found in done.receipts] == [("reports", 3)]
    assert list(world.reports.iterdir()) == []
    assert (elsewhere / "page.html").read_text() == "somebody else's"


def test_a_page_that_goes_while_it_is_looked_at_stops_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.reports / "weighbridge-2014-01.html").write_text("page")
    world.add(ACME, [DAY])

    def gone(path: Path) -> str:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(work, "sha256_file", gone)
        done = applied(world)
    assert done.failed == ("reports: No such file or directory; it is tried again",)
    assert world.lake.rows("token_run") == 0
