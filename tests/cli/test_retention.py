"""Retention and erasure on the command line: plan, apply, holds, receipts, erase."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.conftest import quietly

from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.retention.search import Needles, search
from weighbridge.pipeline.run.home import open_home, read_key
from weighbridge.pipeline.run.retain import retain
from weighbridge.schemas.enumerations import AttemptStatus, RunStream
from weighbridge.schemas.identity import AttemptKey, erased, pseudonym

Call = Callable[..., Any]
DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
NAME = "Canary Tenant Ltd"
TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with what an agent recorded of two tenants, token ids and all; only to be copied."""
    home = tmp_path_factory.mktemp("recorded") / "home"
    quietly("init", home)
    text = (home / "weighbridge.toml").read_text().replace('# content_keys = ""', 'content_keys = "ids"')
    (home / "weighbridge.toml").write_text(text)
    for part in range(2):
        recorded(home, NAME, 2)
        recorded(home, "other", 2)
        assert spool(["seal", str(home / "spool")]) == 0
        if not part:
            quietly("ingest", home / "spool", "--config", home)
    quietly("reconcile", "--config", home)
    quietly("report", "--config", home)
    return home


@pytest.fixture
def home(recorded_once: Path, tmp_path: Path) -> Path:
    """An installation with records of two tenants; one segment is not read yet."""
    copy = tmp_path / "home"
    shutil.copytree(recorded_once, copy, symlinks=True)
    return copy


def recorded(home: Path, tenant: str, count: int) -> None:
    recorder = Recorder.start(
        home / "spool",
        installation="gpu-1",
        key=read_key(home / "keys" / "pseudonym.key"),
        keys=KeyFolder(home / "ids"),
    )
    binding = recorder.bind(
        Context(tenant=tenant, task="chat", subject_bucket=5), counts=("input_computed", "output_computed")
    )
    for _ in range(count):
        attempt = binding.begin()
        runs = [Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, [7, 8, 9])]
        attempt.finish(DONE, (3, 3), None, recorder.offer_ids(attempt, runs))
    recorder.close()


def key_of(home: Path) -> bytes:
    return read_key(home / "keys" / "pseudonym.key")


def lake(home: Path) -> Lake:
    return Lake.open(home / "lake")


def traces(home: Path, *, tenant: str = NAME) -> list[str]:
    """Where anything of a tenant stands: its name, its pseudonym, the ids of its attempts."""
    whom = pseudonym(key_of(home), "tenant", tenant)
    needles = Needles({tenant.encode(): "name", whom.encode(): "pseudonym"}, {})
    return [found.path.name for found in search([path for path in home.iterdir() if path.name != "ids"], needles)]


def test_the_plan_names_what_is_due_and_changes_nothing(weighbridge: Call, home: Path) -> None:
    state = sorted(home.rglob("*"))
    ran = weighbridge("retention", "plan", "--json", "--config", home)
    assert (ran.code, ran.json["due"], ran.json["holds"]) == (0, [], [])
    day = TODAY + timedelta(days=31)
    ran = weighbridge("retention", "plan", "--day", day, "--json", "--config", home)
    due = {each["table"]: each for each in ran.json["due"]}
    assert (due["token_run"]["rows"], due["token_run"]["days"], due["token_run"]["kept_days"]) == (4, 1, 30)
    assert due["token_run"]["first_day"] == due["token_run"]["last_day"] == TODAY.isoformat()
    assert due["spool"]["rows"] > 0
    assert ran.json["day"] == day.isoformat()
    table = weighbridge("retention", "plan", "--day", TODAY + timedelta(days=90), "--config", home).out
    assert re.search(r"token_run +│ ids: kept 30 days +(│ +– +){5}│ +2 │", table), table
    assert "Next: weighbridge retention apply" in table
    assert [path for path in sorted(home.rglob("*")) if path.name not in {"state", "turn.lock"}] == state


