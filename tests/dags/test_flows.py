"""Flows against a server: held up, failing for a while or for good, on a full disk; and without a server at all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dags.conftest import MONTH, SLOW_S, Deployed, Told, environment, until, weighbridge

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home

DAYS = ("2026-01-05", "2026-01-06")


def names_and_values(result: Any) -> Iterator[tuple[str, Any]]:
    """Every name of a result, and every value, each with which of the two it is."""
    if isinstance(result, dict):
        yield from (("name", name) for name in result)
    if isinstance(result, (dict, list)):
        for item in result.values() if isinstance(result, dict) else result:
            yield from names_and_values(item)
    else:
        yield "value", result


def is_harmless(home: Home, kind: str, leaf: Any) -> bool:
    """Whether it is a name in our own words, a count, a day, a month, or the path of a page of the installation."""
    if kind == "name":
        return bool(re.fullmatch(r"[a-z_]{3,20}", leaf))
    if isinstance(leaf, str):
        day = re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", leaf)
        return bool(day) or (Path(leaf).suffix == ".html" and home.root in Path(leaf).parents)
    return type(leaf) is int


# --- failing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "state", "tries", "said"),
    [
        ("busy", "COMPLETED", [3, 1], ""),
        ("always-busy", "FAILED", [4], "another process is writing; run it again"),
        ("no-room", "COMPLETED", [2, 1], ""),
        ("unreadable", "FAILED", [1], "the lake cannot be read; restore it"),
        ("forbidden", "FAILED", [1], "Permission denied: /there/lake; check the owner and mode of that path"),
        ("broken", "FAILED", [1], "CrashError: ValueError at "),
    ],
)
def test_a_task_is_tried_again_only_where_its_error_says_that_this_may_help(
    deployed: Deployed, told: Told, step: str, state: str, tries: list[int], said: str
) -> None:
    """And one that fails each time, or for good, ends its run: nothing after it is begun."""
    ended = told.said["failing"][step]
    assert ended["state"] == state
    assert said in ended["said"]
    tasks = deployed.server.tasks(ended["run"])
    assert sorted(tasks) == [f"{step}-{day}" for day, _ in zip(DAYS, tries, strict=False)]
    assert [tasks[name]["run_count"] for name in sorted(tasks)] == tries
    assert {task["state_type"] for task in tasks.values()} == {state}


def test_what_broke_a_task_is_told_by_type_and_place_and_never_in_its_words(deployed: Deployed, told: Told) -> None:
    """Neither to the server, nor in files of its own, nor in a log."""
    folder = deployed.server.folder

    def seen(word: bytes) -> bool:
        return any(word in path.read_bytes() for path in folder.rglob("*") if path.is_file())

    until(lambda: seen(b"ValueError at"), "logs, which are sent in batches, have arrived")
    time.sleep(1)
    assert not seen(b"CANARY")


def test_a_night_that_meets_a_full_disk_goes_on_when_there_is_room(deployed: Deployed, told: Told, plain: Home) -> None:
    ended = told.said["night"]
    assert ended["state"] == "COMPLETED"
    tries = {name: task["run_count"] for name, task in deployed.server.tasks(ended["run"]).items()}
    assert (tries["changes"], tries["take-in"]) == (2, 1), "the first that writes found no room"
    timed = {"change": ""}
    assert {**told.night.lake().digests(), **timed} == {**plain.lake().digests(), **timed}, "but for its times"
    for path in plain.reports.rglob("*.html"):
        assert (told.night.reports / path.relative_to(plain.reports)).read_bytes() == path.read_bytes()


# --- what is left behind ----------------------------------------------------------------------------------------


def test_a_night_has_a_task_per_day_or_month_of_each_step(deployed: Deployed, told: Told) -> None:
    tasks = deployed.server.tasks(told.said["night"]["run"])
    assert {task["state_type"] for task in tasks.values()} == {"COMPLETED"}
    assert {name for name in tasks if name.startswith("price")} == {f"price-2026-01-{day:02d}" for day in (5, 6, 7)}
    assert {"take-in", "baseline-2026-01-05-to-2026-01-07", "reconcile-2026-01", "report-2026-01", "pack"} <= set(tasks)
    assert "share-2026-01-05" in tasks, "the only day that is large enough to be released"


def test_a_night_shows_how_far_it_is_what_each_step_did_and_the_files_it_made(deployed: Deployed, told: Told) -> None:
    run = told.said["night"]["run"]
    found = deployed.server.ask("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run]}}})
    by_key = {artifact["key"]: artifact for artifact in found}
    assert {key: artifact["type"] for key, artifact in by_key.items()} == {
        "weighbridge-nightly-progress": "progress",
        "weighbridge-nightly": "table",
        "weighbridge-nightly-files": "markdown",
    }
    assert by_key["weighbridge-nightly-progress"]["data"] == 100.0
    table = json.loads(by_key["weighbridge-nightly"]["data"])
    priced = {row["count"]: (row["units"], row["value"]) for row in table if row["step"] == "price"}
    amounts = told.night.lake().scan("priced_amount").collect()
    assert priced["priced"] == (3, amounts["amount"].drop_nulls().len())
    pages = [path for path in told.night.reports.rglob("*.html") if path.name.startswith("weighbridge")]
    assert len(pages) == 2, "both editions"
    assert all(f"`{page}`" in by_key["weighbridge-nightly-files"]["data"] for page in pages)


def test_results_are_counts_days_months_and_paths_and_none_of_them_is_kept(deployed: Deployed, told: Told) -> None:
    """Although the process was set to keep all results."""
    commands = told.said["commands"]
    results = [
        (told.night, told.said["night"]["result"]),
        (told.done, json.loads(commands["backfill"]["out"])),
        (told.done, json.loads(commands["closed"]["out"]) | {"files": []}),
        (told.done, told.said["forgotten"]["result"]),
    ]
    for home, result in results:
        assert sorted(result) == ["counts", "files", "units"]
        assert result["counts"]
        assert [leaf for leaf in names_and_values(result) if not is_harmless(home, *leaf)] == []
    assert set(told.said["night"]["result"]["files"]) >= {str(path) for path in told.night.reports.glob("weigh*.html")}
    for other in ("t_00000000000000aa", "a" * 32, "gpt-4o", "/etc/passwd", 0.5, None, True):
        assert not is_harmless(told.night, "value", other), "what would be something else is seen"
    kept = [json.loads(path.read_bytes()) for path in deployed.server.folder.rglob("storage/*")]
    assert kept, "what runs that failed were stopped by, in our own words"
    assert {tuple(sorted(each)) for each in kept} == {("__exc_type__", "message")}
    assert all(each["__exc_type__"].startswith("weighbridge.") for each in kept)


# --- the command line and the other flows -----------------------------------------------------------------------


def test_a_backfill_does_its_days_and_their_months_anew(told: Told) -> None:
    ran = told.said["commands"]["backfill"]
    assert ran["code"] in {0, 1}, ran["err"]
    units = json.loads(ran["out"])["units"]
    assert units["read"] == units["price"] == ["2026-01-06", "2026-01-07"]
    assert units["reconcile"] == ["2026-01"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("reversed", "--until 2026-01-06 is before --since 2026-01-07"),
        ("to come", "the first day 2199-01-01 is still to come"),
    ],
)
def test_a_backfill_of_days_that_cannot_be_is_refused_before_anything_is_started(
    told: Told, given: str, said: str
) -> None:
    ran = told.said["commands"][given]
    assert (ran["code"], ran["out"]) == (2, "")
    assert said in ran["err"]
    assert "Traceback" not in ran["err"]


def test_a_month_is_closed_once_and_one_that_is_not_over_is_refused(told: Told) -> None:
    commands = told.said["commands"]
    assert commands["too early"]["code"] == 3
    assert "2199-01 was not closed: too_early: " in commands["too early"]["err"]
    first, again = (json.loads(commands[name]["out"]) for name in ("closed", "closed again"))
    assert first["counts"]["close"] == {"rows": first["counts"]["close"]["rows"], "new": 1}
    assert first["files"][-1] == str(told.done.settings.closes / MONTH)
    assert again["counts"]["close"]["new"] == 0
    assert again["units"] == {"close": [MONTH]}, "what is closed is left as it is"


def test_retention_deletes_what_is_past_its_time_with_receipts(told: Told) -> None:
    lake, counts = told.done.lake(), told.said["forgotten"]["result"]["counts"]["retention"]
    assert counts["rows"] > 60
    assert lake.rows("attempt") == 0
    assert lake.rows("receipt") == counts["receipts"] > 0


def test_a_run_that_failed_is_told_and_an_alert_that_fails_sets_nothing_off(deployed: Deployed, told: Told) -> None:
    """The alert failed first: whatever that had set off would have been told by then."""
    failed, alert = told.said["refused"], told.said["alert"]
    assert (failed["state"], alert["state"]) == ("FAILED", "FAILED")
    assert "there is no settings file" in alert["said"]
    until(lambda: failed["run"] in deployed.failures(), "it was told")
    assert deployed.failures()[failed["run"]] == ("monthly-close", "Failed")
    assert alert["run"] not in deployed.failures()
    assert deployed.server.deployment("alert")["tags"] == ["weighbridge-alert"]


# --- silence ----------------------------------------------------------------------------------------------------


def test_nothing_of_prefects_calls_anybody_and_analytics_are_off_whatever_the_environment_says(
    deployed: Deployed, told: Told
) -> None:
    """The server, the worker, its runs and a client: the one call they note is made to see that they note any."""
    assert told.said["silent"] == [False, False]
    called = (deployed.server.folder / "called").read_text().splitlines()
    assert called == ["socket.getaddrinfo 192.0.2.1"]


def test_without_a_server_a_temporary_one_keeps_its_files_inside_the_installation(tmp_path: Path) -> None:
    home, user = new_home(tmp_path / "home", 1), tmp_path / "user"
    env = {name: value for name, value in environment(user).items() if not name.startswith(("PREFECT", "DO_NOT"))}
    user.mkdir()
    done = weighbridge(env, "run", "nightly", "--config", home.root, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["counts"]["take_in"] == dict.fromkeys(result["counts"]["take_in"], 0)
    assert (home.state / "prefect" / "prefect.db").is_file()
    assert (home.state / "prefect").stat().st_mode & 0o077 == 0
    assert not list(user.rglob("*.db"))
    assert not (user / "called").exists(), "nobody was called"


def test_a_signal_to_stop_lets_the_interpreter_end_in_order_which_stops_a_temporary_server(tmp_path: Path) -> None:
    code = """
import atexit, os, signal, sys
from pathlib import Path
from weighbridge.cli.commands.run import _settle
from weighbridge.pipeline.run.home import open_home
atexit.register(print, "ended in order")
_settle(open_home(Path(sys.argv[1]), env={}))
os.kill(os.getpid(), signal.SIGTERM)
"""
    home = new_home(tmp_path / "home", 1)
    env = {name: value for name, value in environment(tmp_path).items() if not name.startswith("PREFECT")}
    command = [sys.executable, "-c", code, str(home.root)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=SLOW_S)
    assert (done.returncode, done.stdout) == (143, "ended in order\n"), done.stderr


def test_a_run_that_cannot_begin_says_why(tmp_path: Path) -> None:
    done = weighbridge(environment(tmp_path), "run", "nightly", "--config", tmp_path)
    assert (done.returncode, "there is no settings file" in done.stderr) == (2, True)
