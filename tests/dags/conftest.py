"""A Prefect server on loopback, its deployments and a worker: started once, used by every test of this folder.

Prefect is never imported into the test process: what it sets up at import would stay for all other tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home, open_home
from weighbridge.pipeline.run.month import monthly
from weighbridge.pipeline.run.night import Intake, night
from weighbridge.pipeline.simulate.simulate import simulate

# One process serves all tests of a folder, so they go to one worker of the test run (`--dist loadgroup`).
PREFECT = pytest.mark.xdist_group("prefect")
FIRST_DAY = date(2026, 1, 5)
MONTH = "2026-01"
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Shanghai")
CRONS = ("5 2 * * *", "30 2 * * *", "5 6 * * *")
YEAR = ("2026-01-01T00:00:00+00:00", "2026-12-31T23:59:59+00:00")
SLOW_S = 600
_HERE = Path(__file__).parent
_RUNNING: list[subprocess.Popen[bytes]] = []
_SILENT = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
# What a server does on the side and no test looks at.
_IDLE = ("SCHEDULER", "LATE_RUNS", "PAUSE_EXPIRATIONS", "CANCELLATION_CLEANUP", "FOREMAN")
# Prefect takes these for a reason to be silent; here it has to be so without them.
_CI = ("CI", "GITHUB_", "GITLAB_", "BUILD_", "JENKINS_", "TRAVIS", "BUILDKITE")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything of this folder goes to one process, and starts servers."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(PREFECT, append=False)  # before the group of its module, if it has one
            item.add_marker(pytest.mark.system)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """With the last test of this folder its servers end: idle ones would take part of a core from all tests to come."""
    if nextitem is None or _HERE not in nextitem.path.parents:
        for process in list(_RUNNING):
            ended(process)


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a process that knows no Prefect but the one that is named.

    What it looks up or connects to beside loopback is noted in the file `called` of that folder.
    """
    other = ("PREFECT_", "WEIGHBRIDGE_", *_CI)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(other)}
    found = (str(_HERE / "watched"), str(ROOT), os.environ.get("PYTHONPATH", ""))
    watched = {"PYTHONPATH": os.pathsep.join(filter(None, found)), "WATCHED": str(home / "called")}
    return kept | watched | {"HOME": str(home), "PREFECT_HOME": str(home / "prefect"), **_SILENT} | more


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        url: of its API.
        env: the environment of its clients.
        folder: where it and they keep their files.
    """

    url: str
    env: Mapping[str, str]
    folder: Path

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Its answer to a request, with a body a POST. A server whose database is busy is asked again."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        for _ in range(20):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                error.close()
                if error.code != 503:
                    raise
                time.sleep(0.5)
        raise AssertionError(f"{path}: the server is busy all the time")

    def runs(self, flow: str) -> list[dict[str, Any]]:
        """The runs of a flow, the newest first."""
        body = {"flows": {"name": {"any_": [flow]}}, "sort": "EXPECTED_START_TIME_DESC"}
        found: list[dict[str, Any]] = self.ask("/flow_runs/filter", body)
        return [run for run in found if run["state_type"] != "SCHEDULED" or run["auto_scheduled"] is False]

    def tasks(self, run: str) -> dict[str, dict[str, Any]]:
        """Name -> task run, of one flow run."""
        body = {"flow_runs": {"id": {"any_": [run]}}}
        return {task["name"]: task for task in self.ask("/task_runs/filter", body)}

    def deployment(self, flow: str) -> dict[str, Any]:
        """What was deployed of a flow."""
        found: dict[str, Any] = self.ask(f"/deployments/name/{flow}/weighbridge")
        return found

    def start(self, flow: str, **parameters: object) -> str:
        """Have a worker run a deployment; the id of the run."""
        path = f"/deployments/{self.deployment(flow)['id']}/create_flow_run"
        return str(self.ask(path, {"parameters": parameters})["id"])

    def state(self, run: str) -> str:
        """The type of the state of a run."""
        return str(self.ask(f"/flow_runs/{run}")["state_type"])

    def reaches(self, run: str, *states: str) -> str:
        """Wait until a run is in one of these states, and say in which."""
        until(lambda: self.state(run) in states, f"the run is {' or '.join(states)}")
        return self.state(run)


def weighbridge(env: Mapping[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `weighbridge` in a process of its own."""
    command = [sys.executable, "-m", "weighbridge.cli", *map(str, arguments)]
    return subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False, timeout=SLOW_S)