def test_what_is_due_goes_with_receipts(weighbridge: Call, home: Path) -> None:
    (home / "weighbridge.toml").write_text(
        (home / "weighbridge.toml").read_text().replace("# [retention]", "[retention]\nids = 0\nspool = 0")
    )
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for word in (home / "spool").glob("*.ack"):
        os.utime(word, (old, old))
    rows = lake(home).scan("token_run").collect()
    yesterday = rows.with_columns(day=pl.lit(TODAY - timedelta(days=1)))
    lake(home).replace("token_run", yesterday, days=[TODAY, TODAY - timedelta(days=1)])
    ran = weighbridge("retention", "apply", "--by", "officer", "--json", "--config", home)
    assert (ran.code, ran.json["failed"], ran.json["resumed"]) == (0, [], 0)
    assert {each["table_name"]: each["rows"] for each in ran.json["receipts"]}["token_run"] == 4
    assert lake(home).rows("token_run") == 0
    left = sorted(path.suffix for path in (home / "spool").iterdir() if path.suffix in {".segment", ".ack"})
    assert left == [".segment"] * 4, "those the lake has not read; acknowledgements went with the others"
    listed = weighbridge("retention", "receipts", "--config", home)
    assert listed.code == 0
    assert "retention.ids" in listed.out
    assert "3 receipts" in listed.out
    again = weighbridge("retention", "apply", "--config", home)
    assert (again.code, "0 receipts" in again.out) == (0, True)
    assert weighbridge("retention", "receipts", "--until", "2020-01-01", "--json", "--config", home).json == []


def test_a_receipt_that_was_changed_is_seen(weighbridge: Call, home: Path) -> None:
    weighbridge("erase", "--tenant", NAME, "--config", home)
    rows = lake(home).scan("receipt").collect()
    lake(home).replace("receipt", rows.with_columns(pl.col("rows") + 1), days=None)
    ran = weighbridge("retention", "receipts", "--config", home)
    assert ran.code == 1
    assert "not what their ids say" in ran.out


def test_a_hold_is_placed_listed_and_released(weighbridge: Call, home: Path) -> None:
    about = ("--tenant", NAME, "--bucket", "5", "--table", "token_run", "--table", "spool", "--since", "2026-01-01")
    with lake(home).lock():  # as while something is deleted
        ran = weighbridge("retention", "hold", *about, "--why", "file 4711", "--by", "counsel", "--config", home)
        assert (ran.code, "is being written" in ran.err) == (2, True)
    assert weighbridge("retention", "holds", "--json", "--config", home).json == []
    ran = weighbridge("retention", "hold", *about, "--why", "file 4711", "--by", "counsel", "--config", home)
    assert ran.code == 0
    (hold,) = weighbridge("retention", "holds", "--json", "--config", home).json
    assert (hold["tenant"], hold["bucket"], hold["tables"], hold["first"], hold["last"], hold["by"]) == (
        pseudonym(key_of(home), "tenant", NAME), 5, ["spool", "token_run"], "2026-01-01", None, "counsel",
    )  # fmt: skip
    later = TODAY + timedelta(days=31)
    shown = weighbridge("retention", "plan", "--day", later, "--json", "--config", home).json
    due = {each["table"]: each for each in shown["due"]}
    assert (due["token_run"]["rows"], due["token_run"]["held"]) == (2, 2)
    assert "1 hold standing" in weighbridge("retention", "holds", "--config", home).out
    assert weighbridge("retention", "release", hold["hold_id"][:8], "--why", "settled", "--config", home).code == 0
    told = weighbridge("retention", "holds", "--config", home).out
    assert "settled" in told
    assert "0 holds standing" in told
    assert weighbridge("retention", "release", "0" * 8, "--why", "x", "--config", home).code == 2


