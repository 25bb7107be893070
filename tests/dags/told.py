"""Runs flows one after another against a server, in one process, and prints what each came to as JSON.

`told.py FOLDER`: below it are `night`, an installation whose night is still to come, and `done`, one after its night.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import weighbridge.dags  # noqa: F401 - before Prefect, as in a process of a user

# isort: split
from prefect import flow, tags
from prefect._internal.analytics.enabled import is_telemetry_enabled
from prefect.client.schemas.objects import State
from prefect.server.schemas.schedules import CronSchedule
from prefect.settings import get_current_settings

from weighbridge.cli.main import execute
from weighbridge.dags import work as tasks
from weighbridge.dags.alert import alert
from weighbridge.dags.monthly_close import monthly_close
from weighbridge.dags.nightly import nightly
from weighbridge.dags.retention import retention
from weighbridge.dags.safety import may_help
from weighbridge.pipeline.run import backfill as anew
from weighbridge.pipeline.run import month
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Work
from weighbridge.pipeline.run.steps import ADJUST, PRICE, READ, RECONCILE, STEPS
from weighbridge.schemas.errors import LakeBusyError, LakeError

MONTH, FIRST, LAST = "2026-01", date(2026, 1, 6), date(2026, 1, 7)
Told = dict[str, Any]
AT_ONCE = [0.0] * len(tasks.DELAYS_S)
UNLIMITED = resource.getrlimit(resource.RLIMIT_FSIZE)


def state_of(state: State[Any]) -> Told:
    """How a run ended, and which it was."""
    result = state.result(raise_on_failure=False) if state.is_completed() else None
    return {
        "state": state.type.value,
        "said": state.message or "",
        "run": str(state.state_details.flow_run_id),
        "result": result,
    }


# --- a step that fails ------------------------------------------------------------------------------------------


def raising(error: Callable[[], Exception], times: float) -> Callable[[Home, Sequence[str], date], Work]:
    """The work of a step that does not succeed the first times it is tried."""
    calls = 0

    def work(home: Home, units: Sequence[str], today: date) -> Work:
        nonlocal calls
        calls += 1
        if calls <= times:
            raise error()
        return PRICE.work(home, units, today)

    return work


def quoting() -> LakeError:
    """An error of ours that was raised from one whose text quotes data."""
    error = LakeError("the lake cannot be read; restore it")
    error.__cause__ = error.__context__ = ValueError("CANARY 4711 in what led to an exception of ours")
    return error


FAILING = {
    "busy": (lambda: LakeBusyError("another process is writing; run it again"), 2),
    "always-busy": (lambda: LakeBusyError("another process is writing; run it again"), float("inf")),
    "unreadable": (quoting, float("inf")),
    "no-room": (lambda: OSError(28, "No space left on device", "/there/lake"), 1),
    "forbidden": (lambda: PermissionError(13, "Permission denied", "/there/lake"), float("inf")),
    "broken": (lambda: ValueError("CANARY 4711 in the text of an exception"), float("inf")),
}


def failing(done: Path) -> Told:
    """Name -> how a flow of two days ended."""
    work = tasks.work.with_options(retry_delay_seconds=AT_ONCE)

    @flow(name="trying", persist_result=False)
    def trying(step: str) -> list[Any]:
        return [work(done, step, day, {day: "mark"}, LAST) for day in ("2026-01-05", "2026-01-06")]

    told = {}
    for name, (error, times) in FAILING.items():
        STEPS[name] = dataclasses.replace(PRICE, name=name, work=raising(error, times))
        told[name] = state_of(trying(name, return_state=True)) | {"result": None}
    return told


def on_a_full_disk(night: Path) -> Told:
    """A night during which somebody makes room only after its first task has failed."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def room_is_made(task: Any, run: Any, state: State[Any]) -> bool:
        resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
        return may_help(task, run, state)

    options: dict[str, Any] = {"retry_delay_seconds": AT_ONCE, "retry_condition_fn": room_is_made}
    tasks.note_changes = tasks.note_changes.with_options(**options)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, UNLIMITED[1]))
    try:
        return state_of(nightly(config=night, return_state=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)


# --- the command line -------------------------------------------------------------------------------------------


def command(*arguments: object) -> Told:
    """`weighbridge run ...`: its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            execute(["run", *map(str, arguments)])
        except SystemExit as ended:
            code = ended.code or 0
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def commands(done: Path) -> Told:
    """A range of days anew, a close that is refused, one that is not, and the same once more.

    Without validation and pages, which take most of the time and are those of a night.
    """
    for module in (month, anew):
        setattr(module, "ANEW", (READ, PRICE, RECONCILE, ADJUST))  # noqa: B010 - the name is the modules' own
    at = ("--config", done)
    return {
        "backfill": command("backfill", "--since", FIRST, "--until", LAST, "--json", *at),
        "reversed": command("backfill", "--since", LAST, "--until", FIRST, *at),
        "to come": command("backfill", "--since", "2199-01-01", "--until", "2199-01-02", *at),
        "too early": command("monthly", "--month", "2199-01", *at),
        "closed": command("monthly", "--month", MONTH, "--by", "test", "--json", *at),
        "closed again": command("monthly", "--month", MONTH, "--by", "test", "--json", *at),
    }


# --- schedules --------------------------------------------------------------------------------------------------


async def fired(cron: str, zone: str, start: str, end: str) -> list[str]:
    """Every time at which a schedule starts a run."""
    schedule = CronSchedule(cron=cron, timezone=zone)
    ends = {"start": datetime.fromisoformat(start), "end": datetime.fromisoformat(end)}
    return [each.isoformat() for each in await schedule.get_dates(n=1000, **ends)]


async def all_fired(asked: Sequence[Sequence[str]]) -> list[list[str]]:
    """The same for several."""
    return [await fired(*each) for each in asked]


def main() -> None:
    """See the module."""
    folder, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    night, done = folder / "night", folder / "done"
    told: Told = {"silent": [get_current_settings().server.analytics_enabled, is_telemetry_enabled()]}
    socket.getaddrinfo("192.0.2.1", 9, flags=socket.AI_NUMERICHOST)  # is noted, or the watch is asleep
    told["fired"] = asyncio.run(all_fired(asked))
    told["failing"] = failing(done)
    told["night"] = on_a_full_disk(night)
    told["commands"] = commands(done)
    with tags("weighbridge-alert"):
        told["alert"] = state_of(alert("x", "y", "z", config=folder / "nowhere", return_state=True))
    with tags("weighbridge"):
        told["refused"] = state_of(monthly_close(config=done, month="2199-01", return_state=True))
    told["forgotten"] = state_of(
        retention(config=done, today=date(2040, 1, 1), by="test", accept_clock=True, return_state=True)
    )
    sys.stdout.write("\n" + json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