def prefect(env: Mapping[str, str], *arguments: str, cwd: Path | None = None) -> str:
    """Run `prefect` and return what it says."""
    command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
    done = subprocess.run(command, env=dict(env), cwd=cwd, capture_output=True, text=True, check=False, timeout=SLOW_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def until(holds: Callable[[], bool], what: str, seconds: float = SLOW_S) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not after {seconds} seconds"
        time.sleep(0.4)


def started(arguments: list[str], env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A process of Prefect in a group of its own, what it says in a file."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            env=dict(env),
            cwd=log.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _RUNNING.append(process)
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started, and no others; one that was ended before is left alone."""
    if process not in _RUNNING:
        return
    _RUNNING.remove(process)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
    process.wait(10)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a free port of loopback, with nothing on it; stopped at the end."""
    folder = tmp_path_factory.mktemp("prefect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    env = environment(
        folder,
        PREFECT_API_URL=url,
        PREFECT_SERVER_EPHEMERAL_ENABLED="false",
        PREFECT_SERVER_UI_ENABLED="false",
        PREFECT_WORKER_QUERY_SECONDS="1",
        PREFECT_LOGGING_LEVEL="WARNING",
        **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _IDLE},
    )
    process = started(["server", "start", "--host", "127.0.0.1", "--port", str(port)], env, folder / "server.log")
    try:
        found = Server(url, env, folder)
        until(lambda: process.poll() is not None or healthy(found), "the server is up")
        assert process.poll() is None, (folder / "server.log").read_text()
        yield found
    finally:
        ended(process)


def healthy(server: Server) -> bool:
    """Whether it answers."""
    try:
        return server.ask("/health") is True
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with 60 simulated attempts of three days in its spool; only to be copied."""
    home = new_home(tmp_path_factory.mktemp("scheduled") / "home", 3)
    simulate(home.spool, attempts=60, seed=3, days=3, start=FIRST_DAY, key=home.key)
    return home.root


@pytest.fixture(scope="session")
def plain(waiting: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The installation after a night without Prefect; only to be read."""
    home = copied(waiting, tmp_path_factory.mktemp("plain") / "home")
    night(home, [home.spool], Intake(day=FIRST_DAY))
    return home


@pytest.fixture(scope="session")
def closed(plain: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The same after the close of its month; only to be read."""
    home = copied(plain.root, tmp_path_factory.mktemp("closed") / "home")
    monthly(home, MONTH, by="schedule", now=datetime.now(UTC))
    return home


def copied(root: Path, to: Path) -> Home:
    """The installation in another place."""
    shutil.copytree(root, to)
    return open_home(to, env={})


@dataclass(frozen=True)
class Deployed:
    """A server with the deployments of `prefect.yaml` and a worker.

    Attributes:
        server: the server.
        home: the installation the deployments are about.
        posted: what its alerts have posted.
    """

    server: Server
    home: Home
    posted: list[dict[str, Any]] = field(default_factory=list)

    def failures(self) -> dict[str, tuple[str, str]]:
        """Run -> flow and state, of every failure that was told."""
        told = [post["findings"][0]["subject"] for post in self.posted if post["kind"] == "run_failed"]
        return {each["run"]: (each["flow"], each["state"]) for each in told}


@contextmanager
def receiver(posted: list[dict[str, Any]]) -> Iterator[str]:
    """An address on loopback that keeps what is posted to it."""

    class Keep(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Keep) as heard:
        thread = threading.Thread(target=heard.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{heard.server_port}/hook"
        heard.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def deployed(server: Server, waiting: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The deployments of the checkout, put on the server as `prefect.yaml` says, and a worker that runs them."""
    made = Deployed(server, copied(waiting, tmp_path_factory.mktemp("deployed") / "home"))
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "prefect.yaml", folder)
    with receiver(made.posted) as address:
        with (made.home.root / "weighbridge.toml").open("a", encoding="utf-8") as settings:
            settings.write(f'\n[alerts]\nwebhook = "{address}"\n')
        start = ["worker", "start", "--pool", "weighbridge", "--type", "process"]
        worker = started(start, server.env, server.folder / "worker.log")
        try:
            until(lambda: server.ask("/work_pools/filter", {}) != [], "the worker has made its pool")
            prefect({**server.env, "WEIGHBRIDGE_CONFIG": str(made.home.root)}, "deploy", "--all", cwd=folder)
            prefect(server.env, "work-queue", "set-concurrency-limit", "lake", "1", "--pool", "weighbridge")
            yield made
        finally:
            ended(worker)


@dataclass(frozen=True)
class Told:
    """What flows came to that were run one after another in one process (`told.py`).

    Attributes:
        night: an installation whose night met a full disk.
        done: an installation that had its night before.
        said: name -> what was seen.
    """

    night: Home
    done: Home
    said: dict[str, Any]


@pytest.fixture(scope="session")
def told(deployed: Deployed, waiting: Path, plain: Home, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The outcome of every flow of `told.py`. Its process asks to be tracked, which must not help."""
    folder, server = tmp_path_factory.mktemp("told"), deployed.server
    night_home, done = copied(waiting, folder / "night"), copied(plain.root, folder / "done")
    asked = [[cron, zone, *YEAR] for cron in CRONS for zone in ZONES]
    tracked = {"PREFECT_SERVER_ANALYTICS_ENABLED": "true", "DO_NOT_TRACK": "0"}
    ran = subprocess.run(
        [sys.executable, str(_HERE / "told.py"), str(folder), json.dumps(asked)],
        env={**server.env, **tracked, "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SLOW_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (server.folder / "said.log").write_text(ran.stdout + ran.stderr)
    return Told(night_home, done, json.loads(ran.stdout.splitlines()[-1]))
