"""Flows against a server: killed, held up, failing for a while or for good, and without a server at all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.dags.conftest import SLOW_S, Server, copied, environment, weighbridge

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home

FAILING = """
import dataclasses, json, sys
from datetime import date
from pathlib import Path
from weighbridge.dags import work as tasks
from weighbridge.pipeline.run.steps import PRICE, STEPS
from weighbridge.schemas.errors import LakeBusyError
from prefect import flow

config, today = Path(sys.argv[1]), date(2026, 1, 12)
work = tasks.work.with_options(retry_delay_seconds=[0, 0, 0])
calls = 0

def busy(*arguments):
    global calls
    calls += 1
    if calls <= 2:
        raise LakeBusyError("another process is writing; run it again")
    return PRICE.work(*arguments)

def broken(*arguments):
    raise ValueError("CANARY 4711 in the text of an exception")

@flow(name="trying")
def trying(step):
    return [work(config, step, day, {day: "mark"}, today) for day in ("2026-01-05", "2026-01-06")]

said = []
for name in ("busy", "broken"):
    STEPS[name] = dataclasses.replace(PRICE, name=name, work=globals()[name])
    state = trying(name, return_state=True)
    said.append([state.type.value, state.message or "", str(state.state_details.flow_run_id)])
print(json.dumps(said))
"""


def script(server: Server, text: str, *arguments: object, **more: str) -> Any:
    """What a program prints that runs flows against the server."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    env = {**server.env, **more}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=SLOW_S)
    assert done.returncode == 0, done.stdout + done.stderr
    (server.folder / "said.log").write_text(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_task_that_fails_twice_succeeds_and_one_that_is_broken_is_not_tried_again(
    server: Server, plain: Home, tmp_path: Path
) -> None:
    """Nor does the text of what broke it reach the server, its files, results that are kept, or the log."""
    home = copied(plain.root, tmp_path / "home")
    busy, broken = script(server, FAILING, home.root, PREFECT_RESULTS_PERSIST_BY_DEFAULT="true")
    assert busy[0] == "COMPLETED"
    assert server.tasks(busy[2])["busy-2026-01-05"]["run_count"] == 3
    assert server.tasks(busy[2])["busy-2026-01-06"]["run_count"] == 1

    assert broken[0] == "FAILED"
    assert "CrashError: ValueError at " in broken[1]
    (failed,) = server.tasks(broken[2]).values()
    assert (failed["name"], failed["state_type"], failed["run_count"]) == ("broken-2026-01-05", "FAILED", 1)
    time.sleep(3)  # logs are sent in batches
    written = [path.read_bytes() for path in server.folder.rglob("*") if path.is_file()]
    assert any(b"ValueError at" in content for content in written)
    assert not any(b"CANARY" in content for content in written)


OTHERS = """
import json, sys
from datetime import date
from pathlib import Path
from weighbridge.dags.backfill import backfill
from weighbridge.dags.monthly_close import monthly_close
from weighbridge.dags.retention import retention

config = Path(sys.argv[1])
told = {"backfill": backfill(date(2026, 1, 6), date(2026, 1, 7), config=config)}
state = monthly_close(config=config, month="2199-01", by="test", return_state=True)
told["refused"] = [state.type.value, state.message or ""]
told["forgotten"] = retention(config=config, today=date(2040, 1, 1), by="test")
print(json.dumps(told))
"""


def test_a_backfill_a_close_that_is_refused_and_retention_run_as_flows(
    server: Server, plain: Home, tmp_path: Path
) -> None:
    home = copied(plain.root, tmp_path / "home")
    told = script(server, OTHERS, home.root)
    assert told["backfill"]["units"]["read"] == ["2026-01-06", "2026-01-07"]
    assert told["backfill"]["units"]["reconcile"] == ["2026-01"]
    assert told["refused"][0] == "FAILED"
    assert "2199-01 was not closed: too_early: " in told["refused"][1]
    assert told["forgotten"]["counts"]["retention"]["rows"] > 200
    assert home.lake().rows("attempt") == 0
    assert home.lake().rows("receipt") == told["forgotten"]["counts"]["retention"]["receipts"]


def test_without_a_server_a_temporary_one_keeps_its_files_inside_the_installation(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", 1)
    env = {name: value for name, value in environment(tmp_path / "user").items() if not name.startswith("PREFECT")}
    (tmp_path / "user").mkdir()
    done = weighbridge(env, "run", "nightly", "--config", home.root, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"]["take_in"] == dict.fromkeys(told["counts"]["take_in"], 0)
    assert (home.state / "prefect" / "prefect.db").is_file()
    assert (home.state / "prefect").stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "user").rglob("*.db"))


def test_a_run_that_cannot_begin_says_why(server: Server, tmp_path: Path) -> None:
    done = server.command("run", "backfill", "--since", "2026-01-02", "--until", "2026-01-01", "--config", tmp_path)
    assert (done.returncode, "there is no settings file" in done.stderr) == (2, True)


def test_analytics_are_off_on_both_sides_whatever_the_environment_says(tmp_path: Path) -> None:
    code = """
import weighbridge.dags.nightly
from prefect._internal.analytics.enabled import is_telemetry_enabled
from prefect.settings import get_current_settings
print(get_current_settings().server.analytics_enabled, is_telemetry_enabled())
"""
    env = environment(tmp_path, PREFECT_SERVER_ANALYTICS_ENABLED="true", DO_NOT_TRACK="0")
    env.pop("CI", None)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "False"], done.stderr
