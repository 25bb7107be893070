"""What `prefect.yaml` puts on a server, and what happens when a worker runs it."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dags.conftest import MONTH, Deployed, until

from weighbridge.pipeline.close.verify import verify_month
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import FILE
from weighbridge.pipeline.run.turn import turn
from weighbridge.schemas.identity import AttemptKey

SCHEDULES = {"nightly": ["5 2 * * *"], "monthly-close": ["5 6 * * *"], "retention": ["5 5 * * *"], "backfill": []}


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


def test_a_night_and_a_close_that_are_killed_come_to_what_plain_ones_come_to(
    deployed: Deployed, plain: Home, closed: Home
) -> None:
    """Each kill makes its run a crashed one, and is told. A run started meanwhile waits, and the next finishes all."""
    server, home, draw = deployed.server, deployed.home, random.Random(11)
    first = server.start("nightly")
    killed_at_work(deployed, first, after=draw.randint(1, 3))
    with turn(home, wait_s=10):
        second = server.start("nightly")
        server.reaches(second, "RUNNING")
        closing = server.start("monthly-close", month=MONTH)
        time.sleep(3)  # the worker looks every second
        assert server.tasks(second) == {}, "it waits for its turn"
        assert server.state(closing) == "SCHEDULED", "one run at a time works on the lake"
    ends_well(deployed, second)
    assert {**home.lake().digests(), "change": ""} == {**plain.lake().digests(), "change": ""}, "but for its times"
    assert pages(home) == pages(plain)

    killed_at_work(deployed, closing, after=draw.randint(1, 5))
    ends_well(deployed, server.start("monthly-close", month=MONTH))
    timed = {"close": "", "change": ""}
    assert {**home.lake().digests(), **timed} == {**closed.lake().digests(), **timed}, "but for their times"
    assert verify_month(home.lake(), home.settings.closes, MONTH).sound

    until(lambda: {first, closing} <= set(deployed.failures()), "both were told")
    told = deployed.failures()
    assert (told[first], told[closing]) == (("nightly", "Crashed"), ("monthly-close", "Crashed"))
    assert second not in told
    _no_trace_of_the_rows(deployed, second)


def killed_at_work(deployed: Deployed, run: str, after: int) -> None:
    """Kill the process of a run when it has noted so many times that something is done."""
    deployed.server.reaches(run, "RUNNING")
    process, notes = process_of(run), deployed.home.state / FILE
    seen, end = {noted(notes)}, time.monotonic() + 120
    while len(seen) <= after:
        assert time.monotonic() < end, f"{after} notes: not after two minutes"
        seen.add(noted(notes))
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    assert deployed.server.reaches(run, "CRASHED", "COMPLETED", "FAILED") == "CRASHED"


def noted(path: Path) -> int:
    """When the notes were written last; they are replaced each time."""
    return path.stat().st_mtime_ns if path.exists() else 0


def process_of(run: str) -> int:
    """The process that works on a run."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PREFECT__FLOW_RUN_ID={run}".encode() in path.read_bytes().split(b"\0"):
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError(f"no process works on {run}")


def ends_well(deployed: Deployed, run: str) -> None:
    """Wait until a run has completed."""
    ended = deployed.server.reaches(run, "COMPLETED", "FAILED", "CRASHED")
    assert ended == "COMPLETED", (deployed.server.folder / "worker.log").read_text()


def pages(home: Home) -> dict[Path, bytes]:
    """Every page of the reports."""
    return {path.relative_to(home.reports): path.read_bytes() for path in home.reports.rglob("*.html")}


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
