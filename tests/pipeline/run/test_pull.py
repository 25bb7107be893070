"""Rows of LiteLLM's own table, pulled from a real PostgreSQL that these tests start and stop.

The table is constructed after the schema of litellm 1.110.2, its rows are those that this release's own writer made
(see the tests of the importer) and some made by hand. No running proxy was at hand.
"""

from __future__ import annotations

import json
import logging
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.cli.main import execute
from weighbridge.pipeline.ingest.importers.litellm import COLUMNS
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.ingest.litellm_table import DatabaseError, Window, _session, pull
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home, open_home
from weighbridge.pipeline.run.night import Intake
from weighbridge.pipeline.run.pull import days_of, pull_in
from weighbridge.pipeline.run.rooms import take_in
from weighbridge.pipeline.run.sources import fetch
from weighbridge.schemas.errors import ConfigError, ContractError, WeighbridgeError

pytestmark = pytest.mark.xdist_group("postgres")
RECORDED = Path(__file__).parents[1] / "ingest" / "litellm_spend_logs.jsonl"
PASSWORD = "s3cret-canary"
INTAKE = Intake(day=date(2026, 3, 2))
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 3, 6, 5, 30, tzinfo=UTC)
# The table of release 1.110.2, and what an older release has of it.
NEWER = """model_id text, api_base text, "user" text, cache_key text, request_tags jsonb, organization_id text,
    end_user text, requester_ip_address text, messages jsonb, response jsonb, proxy_server_request jsonb,
    session_id text, status text, litellm_call_id text, request_duration_ms integer, agent_id text,
    mcp_namespaced_tool_name text, billing_agent_id text,
    created_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp(3) NOT NULL"""
TABLE = """CREATE TABLE "LiteLLM_SpendLogs" (
    request_id text PRIMARY KEY, call_type text NOT NULL, api_key text NOT NULL DEFAULT '',
    spend double precision NOT NULL DEFAULT 0, total_tokens integer NOT NULL DEFAULT 0,
    prompt_tokens integer NOT NULL DEFAULT 0, completion_tokens integer NOT NULL DEFAULT 0,
    "startTime" timestamp(3) NOT NULL, "endTime" timestamp(3) NOT NULL, "completionStartTime" timestamp(3),
    model text NOT NULL DEFAULT '', model_group text, custom_llm_provider text, metadata jsonb, cache_hit text,
    team_id text{further})"""


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL."""

    port: int

    def as_user(self, name: str, database: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://{name}:{password}@127.0.0.1:{self.port}/{database}"

    def run(self, database: str, *statements: str) -> None:
        """Run statements as the owner of everything."""
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - skipped with the server

        with dbapi.connect(self.as_user("owner", database), autocommit=True) as connection, connection.cursor() as on:
            for statement in statements:
                on.execute(statement)


def _binaries() -> Path:
    """The folder with PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    if not found[-1].is_file():
        told = "PostgreSQL is not installed here (apt-get install postgresql)"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    return found[-1].parent