def test_an_erasure_that_a_hold_stops_says_so_until_it_is_finished(weighbridge: Call, home: Path) -> None:
    about = ("--tenant", NAME, "--billing-too", "--config", home)
    for scope in ((), ("--all", "--tenant", NAME)):
        ran = weighbridge("retention", "hold", *scope, "--why", "everything", "--config", home)
        assert (ran.code, "--all" in ran.err, "--tenant, --bucket, --since, --until, --table" in ran.err) == (
            2,
            True,
            True,
        )
    assert weighbridge("retention", "hold", "--all", "--why", "file 7", "--by", "law", "--config", home).code == 0
    assert re.search(r"│ everything( +│){5} file 7 ", weighbridge("retention", "holds", "--config", home).out)
    (hold,) = weighbridge("retention", "holds", "--json", "--config", home).json
    shown, ran = weighbridge("erase", *about, "--dry-run"), weighbridge("erase", *about)
    assert (shown.code, ran.code) == (0, 1)
    told = f"hold {hold['hold_id'][:8]}, placed by law on {TODAY}\nNext: release it (`weighbridge retention release ID"
    for out in (shown.out, ran.out):
        assert told in out
        assert "file 7" not in out
    assert "not finished: a legal hold keeps some of it" in ran.out
    assert "searched: nothing is left beside what is held, which was not searched for" in ran.out
    assert "nothing is left\n" not in ran.out
    held = [{line for line in out.splitlines() if "held: " in line} for out in (shown.out, ran.out)]
    assert held[0] == held[1] != set()
    weighbridge("retention", "release", hold["hold_id"][:8], "--why", "settled", "--config", home)
    ended = weighbridge("retention", "apply", "--config", home)
    assert ended.code == 0
    assert "1 erasure finished now" in ended.out
    assert "come back" not in ended.out
    assert lake(home).rows("attempt") == 2


def test_a_tenant_nothing_is_known_of_is_remembered_where_that_is_meant(weighbridge: Call, home: Path) -> None:
    whom = ("erase", "--tenant", "late", "--config", home)
    assert weighbridge(*whom).code == 2
    assert weighbridge(*whom, "--even-if-unknown").code == 0
    assert len(list((home / "retention" / "erasures").iterdir())) == 1
    assert weighbridge(*whom).code == 0, "known by the erasure of before"
    recorded(home, "new", 1)
    unsealed = weighbridge("erase", "--tenant", "new", "--json", "--config", home)
    assert (unsealed.code, len(unsealed.json["not_yet"]) > 0) == (1, True), "known by a file that is not sealed yet"


