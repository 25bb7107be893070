"""What `prefect.yaml` puts on a server, and what happens when a worker runs it."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.dags.conftest import Deployed, until

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.turn import turn
from weighbridge.schemas.identity import AttemptKey

SCHEDULES = {"nightly": ["5 2 * * *"], "monthly-close": ["5 6 4-8 * *"], "retention": ["5 5 * * *"], "backfill": []}


@pytest.mark.parametrize("flow", SCHEDULES)
def test_a_flow_is_deployed_with_its_schedule_limits_and_silence(deployed: Deployed, flow: str) -> None:
    made = deployed.server.deployment(flow)
    assert made["entrypoint"].startswith("weighbridge.dags.")
    assert made["parameters"] == {"config": str(deployed.home.root)}
    assert [each["schedule"]["cron"] for each in made["schedules"]] == SCHEDULES[flow]
    assert {each["schedule"]["timezone"] for each in made["schedules"]} <= {"UTC"}
    assert made["tags"] == ["weighbridge"]
    assert (made["work_pool_name"], made["work_queue_name"]) == ("weighbridge", "lake")
    assert made["global_concurrency_limit"]["limit"] == 1
    assert made["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    env = made["job_variables"]["env"]
    assert (env["DO_NOT_TRACK"], env["PREFECT_SERVER_ANALYTICS_ENABLED"]) == ("1", "false")


def test_parameters_are_typed(deployed: Deployed) -> None:
    backfill = deployed.server.deployment("backfill")["parameter_openapi_schema"]
    assert {backfill["properties"][name]["format"] for name in ("first", "last")} == {"date"}
    assert backfill["properties"]["release_again"]["type"] == "boolean"
    assert set(backfill["required"]) == {"first", "last"}
    nightly = deployed.server.deployment("nightly")["parameter_openapi_schema"]
    assert {"format": "path", "type": "string"} in nightly["properties"]["config"]["anyOf"]


def test_nights_that_are_killed_and_one_that_has_to_wait_come_to_what_a_plain_one_comes_to(
    deployed: Deployed, plain: Home, receiver: list[dict[str, Any]]
) -> None:
    """Each kill makes its run a crashed one, and is told; the last night waits for its turn, and finishes the work."""
    server, draw = deployed.server, random.Random(11)
    killed = []
    for _ in range(2):
        run = server.start("nightly")
        killed.append(run)
        server.reaches(run, "RUNNING")
        time.sleep(draw.uniform(0, 5))
        os.kill(process_of(run), signal.SIGKILL)
        server.reaches(run, "CRASHED")
    with turn(deployed.home, wait_s=10):
        run = server.start("nightly")
        server.reaches(run, "RUNNING")
        time.sleep(1)
        assert server.tasks(run) == {}, "it waits for its turn"
    ended = server.reaches(run, "COMPLETED", "FAILED", "CRASHED")
    assert ended == "COMPLETED", (server.folder / "worker.log").read_text()
    assert deployed.home.lake().digests() == plain.lake().digests()
    pages = [home.reports / "weighbridge-2026-01.html" for home in (deployed.home, plain)]
    assert pages[0].read_bytes() == pages[1].read_bytes()

    until(lambda: len(receiver) == len(killed), "both were told")
    told = [post["findings"][0]["subject"] for post in receiver]
    assert sorted((each["flow"], each["run"], each["state"]) for each in told) == sorted(
        ("nightly", run, "Crashed") for run in killed
    )
    _tasks_of(deployed, run)
    _artifacts_of(deployed, run)
    _no_trace_of_the_rows(deployed, run)


def process_of(run: str) -> int:
    """The process that works on a run."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PREFECT__FLOW_RUN_ID={run}".encode() in path.read_bytes().split(b"\0"):
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError(f"no process works on {run}")


def _tasks_of(deployed: Deployed, run: str) -> None:
    """One task per day of the steps that work on days, one per month of those that work on months."""
    kills = [task for other in deployed.server.runs("nightly") for task in deployed.server.tasks(other["id"]).values()]
    done = {task["name"] for task in kills if task["state_type"] == "COMPLETED"}
    assert {f"price-2026-01-{number:02d}" for number in range(5, 9)} <= done
    assert {"take-in", "reconcile-2026-01", "share-2026-01-05", "report-2026-01", "pack"} <= done
    assert {task["state_type"] for task in deployed.server.tasks(run).values()} == {"COMPLETED"}


def _artifacts_of(deployed: Deployed, run: str) -> None:
    artifacts = deployed.server.ask("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run]}}})
    by_key = {artifact["key"]: artifact for artifact in artifacts}
    assert by_key["weighbridge-nightly-progress"]["data"] == 100.0
    table = json.loads(by_key["weighbridge-nightly"]["data"])
    assert {"step": "take_in", "units": 0, "count": "quarantined", "value": 0} in table
    reports = {row["count"]: row["value"] for row in table if row["step"] == "report"}
    if reports:
        assert str(deployed.home.reports) in by_key["weighbridge-nightly-files"]["data"]


def _no_trace_of_the_rows(deployed: Deployed, run: str) -> None:
    """Neither the server nor anything else of Prefect's has an id of an attempt or a pseudonym."""
    held = deployed.home.lake().scan("attempt", columns=["attempt_hi", "attempt_lo", "tenant"]).collect()
    keys = [AttemptKey(hi, lo).to_hex() for hi, lo in held.select("attempt_hi", "attempt_lo").iter_rows()]
    kept = b"".join(content_of(deployed.server.folder))
    assert run.encode() in kept, "the search looks at the right place"
    for word in (*keys, *held["tenant"].unique()):
        assert word.encode() not in kept


def content_of(folder: Path) -> Iterator[bytes]:
    """Every byte the server and its clients have written, the pages of its database included."""
    for path in folder.rglob("*"):
        if path.is_file():
            if path.suffix == ".db":
                with sqlite3.connect(path) as database:
                    database.execute("PRAGMA wal_checkpoint(PASSIVE)")
                database.close()
            yield path.read_bytes()


@pytest.fixture
def receiver(deployed: Deployed) -> Iterator[list[dict[str, Any]]]:
    """An address on loopback that keeps what is posted to it; the installation is told to use it."""
    posted: list[dict[str, Any]] = []

    class Keep(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    heard = HTTPServer(("127.0.0.1", 0), Keep)
    thread = threading.Thread(target=heard.serve_forever)
    thread.start()
    settings = deployed.home.root / "weighbridge.toml"
    before = settings.read_text()
    settings.write_text(f'{before}\n[alerts]\nwebhook = "http://127.0.0.1:{heard.server_port}/hook"\n')
    yield posted
    settings.write_text(before)
    heard.shutdown()
    thread.join()
    heard.server_close()


def test_an_alert_that_fails_sets_nothing_off(
    deployed: Deployed, receiver: list[dict[str, Any]], tmp_path: Path
) -> None:
    server = deployed.server
    before = len(server.runs("alert"))
    failing = server.start("alert", flow_name="x", run="y", event="z", config=str(tmp_path))
    server.reaches(failing, "FAILED")
    time.sleep(6)  # longer than it takes to set one off
    assert len(server.runs("alert")) == before + 1
    assert not any(post["findings"][0]["subject"]["run"] == failing for post in receiver)