def _as_somebody(folder: Path) -> list[str]:
    """How a program is started that refuses to run as root; the folder becomes that user's."""
    if os.geteuid() != 0:
        return []
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server on loopback, with its data in a folder that goes with it."""
    programs = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="weighbridge-pg-"))
    secret = folder / "password"
    secret.write_text(PASSWORD)
    somebody = _as_somebody(folder)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    data = ["-D", str(folder / "data")]
    made = [*data, "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "-N"]
    subprocess.run([*somebody, str(programs / "initdb"), *made], check=True, **quiet)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-F", "-c", "timezone=America/New_York"]
    process = subprocess.Popen([*somebody, str(programs / "postgres"), *data, *settings], **quiet)
    try:
        _wait(Server(port), process)
        yield Server(port)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        shutil.rmtree(folder)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "the server ended"
        try:
            server.run("postgres", "SELECT 1")
        except Exception:  # noqa: BLE001 - whatever the driver says while the server starts
            time.sleep(0.1)
        else:
            server.run("postgres", f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
            return
    pytest.fail("the server did not start in 30 seconds")


@pytest.fixture
def database(server: Server) -> str:
    """A database with the empty table, of which the reader may see the columns that are looked at and no other."""
    seen = [*(f'"{column}"' for column in COLUMNS), "updated_at"]
    server.run(
        "postgres",
        'DROP TABLE IF EXISTS "LiteLLM_SpendLogs"',
        TABLE.format(further=f", {NEWER}"),
        f'GRANT SELECT ({", ".join(seen)}) ON "LiteLLM_SpendLogs" TO reader',
    )
    return "postgres"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path / "home", 7)


def spend(number: int, at: datetime, **changes: object) -> dict[str, object]:
    """A row of the table: 10 + number tokens in, 5 out."""
    return {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "api_key": "a canary",
        "spend": 0.00001,
        "prompt_tokens": 10 + number,
        "completion_tokens": 5,
        "total_tokens": 15 + number,
        "startTime": at.isoformat(),
        "endTime": (at + timedelta(seconds=1)).isoformat(),
        "model": "model-a",
        "custom_llm_provider": "openai",
        "team_id": "the canary team",
        "messages": {"content": "a canary sings"},
        "metadata": {"usage_object": {"prompt_tokens": 10 + number, "completion_tokens": 5}, "note": "a canary"},
        "status": "success",
        "litellm_call_id": f"call-{number}",
        "updated_at": at.isoformat(),
    } | changes


def insert(server: Server, database: str, *rows: dict[str, object]) -> None:
    """Write rows, as the proxy does; a row with a known request id replaces it."""
    for row in rows:
        shown = {"updated_at": "2026-03-02T10:00:09", **row}
        names = ", ".join(f'"{name}"' for name in shown)
        text = json.dumps(shown).replace("'", "''")
        known = ", ".join(f'"{name}" = excluded."{name}"' for name in shown)
        server.run(
            database,
            f'INSERT INTO "LiteLLM_SpendLogs" ({names}) SELECT {names} '
            f"""FROM jsonb_populate_record(null::"LiteLLM_SpendLogs", '{text}'::jsonb) """
            f"ON CONFLICT (request_id) DO UPDATE SET {known}",
        )


def recorded() -> list[dict[str, object]]:
    return [json.loads(line) for line in RECORDED.read_text().splitlines()]


def counts(home: Home) -> list[tuple[int, int]]:
    frame = home.lake().scan("reading", columns=["input_total", "output_total"]).collect()
    return sorted(frame.rows())


def env(server: Server, database: str) -> dict[str, str]:
    return {"LITELLM_DATABASE_URL": server.as_user("reader", database)}


def test_rows_become_calls_with_nothing_but_what_the_reader_may_see(server: Server, database: str, home: Home) -> None:
    insert(server, database, *recorded(), spend(1, MARCH + timedelta(hours=23, minutes=59, seconds=59)))
    done = pull_in(home, INTAKE, since=MARCH, now=NOW, env=env(server, database))
    assert [(file.name, file.rows_in, file.rows_out) for file in done.result.files] == [
        ("litellm.20260301T000000Z.20260302T000000Z.jsonl", 1, 1),
        ("litellm.20260302T000000Z.20260303T000000Z.jsonl", 4, 4),
        ("litellm.20260303T000000Z.20260303T060500Z.jsonl", 0, 0),
    ]
    assert done.result.days == (date(2026, 3, 1), date(2026, 3, 2))
    assert counts(home) == [(10, 5), (11, 5), (2403, 50), (2600, 100)]
    attempts = home.lake().scan("attempt").sort("arrived_at", "attempt_number").collect()
    # The server is in New York; the table's times are in UTC all the same.
    assert attempts["arrived_at"][0] == datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
    assert attempts["status"].to_list().count("failed") == 1
    # What was pulled is gone, and no text or name has stayed anywhere.
    assert not list(home.state.glob("pull-*"))
    written = [path for path in home.root.rglob("*") if path.is_file()]
    assert not [path for path in written if b"canary" in path.read_bytes() or b"alice" in path.read_bytes()]


def test_the_command_line_prices_what_it_pulled_and_shows_no_secret(
    server: Server, database: str, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    insert(server, database, *recorded())
    monkeypatch.setenv("LITELLM_DATABASE_URL", server.as_user("reader", database))
    asked = ["ingest", "--from", "litellm", "--since", "2026-03-02", "--until", "2026-03-02", "--json"]
    log = logging.getLogger("weighbridge")
    monkeypatch.setattr(log, "handlers", list(log.handlers))
    monkeypatch.setattr(log, "level", log.level)
    with pytest.raises(SystemExit) as ended:
        execute([*asked, "--config", str(home.root), "--log-level", "debug"])
    shown = capsys.readouterr()
    assert ended.value.code == 0
    told = json.loads(shown.out)
    assert (told["priced"], [file["rows_out"] for file in told["files"]]) == (3, [4])
    assert PASSWORD not in shown.out + shown.err


def test_the_same_rows_in_an_export_are_known(server: Server, database: str, home: Home) -> None:
    insert(server, database, *recorded())
    pull_in(home, INTAKE, since=MARCH, now=NOW, env=env(server, database))
    (file,) = ingest([RECORDED], home.lake(), key=home.key, day=INTAKE.day).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (4, 0, 4)


def test_a_later_pull_takes_what_is_new_late_or_changed(server: Server, database: str, home: Home) -> None:
    insert(server, database, spend(1, MARCH), spend(2, MARCH + timedelta(days=1)), spend(3, MARCH - timedelta(days=9)))
    first = NOW - timedelta(days=1)
    pull_in(home, INTAKE, since=MARCH, now=first, env=env(server, database))
    assert counts(home) == [(11, 5), (12, 5)]
    changed = spend(1, MARCH, completion_tokens=6, total_tokens=17, metadata={}, updated_at=first.isoformat())
    insert(
        server,
        database,
        changed,
        spend(4, NOW - timedelta(hours=1)),
        spend(5, first - timedelta(hours=2)),
    )
    done = pull_in(home, INTAKE, now=NOW, env=env(server, database))
    assert done.window == Window(first.replace(second=0) - timedelta(days=1), NOW.replace(second=0))
    assert counts(home) == [(11, 6), (12, 5), (14, 5), (15, 5)]
    before = home.lake().digests()
    again = pull_in(home, INTAKE, now=NOW, env=env(server, database))
    assert sum(file.rows_out for file in again.result.files) == 0
    after = home.lake().digests()
    assert {name for name in after if after[name] != before.get(name)} <= {"segment"}


def test_an_older_release_without_the_newer_columns_is_read(server: Server, database: str, home: Home) -> None:
    server.run(
        database,
        'DROP TABLE "LiteLLM_SpendLogs"',
        TABLE.format(further=""),
        'GRANT SELECT ON "LiteLLM_SpendLogs" TO reader',
    )
    server.run(
        database,
        """INSERT INTO "LiteLLM_SpendLogs" (request_id, call_type, spend, total_tokens, prompt_tokens,
        completion_tokens, "startTime", "endTime", model, custom_llm_provider, metadata) VALUES ('chatcmpl-1',
        'completion', 0.5, 15, 10, 5, '2026-03-02 10:00:00.5', '2026-03-02 10:00:01', 'model-a', 'openai',
        to_jsonb('{"additional_usage_values": {"cache_read_input_tokens": 4}}'::text))""",
    )
    pull_in(home, INTAKE, since=MARCH, now=NOW, env=env(server, database))
    reading = home.lake().scan("reading").collect()
    assert reading.select("input_uncached", "cache_read", "output_total").rows() == [(6, 4, 5)]
    pull_in(home, INTAKE, now=NOW, env=env(server, database))
    assert home.lake().rows("usage_report") == 1


def test_a_pull_that_is_cut_off_is_made_whole_by_the_next(
    server: Server, database: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(server, database, *(spend(day, MARCH + timedelta(days=day)) for day in range(3)))
    calls = iter(range(9))

    def second_fails(*arguments: Any, **more: Any) -> Any:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return take_in(*arguments, **more)

    monkeypatch.setattr("weighbridge.pipeline.run.pull.take_in", second_fails)
    with pytest.raises(KeyboardInterrupt):
        pull_in(home, INTAKE, since=MARCH, now=NOW, env=env(server, database))
    assert len(counts(home)) == 1
    assert not list(home.state.glob("pull-*"))
    pull_in(home, INTAKE, now=NOW, env=env(server, database))
    assert counts(home) == [(10, 5), (11, 5), (12, 5)]


def test_the_session_may_not_write_whoever_the_user_is(server: Server, database: str) -> None:
    with pytest.raises(DatabaseError, match="25006"), _session(server.as_user("owner", database)) as cursor:
        cursor.execute("CREATE TABLE one (two integer)")


def refused(attempt: Callable[[], object]) -> str:
    """What an attempt is refused with; nothing of it holds the password."""
    with pytest.raises(WeighbridgeError) as caught:
        attempt()
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    return str(caught.value)


def test_what_is_wrong_is_told_without_the_connection_string(
    server: Server, database: str, home: Home, tmp_path: Path
) -> None:
    window = Window(MARCH, NOW)
    strings = [
        server.as_user("reader", database, password=f"{PASSWORD}x"),
        f"postgresql://reader:{PASSWORD}@127.0.0.1:1/x",
        f"{PASSWORD}://",
        "a canary",
    ]
    for number, text in enumerate(strings):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert "could not be read" in refused(partial(pull, text, window, folder, home.key))
    server.run(database, 'DROP TABLE "LiteLLM_SpendLogs"')
    (tmp_path / "none").mkdir()
    with pytest.raises(ContractError, match="is not there"):
        pull(server.as_user("reader", database), window, tmp_path / "none", home.key)


def test_where_the_database_is_and_from_when_must_be_said(server: Server, database: str, home: Home) -> None:
    with pytest.raises(ConfigError, match="LITELLM_DATABASE_URL"):
        pull_in(home, INTAKE, since=MARCH, now=NOW, env={})
    with pytest.raises(ConfigError, match="--since"):
        pull_in(home, INTAKE, now=NOW, env=env(server, database))
    with pytest.raises(ConfigError, match="no span of time"):
        pull_in(home, INTAKE, since=NOW, now=NOW, env=env(server, database))


def test_a_span_is_cut_at_midnights_and_its_name_tells_it() -> None:
    window = Window(MARCH + timedelta(hours=5), MARCH + timedelta(days=2))
    days = list(days_of(window))
    assert [(day.since, day.until) for day in days] == [
        (MARCH + timedelta(hours=5), MARCH + timedelta(days=1)),
        (MARCH + timedelta(days=1), MARCH + timedelta(days=2)),
    ]
    assert [Window.of(day.name) for day in days] == days
    labelled = Window(MARCH, NOW, "gateway")
    assert Window.of(labelled.name).label == "gateway"  # type: ignore[union-attr]
    assert Window.of("litellm.jsonl") is None
    assert Window.of("litellm.20260302T000000Z.20260301T000000Z.jsonl") is None


def test_the_order_in_the_file_is_that_of_time_and_ids(server: Server, database: str, home: Home) -> None:
    insert(server, database, spend(2, MARCH), spend(1, MARCH), spend(3, MARCH - timedelta(seconds=1)))
    with_all = Window(MARCH - timedelta(days=1), NOW)
    path = pull(server.as_user("reader", database), with_all, home.root, home.key)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0]["pulled"]["table"] == "LiteLLM_SpendLogs"
    assert [row["request_id"] for row in rows[1:]] == ["chatcmpl-3", "chatcmpl-1", "chatcmpl-2"]
    assert pl.Series([row["team_id"] for row in rows[1:]]).str.contains("^t_[0-9a-f]{16}$").all()


def with_sources(home: Home, *names: str) -> Home:
    """The installation with LiteLLM databases as sources, each under a variable of its own name."""
    text = "".join(
        f'\n[[sources]]\nname = "{name}"\nkind = "litellm"\nvariable = "{name.upper()}_URL"\nsince = "2026-03-01"\n'
        for name in names
    )
    path = home.root / "weighbridge.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return open_home(home.root)


def test_a_night_fetches_from_databases_each_from_where_its_own_last_pull_ended(
    server: Server, database: str, home: Home
) -> None:
    insert(server, database, spend(1, MARCH), spend(2, MARCH + timedelta(days=1)))
    server.run("postgres", "DROP DATABASE IF EXISTS second", "CREATE DATABASE second")
    server.run("second", TABLE.format(further=f", {NEWER}"), 'GRANT SELECT ON "LiteLLM_SpendLogs" TO reader')
    insert(server, "second", spend(7, MARCH, litellm_call_id="other-7", request_id="chatcmpl-other"))
    home = with_sources(home, "first", "second")
    told = {
        f"{name.upper()}_URL": server.as_user("reader", where)
        for name, where in (("first", database), ("second", "second"))
    }
    early = NOW - timedelta(days=1)
    assert fetch(home, now=early, env={"FIRST_URL": told["FIRST_URL"]}).failed.keys() == {"second"}
    assert counts(home) == [(11, 5), (12, 5)]
    done = fetch(home, now=NOW, env=told)
    assert (done.failed, counts(home)) == ({}, [(11, 5), (12, 5), (17, 5)])
    spans = sorted(file.name for file in done.result.files)
    # The first goes on a day before where it ended and looks back; the second begins with the day it was told.
    assert next(name for name in spans if ".first." in name) == "litellm.first.20260125T060500Z.20260301T060500Z.jsonl"
    assert (
        next(name for name in spans if ".second." in name) == "litellm.second.20260301T000000Z.20260302T000000Z.jsonl"
    )
    before = home.lake().digest("attempt")
    assert fetch(home, now=NOW, env=told).failed == {}
    assert home.lake().digest("attempt") == before


def test_a_database_that_is_down_is_a_finding_without_its_secret(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home = with_sources(home, "first")
    done = fetch(home, now=NOW, env={"FIRST_URL": f"postgresql://reader:{PASSWORD}@127.0.0.1:1/x"})
    assert "could not be read" in done.failed["first"]
    (row,) = home.lake().scan("finding").collect().rows(named=True)
    assert row["subject"] == "source=first; kind=litellm; failure=DatabaseError"
    assert PASSWORD not in str(done) + str(row) + caplog.text
