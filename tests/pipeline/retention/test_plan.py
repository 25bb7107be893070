"""The plan and its execution: each class exactly on its day, holds, overrides, folders, keys, receipts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.retention.world import ACME, BETA, World, policy, row, segment_of
from tests.pipeline.retention.world import frame as framed

from weighbridge.pipeline.lake import Lake, LakeFullError
from weighbridge.pipeline.retention.apply import Applied, apply
from weighbridge.pipeline.retention.facts import FACTS, Kept
from weighbridge.pipeline.retention.holds import place, release, standing
from weighbridge.pipeline.retention.ledger import Ledger
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.policy import RetentionPolicy
from weighbridge.pipeline.retention.receipts import receipts
from weighbridge.schemas import canonical
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.errors import LakeBusyError
from weighbridge.schemas.identity import erased
from weighbridge.schemas.keys import KeyCommand, KeyEnvironment
from weighbridge.schemas.tables import TABLES

DAY = date(2026, 1, 10)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
ROWS = [kept for kept in Kept if kept is not Kept.SPOOL]


def due(world: World, today: date, told: RetentionPolicy | None = None) -> dict[str, int]:
    """Table -> rows that are due."""
    out: dict[str, int] = {}
    for item in plan(world.places, told or policy(), today).due:
        out[item.table] = out.get(item.table, 0) + item.rows
    return out


def carried(world: World, today: date, told: RetentionPolicy | None = None) -> Applied:
    return apply(plan(world.places, told or policy(), today), by="tester", now=NOW)


@pytest.mark.parametrize("kept", ROWS)
def test_each_class_goes_on_its_day_and_not_a_day_before(world: World, kept: Kept) -> None:
    world.add(ACME, [DAY])
    (world.reports / "weighbridge-2026-01-10_2026-01-10.html").write_text("page")
    days = policy().days[kept]
    # A finding, an adjustment and a report of a month are about its last day.
    end = {"finding": date(2026, 1, 31), "adjustment": date(2026, 1, 31)}
    tables = [fact.table for fact in FACTS.values() if fact.kept is kept and world.lake.rows(fact.table)]
    if kept is Kept.REPORTS:
        tables.append("reports")
    assert tables
    for table in tables:
        first_due = end.get(table, DAY) + timedelta(days=days + 1)
        assert table not in due(world, first_due - timedelta(days=1)), table
        assert due(world, first_due)[table] == (1 if table == "reports" else world.lake.rows(table)), table


def test_a_day_is_taken_and_its_neighbour_stays(world: World) -> None:
    world.add(ACME, [DAY, DAY + timedelta(days=1)])
    carried(world, DAY + timedelta(days=31))
    assert world.lake.days("token_run") == [DAY + timedelta(days=1)]
    assert world.lake.days("attempt") == [DAY, DAY + timedelta(days=1)]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"])
def test_the_zone_of_the_machine_plays_no_part(world: World, zone: str) -> None:
    world.add(ACME, [DAY])
    program = (
        "import sys; from datetime import date; from pathlib import Path\n"
        "from tests.pipeline.retention.world import World, policy\n"
        "from weighbridge.pipeline.retention.plan import plan\n"
        "world = World(Path(sys.argv[1]))\n"
        "for day in (9, 10):\n"
        "    print([item.table for item in plan(world.places, policy(), date(2026, 2, day)).due if item.rows])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(world.root)], capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )  # fmt: skip
    assert told.stdout.splitlines() == ["['state_event']", "['token_run', 'state_event']"]


def test_a_tenant_and_a_task_have_days_of_their_own(world: World) -> None:
    world.add(ACME, [DAY], task="chat")
    world.add(BETA, [DAY], task="chat")
    world.add(BETA, [DAY], bucket=9, task="code")
    told = policy(
        billing=100,
        operations=100,
        tenants={ACME: {"billing": 10}},
        tasks={"chat": {"operations": 20}, "code": {"billing": 50}},
    )
    first = DAY + timedelta(days=11)
    assert due(world, first - timedelta(days=1), told).keys() == {"state_event"}
    found = plan(world.places, told, first).due
    of_billing = {item.table: (item.rule.tenant, item.rows) for item in found if item.rule.kept is Kept.BILLING}
    one_each = {"finding_status", "quarantine", "quarantine_status", "invoice_line", "finding"}
    # Tables of what is no attempt have tests of their own, and no rows here.
    apart = {"usage_period", "engine_counter", "recount_constant"}
    apart |= {"invoice_detail", "invoice_gap", "invoice_cause", "engine_gap", "engine_gap_cause"}
    apart |= {"audit_cell", "audit_tolerance", "comparison", "recommendation"}
    billed = {fact.table for fact in FACTS.values() if fact.kept is Kept.BILLING} - one_each - apart
    assert of_billing == {table: (ACME, 1 if table == "baseline" else 2) for table in billed}
    carried(world, first, told)
    assert world.lake.scan("attempt").collect()["tenant"].unique().to_list() == [BETA]
    assert {table: world.lake.rows(table) for table in ("usage_report", "alias", "gap_cause")} == dict.fromkeys(
        ("usage_report", "alias", "gap_cause"), 4
    )
    assert due(world, DAY + timedelta(days=21), told)["request_scope"] == 4, "chat of both tenants"
    carried(world, DAY + timedelta(days=51), told)
    assert world.lake.scan("attempt").collect()["task"].unique().to_list() == ["chat"]
    assert world.lake.scan("request_scope").collect()["task"].unique().to_list() == ["code"]


def test_a_longer_line_keeps_what_the_class_lets_go(world: World) -> None:
    world.add(ACME, [DAY])
    world.add(BETA, [DAY])
    told = policy(tenants={ACME: {"ids": 90}})
    carried(world, DAY + timedelta(days=40), told)
    assert world.lake.scan("token_run").collect()["tenant"].unique().to_list() == [ACME]
    assert world.lake.scan("state_event").collect().height == 0


def test_a_block_goes_when_the_first_of_its_rows_is_due(world: World) -> None:
    chat = world.add(ACME, [DAY], task="chat", count=1)
    code = world.add(ACME, [DAY], task="code", count=1)
    rows = world.runs([*chat, *code])
    world.lake.replace("token_run", framed("token_run", rows), days=[DAY])
    told = policy(tasks={"chat": {"ids": 3}})
    assert due(world, DAY + timedelta(days=3), told) == {}
    assert due(world, DAY + timedelta(days=4), told) == {"token_run": 2}
    carried(world, DAY + timedelta(days=4), told)
    assert world.lake.rows("token_run") == 0
    assert [found.rule for found in receipts(world.lake)] == ["retention.tasks.ids"]


def test_keys_go_when_all_they_cover_is_due_and_are_listed(world: World) -> None:
    world.add(ACME, [DAY])
    world.add(BETA, [DAY + timedelta(days=30)])
    names = world.keys.names()
    carried(world, date(2026, 2, 28))
    assert world.keys.names() == [name for name in names if ".2026-01.traces." not in name]
    done = carried(world, date(2026, 3, 3))
    assert [found.key_ids for found in done.receipts if found.method is ReceiptMethod.KEY_DESTROYED] == [
        (f"{erased(ACME)}.3.2026-01.ids.1",)
    ]
    assert world.keys.names() == [f"{BETA}.3.2026-02.{kind}.1" for kind in ("ids", "traces")]
    assert world.keys.destroyed() == [f"{ACME}.3.2026-01.{kind}.1" for kind in ("ids", "traces")]


def test_a_hold_stops_deletion_and_is_shown_and_its_release_lets_it_go_on(world: World) -> None:
    held = world.add(ACME, [DAY])
    world.add(BETA, [DAY])
    hold = place(world.ledger, why="file 4711", by="counsel", now=NOW, tenant=ACME)
    today = date(2026, 3, 3)
    shown = plan(world.places, policy(), today)
    assert shown.holds == (hold,)
    assert {(item.table, item.rows, item.held) for item in shown.due if item.rows or item.held} == {
        ("token_run", 2, 2),
        ("state_event", 2, 2),
    }
    assert [key for item in shown.due for key in item.held_keys] == [
        f"{ACME}.3.2026-01.{k}.1" for k in ("ids", "traces")
    ]
    carried(world, today)
    assert set(world.lake.scan("token_run").collect()["attempt_lo"]) == {each.key.lo for each in held}
    assert set(world.keys.names()) == {f"{ACME}.3.2026-01.{kind}.1" for kind in ("ids", "traces")}
    release(world.ledger, hold, why="settled", by="counsel", now=NOW)
    carried(world, today)
    assert (world.lake.rows("token_run"), world.lake.rows("state_event"), world.keys.names()) == (0, 0, [])


@pytest.mark.parametrize(
    ("about", "stays"),
    [
        ({"bucket": 3, "tenant": ACME}, 2),
        ({"bucket": 4, "tenant": ACME}, 0),
        ({"first": DAY, "last": DAY}, 2),
        ({"last": DAY - timedelta(days=1)}, 0),
        ({"tables": ("token_run",)}, 2),
        ({"tables": ("attempt",)}, 0),
        ({}, 2),
    ],
)
def test_a_hold_is_by_bucket_period_or_table(world: World, about: dict[str, object], stays: int) -> None:
    world.add(ACME, [DAY])
    place(world.ledger, why="file 1", by="counsel", now=NOW, **about)  # type: ignore[arg-type]
    carried(world, DAY + timedelta(days=31))
    assert world.lake.rows("token_run") == stays


def test_a_hold_of_one_row_holds_its_block(world: World) -> None:
    world.add(ACME, [DAY], bucket=None)
    place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME, bucket=0)
    carried(world, DAY + timedelta(days=31))
    assert world.lake.rows("token_run") == 2


def test_a_receipt_has_the_digest_of_what_was_there(world: World) -> None:
    world.add(ACME, [DAY, DAY + timedelta(days=1)])
    about, lines = TABLES["token_run"], ""
    for day in (DAY, DAY + timedelta(days=1)):
        rows = world.lake.scan("token_run", first=day, last=day).collect()
        lines += f"{day} {rows.height} {canonical.digest(canonical.rows(about, rows.to_arrow()))}\n"
    version = world.lake.version("token_run")
    assert version is not None
    done = carried(world, DAY + timedelta(days=32))
    (found,) = [each for each in done.receipts if each.table_name == "token_run"]
    assert found.digest_before == hashlib.sha256(lines.encode()).hexdigest()
    assert (found.rows, found.first_day, found.last_day) == (4, DAY, DAY + timedelta(days=1))
    assert (found.table_version, found.method, found.sound) == (version + 1, ReceiptMethod.DELETED, True)
    assert (found.erased_at, found.erased_by) == (NOW, "tester")
    assert [each.receipt_id for each in receipts(world.lake)] == sorted(each.receipt_id for each in done.receipts)


def test_receipts_are_files_too_and_each_mends_the_other(world: World) -> None:
    world.add(ACME, [DAY])
    done = carried(world, DAY + timedelta(days=31))
    folder = world.ledger.folder / "receipts"
    files = {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}
    assert set(files) == {each.receipt_id for each in done.receipts}
    told = next(each for each in files.values() if each["table_name"] == "token_run")
    assert told["statement"] == (
        "2026-03-04 10:00 UTC: 2 rows of token_run of 2026-01-10 were deleted; by rule retention.ids, "
        "carried out by tester."
    )
    digest = world.lake.digest("receipt")
    world.lake.replace("receipt", world.lake.scan("receipt").collect().head(1), days=None)
    left = world.lake.scan("receipt").collect()["receipt_id"][0]
    (folder / f"{left}.json").unlink()
    carried(world, DAY + timedelta(days=31))
    assert world.lake.digest("receipt") == digest
    assert {path.stem: json.loads(path.read_text()) for path in folder.iterdir()} == files


def test_a_receipt_file_that_was_changed_is_not_taken_for_one(world: World) -> None:
    world.add(ACME, [DAY])
    done = carried(world, DAY + timedelta(days=31))
    path = next(path for path in (world.ledger.folder / "receipts").iterdir() if '"rows": 2' in path.read_text())
    path.write_text(path.read_text().replace('"rows": 2', '"rows": 1'))
    world.lake.replace("receipt", world.lake.scan("receipt").collect().head(0), days=None)
    carried(world, DAY + timedelta(days=31))
    known = {found.receipt_id for found in receipts(world.lake)}
    assert known == {found.receipt_id for found in done.receipts} - {path.stem}


def test_a_second_run_does_nothing(world: World) -> None:
    world.add(ACME, [DAY])
    carried(world, date(2026, 3, 3))
    state = (world.lake.digests(), world.lake.version("receipt"), sorted(world.root.rglob("*")))
    again = carried(world, date(2026, 3, 3))
    assert again == Applied((), 0, (), ())
    assert (world.lake.digests(), world.lake.version("receipt"), sorted(world.root.rglob("*"))) == state


def test_an_empty_installation_has_nothing_due(world: World) -> None:
    told = plan(world.places, policy(), date(2026, 3, 3))
    assert (told.due, told.holds, told.pending, told.notes, told.rows) == ((), (), 0, (), 0)
    assert carried(world, date(2026, 3, 3)) == Applied((), 0, (), ())
    assert not world.ledger.folder.exists()


def test_what_is_gone_is_not_on_disk_any_more(world: World) -> None:
    made = world.add(ACME, [DAY])
    carried(world, DAY + timedelta(days=31))
    folder = Path(world.lake.root) / "content" / "token_run"
    assert [path.name for path in folder.rglob("*.parquet")] == [
        f"{world.lake.version('token_run'):020d}.checkpoint.parquet"
    ]
    assert all(str(each.key.lo).encode() not in path.read_bytes()
               for each in made for path in folder.rglob("*") if path.is_file())  # fmt: skip


def test_of_two_runs_at_once_the_second_is_told_to_wait(world: World) -> None:
    world.add(ACME, [DAY])
    told = plan(world.places, policy(), date(2026, 3, 3))
    other = Lake.open(world.lake.root)
    with other.lock(), pytest.raises(LakeBusyError, match="is being written"):
        apply(told, by="tester", now=NOW)
    assert world.lake.rows("token_run") == 2
    assert len(apply(told, by="tester", now=NOW).receipts) == 4


def test_rows_and_holds_that_came_since_the_plan_are_treated_as_they_are(world: World) -> None:
    world.add(ACME, [DAY])
    told = plan(world.places, policy(), date(2026, 3, 3))
    world.add(BETA, [DAY])
    place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME)
    apply(told, by="tester", now=NOW)
    assert world.lake.scan("token_run").collect()["tenant"].unique().to_list() == [ACME]


def test_a_lake_with_an_address_is_emptied_in_the_same_way(tmp_path: Path) -> None:
    world = World(tmp_path, (tmp_path / "lake").as_uri())
    made = world.add(ACME, [DAY])
    carried(world, DAY + timedelta(days=31))
    assert world.lake.rows("token_run") == 0
    folder = tmp_path / "lake" / "content" / "token_run"
    assert not list(folder.glob("day=*/*"))
    assert all(str(made[0].key.lo).encode() not in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_pages_and_packs_go_by_the_period_in_their_names(world: World) -> None:
    for name in ("weighbridge-2014-01.html", "weighbridge-2014-02-01_2014-03-04.xlsx", "notes.txt", "2014-13.html"):
        (world.reports / name).write_text("page")
    (world.reports / "weighbridge-2014-01-csv").mkdir()
    (world.reports / "weighbridge-2014-01-csv" / "totals.csv").write_text("1")
    (world.closes / "2014-01").mkdir()
    (world.closes / "2014-01" / "manifest.json").write_text("{}")
    first_due = date(2014, 1, 31) + timedelta(days=3651)
    assert due(world, first_due - timedelta(days=1)) == {}
    assert due(world, first_due) == {"reports": 2, "closes": 1}
    place(world.ledger, why="file 1", by="counsel", now=NOW, tables=("closes",))
    done = carried(world, first_due)
    assert sorted(path.name for path in world.reports.iterdir()) == [
        "2014-13.html", "notes.txt", "weighbridge-2014-02-01_2014-03-04.xlsx",
    ]  # fmt: skip
    assert (world.closes / "2014-01" / "manifest.json").is_file()
    (found,) = done.receipts
    assert (found.table_name, found.rows, found.last_day) == ("reports", 2, date(2014, 1, 31))
    assert due(world, date(2014, 3, 4) + timedelta(days=3651))["reports"] == 1


def acknowledged(world: World, day: date) -> None:
    (word,) = world.spool.glob("*.ack")
    moment = datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC).timestamp()
    os.utime(word, (moment, moment))


def test_a_segment_goes_days_after_it_was_acknowledged(world: World) -> None:
    made = world.add(ACME, [DAY])
    world.seal("kept", made)
    world.seal("taken", made, taken_in=True)
    acknowledged(world, date(2026, 2, 1))
    assert "spool" not in due(world, date(2026, 2, 8))
    assert due(world, date(2026, 2, 9))["spool"] == 10
    hold = place(world.ledger, why="file 1", by="counsel", now=NOW, tenant=ACME, tables=("spool",))
    held = next(item for item in plan(world.places, policy(), date(2026, 2, 9)).due if item.table == "spool")
    assert (held.rows, held.held, held.paths) == (0, 10, ())
    release(world.ledger, hold, why="over", by="counsel", now=NOW)
    done = carried(world, date(2026, 2, 9))
    assert [path.name for path in world.spool.iterdir()] == ["kept.segment"]
    assert [found.rows for found in done.receipts if found.table_name == "spool"] == [10]


def test_a_segment_that_the_lake_does_not_know_stays_whatever_its_acknowledgement_says(world: World) -> None:
    made = world.add(ACME, [DAY])
    world.seal("taken", made, taken_in=True)
    acknowledged(world, date(2026, 2, 1))
    world.lake.replace("segment", world.lake.scan("segment").collect().head(0), days=None)
    carried(world, date(2026, 3, 3))
    assert (world.spool / "taken.segment").is_dir()


def test_one_root_key_erases_rows_and_says_what_that_is_worth(world: World) -> None:
    world.add(ACME, [DAY])
    places = Places(lake=world.lake, ledger=world.ledger, keys=KeyEnvironment("ROOT", {"ROOT": "ab" * 32}))
    told = plan(places, policy(), date(2026, 3, 3))
    assert ["none of them can be destroyed alone" in note for note in told.notes] == [True]
    done = apply(told, by="tester", now=NOW)
    assert world.lake.rows("token_run") == 0
    assert {found.method for found in done.receipts} == {ReceiptMethod.DELETED}


SERVICE = """
import sys
from pathlib import Path
gone = Path(sys.argv[1])
if sys.argv[2] == "list":
    sys.exit(2)
