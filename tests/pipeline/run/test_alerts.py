"""News that are sent on: once, again where nobody took them, and never with more than names and figures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.baseline.baseline import BaselineResult
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.failed import run_failed
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.steps import BASELINE, baseline
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

NOW = datetime(2026, 3, 4, 2, 5, tzinfo=UTC)


@dataclass
class Receiver:
    """An address on loopback: what was posted to it, and how it answers."""

    status: int = 204
    posted: list[dict[str, Any]] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    heard = Receiver()

    class Keep(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(heard.status)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    listening = HTTPServer(("127.0.0.1", 0), Keep)
    heard.address = f"http://127.0.0.1:{listening.server_port}/hook"
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield heard
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def home(tmp_path: Path, receiver: Receiver) -> Home:
    """An installation that is told where news go."""
    made = new_home(tmp_path / "home", 1)
    alerts = {**made.settings.alerts, "webhook": receiver.address, "attempts": 1, "textfile": tmp_path / "wb.prom"}
    return replace(made, settings=replace(made.settings, alerts=alerts))


def found(amount: str) -> Finding:
    return Finding(
        code="baseline_exceeded", severity=Severity.WARNING, period="2026-03", subject={"model": "m"}, rows=1,
        cure="Look at it.", amount=Decimal(amount), currency="USD", origin=FindingOrigin.BASELINE,
    )  # fmt: skip


def judged(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """The days that are judged have these findings."""
    result = BaselineResult((date(2026, 3, 3),), 1, 1, 1, 1, 0, 0, findings, ())
    monkeypatch.setattr(baseline, "judge", lambda _home, _days: result)


def test_a_finding_is_sent_once_and_again_when_it_is_another(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, found("5"))
    for sent in (1, 0):
        assert BASELINE.work(home, ["2026-03-03"], date(2026, 3, 4)).counts["sent"] == sent
    judged(monkeypatch, found("6"))
    assert BASELINE.work(home, ["2026-03-03"], date(2026, 3, 4)).counts["sent"] == 1
    assert [post["findings"][0]["amount"] for post in receiver.posted] == ["5", "6"]


def test_what_nobody_took_is_sent_by_the_next_night(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, found("5"))
    receiver.status = 503
    assert BASELINE.work(home, ["2026-03-03"], date(2026, 3, 4)).counts["sent"] == 0
    receiver.status = 200
    assert BASELINE.work(home, ["2026-03-03"], date(2026, 3, 4)).counts["sent"] == 1
    assert len(receiver.posted) == 2


def test_a_receiver_that_is_named_later_gets_what_was_found_before(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does one that asks for more than before, of what was too slight for it then."""
    slight = replace(found("2"), severity=Severity.NOTICE, subject={"model": "other"})
    judged(monkeypatch, found("5"), slight)

    def told(**alerts: object) -> int:
        given = replace(home, settings=replace(home.settings, alerts={**home.settings.alerts, **alerts}))
        return BASELINE.work(given, ["2026-03-03"], date(2026, 3, 4)).counts["sent"]

    assert [told(webhook=None), told(), told(), told(severity=Severity.NOTICE), told()] == [0, 1, 0, 1, 0]
    assert [post["findings"][0]["amount"] for post in receiver.posted] == ["5", "2"]


def test_a_run_that_failed_is_told_with_its_flow_its_id_and_its_state(home: Home, receiver: Receiver) -> None:
    run = "01a22a50-4ecb-7fc1-a0c4-83f440ec1235"
    assert run_failed(home, flow="nightly", run=run, state="Crashed", now=NOW).delivered
    (post,) = receiver.posted
    assert (post["source"], post["kind"]) == ("weighbridge", "run_failed")
    (finding,) = post["findings"]
    assert finding["subject"] == {"flow": "nightly", "run": run, "state": "Crashed"}
    assert finding["severity"] == "error"
    assert home.lake().version("finding") is None, "the lake may be what failed"


def test_the_file_for_prometheus_says_when_each_flow_failed_last(home: Home, tmp_path: Path) -> None:
    for flow, hour in (("nightly", 2), ("retention", 5), ("nightly", 3)):
        run_failed(home, flow=flow, run="r", state="Failed", now=NOW.replace(hour=hour))
    lines = (tmp_path / "wb_runs.prom").read_text().splitlines()
    metric = "weighbridge_run_failed_timestamp_seconds"
    assert lines[2:] == [
        f'{metric}{{flow="nightly"}} {int(NOW.replace(hour=3).timestamp())}',
        f'{metric}{{flow="retention"}} {int(NOW.replace(hour=5).timestamp())}',
    ]
    (tmp_path / "wb_runs.prom").write_bytes(b"\xff")
    run_failed(home, flow="nightly", run="r", state="Failed", now=NOW)
    assert len((tmp_path / "wb_runs.prom").read_text().splitlines()) == 3
    assert not list(tmp_path.glob(".wb*"))


def test_words_that_are_no_names_are_told_to_nobody(home: Home, receiver: Receiver, tmp_path: Path) -> None:
    run_failed(home, flow='x"} 1\ny', run="what he said", state="", now=NOW)
    assert receiver.posted[0]["findings"][0]["subject"] == dict.fromkeys(("flow", "run", "state"), "unnamed")
    assert 'flow="unnamed"' in (tmp_path / "wb_runs.prom").read_text()


def test_a_receiver_or_folder_that_is_not_there_stops_nothing(home: Home, tmp_path: Path) -> None:
    alerts = {**home.settings.alerts, "webhook": "http://127.0.0.1:9/hook", "textfile": tmp_path / "no" / "wb.prom"}
    lost = replace(home, settings=replace(home.settings, alerts=alerts))
    assert run_failed(lost, flow="nightly", run="r", state="Failed", now=NOW).delivered is False
