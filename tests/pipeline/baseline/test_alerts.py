"""News go out once, say nothing they must not, and never stop a night."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.baseline.conftest import lake_of, line, policy

from weighbridge.pipeline.baseline.alerts import alert
from weighbridge.pipeline.baseline.baseline import baseline
from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.pipeline.baseline.webhook import MOST, payload, post
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.simulate.incidents import Incident, IncidentKind
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

SECRET = "s3cr3t-token"
ATTEMPT = "0123456789abcdef" * 2


def finding(number: int = 0, severity: Severity = Severity.WARNING) -> Finding:
    """A finding of a baseline."""
    return Finding(
        code="baseline_exceeded",
        severity=severity,
        period="2026-03",
        subject={"tenant": f"t_{number:016x}", "task": "chat", "model": "m-1", "driver": "retries"},
        rows=10,
        cure="Look.",
        expected=10,
        observed=30,
        difference=20,
        cause="retries",
        amount=Decimal("1.250000"),
        currency="USD",
        evidence=(ATTEMPT,),
        first_day=date(2026, 3, 2),
        last_day=date(2026, 3, 3),
        origin=FindingOrigin.BASELINE,
    )


@dataclass
class Receiver:
    """A server on loopback that answers as it is told."""

    answers: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    kinds: list[str | None] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    drops: threading.Event = field(default_factory=threading.Event)
    address: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The server, for as long as the test runs."""
    held = Receiver()
    held.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            held.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            held.kinds.append(self.headers["Content-Type"])
            held.hold.wait(10)
            while held.drops.is_set():  # a header that has no end
                self.wfile.write(b"x")
                time.sleep(0.02)
            status = held.answers.pop(0) if held.answers else 204
            self.send_response(status)
            if status in {301, 302, 307, 308}:
                self.send_header("Location", f"{held.address}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield held
    finally:
        held.hold.set()
        held.drops.clear()
        server.shutdown()
        thread.join()
        server.server_close()


def settings(receiver: Receiver, **changes: Any) -> AlertPolicy:
    """Alerts that go to the receiver."""
    return replace(AlertPolicy.default(), webhook=f"{receiver.address}/hook/{SECRET}", **changes)


def test_new_findings_are_posted_as_json(receiver: Receiver) -> None:
    delivery = post([finding(1), finding(2)], settings(receiver))
    assert (delivery.delivered, delivery.findings, delivery.attempts) == (True, 2, 1)
    assert receiver.kinds == ["application/json; charset=utf-8"]
    told = json.loads(receiver.bodies[0])
    assert (told["source"], told["kind"], told["left_out"]) == ("weighbridge", "baseline_findings", 0)
    assert told["findings"][0] == {
        "finding_id": finding(1).finding_id,
        "code": "baseline_exceeded",
        "cause": "retries",
        "severity": "warning",
        "period": "2026-03",
        "first_day": "2026-03-02",
        "last_day": "2026-03-03",
        "subject": {"tenant": "t_0000000000000001", "task": "chat", "model": "m-1", "driver": "retries"},
        "expected": 10,
        "observed": 30,
        "unit": "tokens",
        "amount": "1.25",
        "currency": "USD",
        "cure": "Look.",
    }


def test_ids_of_attempts_stay_here(receiver: Receiver) -> None:
    post([finding()], settings(receiver))
    assert ATTEMPT.encode() not in receiver.bodies[0]


def test_of_very_many_some_are_counted_only() -> None:
    told = payload([finding(number) for number in range(MOST + 7)])
    assert len(told["findings"]) == MOST  # type: ignore[arg-type]
    assert told["left_out"] == 7


def test_less_than_the_least_severity_is_not_posted(receiver: Receiver) -> None:
    quiet = post([finding(1, Severity.NOTICE)], settings(receiver))
    assert (quiet.delivered, quiet.outcome, receiver.bodies) == (None, "nothing to post", [])
    loud = post([finding(1, Severity.NOTICE)], settings(receiver, severity=Severity.INFO))
    assert loud.delivered


def test_without_an_address_nothing_is_posted() -> None:
    assert post([finding()], AlertPolicy.default()).delivered is None


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_what_may_pass_is_tried_again_after_a_while(receiver: Receiver, status: int) -> None:
    receiver.answers = [status, status]
    waits: list[float] = []
    delivery = post([finding()], settings(receiver), sleep=waits.append)
    assert (delivery.delivered, delivery.attempts, waits) == (True, 3, [1.0, 2.0])
    assert len(set(receiver.bodies)) == 1


def test_it_is_tried_no_more_often_than_set(receiver: Receiver) -> None:
    receiver.answers = [500] * 9
    waits: list[float] = []
    delivery = post([finding()], settings(receiver, attempts=2), sleep=waits.append)
    assert (delivery.delivered, delivery.attempts, delivery.outcome, len(waits)) == (False, 2, "status 500", 1)


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_what_stays_wrong_is_tried_once(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    delivery = post([finding()], settings(receiver), sleep=lambda _: None)
    assert (delivery.delivered, delivery.attempts, delivery.outcome) == (False, 1, f"status {status}")


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_post_is_not_sent_on_to_where_the_receiver_says(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    delivery = post([finding()], settings(receiver), sleep=lambda _: None)
    assert (delivery.delivered, len(receiver.bodies)) == (False, 1)


def test_a_receiver_that_hangs_costs_no_more_than_its_time(receiver: Receiver) -> None:
    receiver.hold.clear()
    delivery = post([finding()], settings(receiver, timeout_s=1, attempts=1))
    assert (delivery.delivered, delivery.outcome) == (False, "TimeoutError")


def test_a_receiver_that_answers_drop_by_drop_costs_no_more_than_its_time(receiver: Receiver) -> None:
    receiver.drops.set()
    delivery = post([finding()], settings(receiver, timeout_s=1, attempts=1))
    assert (delivery.delivered, delivery.outcome) == (False, "TimeoutError")


@pytest.mark.parametrize(
    "address",
    ["http://[::1/hook", "http://a b/hook", "http://h:port/", "http://.a/", "https://", "http://\u2603..\u2603/"],
)
def test_an_address_that_is_none_is_told_and_stops_no_night(address: str) -> None:
    wrong = replace(AlertPolicy.default(), webhook=address, timeout_s=1, attempts=1)
    delivery = post([finding()], wrong, sleep=lambda _: None)
    assert delivery.delivered is False
    assert delivery.outcome.isidentifier()


def test_nobody_at_the_address_is_told_without_the_address(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """The address may hold a secret: it is in no outcome, no log and no repr."""
    nobody = replace(settings(receiver), webhook=f"http://127.0.0.1:1/{SECRET}")
    with caplog.at_level(logging.DEBUG):
        delivery = post([finding()], nobody, sleep=lambda _: None)
    assert (delivery.delivered, delivery.outcome) == (False, "ConnectionRefusedError")
    assert "did not take 1 findings after 3 attempts" in caplog.text
    assert SECRET not in caplog.text + repr(delivery) + repr(nobody)


# --- Prometheus -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a judged day on which answers are three times as long."""
    grown = Incident(kind=IncidentKind.OUTPUT_GROWTH, line=0, first=30, days=1, size=3.0)
    lines = [line(number, requests=150.0) for number in range(3)]
    lake, days = lake_of(tmp_path_factory.mktemp("judged"), lines, [grown], days=31)
    baseline(lake, days=days[30:], policy=policy())
    return lake


METRIC = re.compile(
    r'weighbridge_[a-z_]+(\{([a-z_]+="[A-Za-z0-9_]*")(,[a-z_]+="[A-Za-z0-9_]*")*\})? -?[0-9]+(\.[0-9]+)?'
)


def test_the_file_follows_the_conventions_of_prometheus(judged: Lake, tmp_path: Path) -> None:
    """Help and type before each, gauges without `_total`, base units, one value a line, an end of line at the end."""
    path = tmp_path / "weighbridge.prom"
    done = alert(judged, [], replace(AlertPolicy.default(), textfile=path))
    text = path.read_text(encoding="utf-8")
    assert done.textfile == date(2026, 2, 4)
    names: set[str] = set()
    for row in text.removesuffix("\n").split("\n"):
        if row.startswith("#"):
            kind, name = row.split(" ")[1:3]
            assert kind == "HELP" or row.endswith(" gauge")
            names.add(name)
        else:
            assert METRIC.fullmatch(row), row
            assert row.partition(" ")[0].partition("{")[0] in names
    assert not any(name.endswith("_total") for name in names)
    assert "weighbridge_baseline_day_timestamp_seconds 1770163200" in text
    assert 'weighbridge_baseline_reported_cells{driver="output_per_request"} 1' in text
    assert 'weighbridge_baseline_excess_cost{driver="output_per_request",currency="USD"} ' in text
    assert 'weighbridge_baseline_cells{measure="requests"} 3' in text
    assert not re.search(r"t_[0-9a-f]{16}|model-|chat", text)


def test_the_file_is_replaced_in_one_step_and_readable(judged: Lake, tmp_path: Path) -> None:
    path = tmp_path / "weighbridge.prom"
    path.write_text("old", encoding="utf-8")
    with path.open(encoding="utf-8") as reader:
        alert(judged, [], replace(AlertPolicy.default(), textfile=path))
        assert reader.read() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["weighbridge.prom"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_written_is_told_and_no_error(
    judged: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = tmp_path / "nowhere" / "weighbridge.prom"
    done = alert(judged, [], replace(AlertPolicy.default(), textfile=missing))
    assert done.textfile is None
    assert "make its folder" in caplog.text


def test_nothing_judged_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "weighbridge.prom"
    lake = Lake.create(tmp_path / "lake")
    assert alert(lake, [], replace(AlertPolicy.default(), textfile=path)).textfile is None
    assert not path.exists()