if sys.argv[2] == "destroy":
    if (gone / "down").exists():
        sys.exit(5)
    (gone / sys.argv[3]).touch()
"""


def test_a_key_service_destroys_what_rows_name_and_is_asked_again_where_it_failed(world: World) -> None:
    world.add(ACME, [DAY])
    script, gone = world.root / "service.py", world.root / "gone"
    script.write_text(SERVICE)
    gone.mkdir()
    (gone / "down").touch()
    keys = KeyCommand([sys.executable, str(script), str(gone)])
    places = Places(lake=world.lake, ledger=world.ledger, keys=keys)
    told = plan(places, policy(), date(2026, 3, 3))
    assert ["does not list its keys" in note for note in told.notes] == [True]
    failed = apply(told, by="tester", now=NOW)
    assert len(failed.failed) == 2
    assert all("ended with exit code 5" in why for why in failed.failed)
    (gone / "down").unlink()
    done = apply(plan(places, policy(), date(2026, 3, 3)), by="tester", now=NOW)
    assert done.resumed == 2
    assert sorted(path.name for path in gone.iterdir()) == [f"{ACME}.3.2026-01.{kind}.1" for kind in ("ids", "traces")]
    assert sorted(key for found in done.receipts for key in found.key_ids) == [
        f"{erased(ACME)}.3.2026-01.{kind}.1" for kind in ("ids", "traces")
    ]
    assert done.failed == ()


def test_a_full_disk_leaves_everything_to_the_next_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add(ACME, [DAY])
    digests = world.lake.digests()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "write", full)
    with pytest.raises(LakeFullError):
        carried(world, DAY + timedelta(days=31))
    monkeypatch.undo()
    assert world.lake.digests() == digests
    carried(world, DAY + timedelta(days=31))
    assert world.lake.rows("token_run") == 0


def test_findings_and_invoices_are_about_their_period(world: World) -> None:
    line = row("invoice_line", DAY, invoice_id="i", line_id="1", revision=0,
               period_start=datetime(2026, 1, 1, tzinfo=UTC), period_end=datetime(2026, 2, 1, tzinfo=UTC))  # fmt: skip
    world.lake.append("invoice_line", framed("invoice_line", [line]))
    forever = row("finding", DAY, finding_id="f" * 32, period="all", last_day=None, origin="reconcile")
    world.lake.append("finding", framed("finding", [forever]))
    told = policy(billing=10)
    assert due(world, date(2026, 2, 10), told) == {}
    assert due(world, date(2026, 2, 11), told) == {"invoice_line": 1}
    carried(world, date(2126, 2, 11), told)
    assert (world.lake.rows("invoice_line"), world.lake.rows("finding")) == (0, 1)


def test_proofs_and_digests_of_files_are_kept_for_good(world: World) -> None:
    world.lake.append("segment", framed("segment", [row("segment", DAY, segment=segment_of(DAY))]))
    world.add(ACME, [DAY])
    carried(world, date(2026, 3, 3))
    carried(world, date(2126, 3, 3))
    assert set(world.counts()) == {"segment", "receipt"}
    assert standing(world.ledger) == []


def test_ten_thousand_rows_of_one_day_are_counted_once(world: World) -> None:
    world.add(ACME, [DAY], count=1_000)
    done = carried(world, DAY + timedelta(days=31))
    assert [found.rows for found in done.receipts if found.table_name == "token_run"] == [1_000]
    assert world.lake.scan("attempt").select(pl.len()).collect().item() == 1_000