def test_a_tenant_is_erased_by_its_plain_name_and_the_name_goes_nowhere(
    weighbridge: Call, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(traces(home)) > 5
    shown = weighbridge("erase", "--tenant", NAME, "--billing-too", "--dry-run", "--json", "--config", home)
    assert (shown.json["rows"]["attempt"], shown.json["keys"], shown.json["erasure"]) == (2, 1, None)
    monkeypatch.setattr("sys.stdin", io.StringIO(NAME + "\n"))
    ran = weighbridge("--log-level", "debug", "erase", "--tenant", "-", "--billing-too", "--config", home)
    assert ran.code == 0, ran.out
    assert "searched: nothing is left" in ran.out
    for told in (shown.out, ran.out, ran.err, caplog.text):
        assert NAME not in told
        assert pseudonym(key_of(home), "tenant", NAME) not in told
    assert traces(home) == []
    assert len(traces(home, tenant="other")) > 5
    assert KeyFolder(home / "ids").names() == [f"{pseudonym(key_of(home), 'tenant', 'other')}.5.{TODAY:%Y-%m}.ids.1"]
    assert not list((home / "reports").glob("weighbridge-*")), "both tenants stood in it"
    weighbridge("ingest", home / "spool", "--config", home)
    assert traces(home) == [], "segments that were not read yet bring nothing back"
    assert lake(home).rows("attempt") == 4


def test_billing_counts_stay_and_it_is_said_so(weighbridge: Call, home: Path) -> None:
    ran = weighbridge("erase", "--tenant", pseudonym(key_of(home), "tenant", NAME), "--config", home)
    assert ran.code == 0
    assert "Exact billing counts stay under the tenant's pseudonym" in ran.out
    assert "shows it:" in ran.out
    assert lake(home).rows("attempt") == 4
    assert lake(home).rows("token_run") == 2
    missing = weighbridge("findings", "ls", "--code", "ids_missing", "--json", "--config", home)
    weighbridge("reconcile", "--config", home)
    assert weighbridge("findings", "ls", "--code", "ids_missing", "--json", "--config", home).json == missing.json == []


def test_single_attempts_are_named_by_a_file(weighbridge: Call, home: Path, tmp_path: Path) -> None:
    rows = lake(home).scan("attempt").filter(pl.col("tenant") == pseudonym(key_of(home), "tenant", NAME)).collect()
    key = AttemptKey(*rows.select("attempt_hi", "attempt_lo").row(0))
    (tmp_path / "ids.txt").write_text(key.to_hex() + "\n")
    ran = weighbridge("erase", "--subject", tmp_path / "ids.txt", "--billing-too", "--json", "--config", home)
    assert (ran.code, ran.json["complete"], ran.json["rows"]["attempt"]) == (0, True, 1)
    assert key.lo not in lake(home).scan("attempt").collect()["attempt_lo"].to_list()
    (tmp_path / "ids.txt").write_text(key.to_hex() + "\nThe text of somebody\n")
    ran = weighbridge("erase", "--subject", tmp_path / "ids.txt", "--config", home)
    assert ran.code == 2
    assert "entry 2 is no attempt id" in ran.err
    assert "somebody" not in ran.err


def test_a_bucket_of_a_tenant(weighbridge: Call, home: Path) -> None:
    ran = weighbridge("erase", "--tenant", NAME, "--subject", "5", "--json", "--config", home)
    assert (ran.code, ran.json["complete"], ran.json["keys"]) == (0, True, 1)
    scope = weighbridge("retention", "receipts", "--json", "--config", home).json[0]["scope"]
    assert (scope["tenant"], scope["bucket"]) == (erased(pseudonym(key_of(home), "tenant", NAME)), "5")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nobody is named"),
        (("--subject", "5"), "a bucket needs --tenant"),
        (("--tenant", "team-nobody"), "the lake knows no such tenant"),
        (("--tenant", "team-nobody", "--dry-run"), "say so with --even-if-unknown"),
        (("--tenant", NAME, "--subject", "17"), "the tenant has no bucket 17 here; known of it: 5."),
        (("--subject", "nowhere.txt"), "neither the number of a bucket nor a file"),
        (("--tenant", " "), "the tenant's name is empty"),
        (("--tenant", "x", "--by", "two words"), "who asked is no name"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_refused(
    weighbridge: Call, home: Path, options: tuple[str, ...], said: str
) -> None:
    ran = weighbridge("erase", *options, "--config", home)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not (home / "retention").exists()


def test_what_is_left_is_named_and_told_by_the_exit_code(weighbridge: Call, home: Path, tmp_path: Path) -> None:
    prefect = tmp_path / "prefect"
    prefect.mkdir()
    (prefect / "result.json").write_text(json.dumps({"tenant": pseudonym(key_of(home), "tenant", NAME)}))
    recorded(home, NAME, 1)
    left = next(iter((home / "spool").glob("*.journal")))
    ran = weighbridge("erase", "--tenant", NAME, "--billing-too", "--also", prefect, "--config", home)
    assert ran.code == 1
    assert f"not yet: {left}" in ran.out
    assert f"found: the pseudonym of the tenant in {prefect / 'result.json'}" in ran.out


def test_what_was_not_sealed_goes_once_it_arrives_in_the_lake_or_in_the_spool(weighbridge: Call, home: Path) -> None:
    recorded(home, NAME, 2)
    recorded(home, NAME, 1)
    assert weighbridge("erase", "--tenant", NAME, "--billing-too", "--config", home).code == 1
    waits = weighbridge("findings", "ls", "--code", "erasure_unfinished", "--json", "--config", home)
    assert [(each["observed"], each["unit"]) for each in waits.json] == [(4, "files")], "two journals, two of token ids"
    assert weighbridge("retention", "apply", "--json", "--config", home).json["repeated"] == []
    sealed = set((home / "spool").glob("*.segment"))
    assert spool(["seal", str(home / "spool")]) == 0
    first, *_ = sorted(set((home / "spool").glob("*.segment")) - sealed)
    weighbridge("ingest", first, "--config", home)
    assert traces(home) != []
    assert len(weighbridge("retention", "apply", "--json", "--config", home).json["finished"]) == 1
    assert weighbridge("findings", "ls", "--code", "erasure_unfinished", "--json", "--config", home).json == []
    weighbridge("ingest", home / "spool", "--config", home)
    assert traces(home) == []
    assert pseudonym(key_of(home), "tenant", NAME) not in lake(home).scan("attempt").collect()["tenant"]


def test_a_second_spool_of_this_host_is_emptied_too(weighbridge: Call, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-spool"
    shutil.copytree(home / "spool", other)
    ran = weighbridge("erase", "--tenant", NAME, "--billing-too", "--spool", other, "--config", home)
    assert ran.code == 0, ran.out
    needles = Needles({pseudonym(key_of(home), "tenant", NAME).encode(): "pseudonym"}, {})
    assert search([other], needles) == []


def test_closed_totals_still_verify_after_an_erasure(weighbridge: Call, home: Path) -> None:
    month = f"{TODAY:%Y-%m}"
    assert weighbridge("close", month, "--force-early", "test", "--config", home).code == 0
    before = weighbridge("verify", month, "--json", "--config", home)
    assert before.code == 0
    for billing_too in ((), ("--billing-too",)):
        ran = weighbridge("erase", "--tenant", NAME, *billing_too, "--config", home)
        assert ran.code == 0, ran.out
        after = weighbridge("verify", month, "--json", "--config", home)
        assert after.code == 0, after.out
        assert after.json["root"] == before.json["root"]
    assert traces(home) == []
    assert f"attempt in close {month}" in weighbridge("retention", "receipts", "--config", home).out


@pytest.mark.parametrize("verb", [("retention", "apply"), ("erase", "--tenant", NAME)], ids=["apply", "erase"])
def test_a_clock_far_ahead_of_all_data_deletes_nothing(weighbridge: Call, weighed: Path, verb: tuple[str, ...]) -> None:
    before, newest = lake(weighed).digests(), max(lake(weighed).days("attempt"))
    ran = weighbridge(*verb, "--config", weighed)
    assert ran.code == 2
    assert f"the newest thing known here is of {newest}" in ran.err
    assert "say so with --accept-clock" in ran.err
    assert lake(weighed).digests() == before


def test_rows_kept_for_a_shorter_time_than_closes_leave_their_packs_too(weighbridge: Call, home: Path) -> None:
    month, whom = f"{TODAY:%Y-%m}", pseudonym(key_of(home), "tenant", NAME)
    with (home / "weighbridge.toml").open("a") as file:
        file.write(f"\n[retention.tenants.{whom}]\nbilling = 0\n")
    keys = lake(home).scan("attempt").filter(pl.col("tenant") == whom).collect()
    needles = Needles({}, {"an id": keys.select(hi="attempt_hi", lo="attempt_lo")})
    assert weighbridge("close", month, "--force-early", "test", "--config", home).code == 0
    places = [home / "closes", home / "lake" / "billing"]
    assert search(places, needles)
    later = datetime.now(UTC) + timedelta(days=1)
    done = retain(open_home(home, env={}), today=later.date(), now=later, by="timer").applied
    assert done.failed == ()
    assert {found.rule for found in done.receipts} == {"retention.tenants.billing"}
    assert search(places, needles) == [], "token ids have days of their own"
    assert lake(home).scan("attempt").collect()["tenant"].unique().to_list() == [
        pseudonym(key_of(home), "tenant", "other")
    ]
    assert weighbridge("verify", month, "--config", home).code == 0
