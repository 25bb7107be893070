"""`weighbridge baseline`: judge, look, compare with the task table."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Terminal, quietly
from tests.pipeline.baseline.conftest import FIRST, lake_of, line
from tests.pipeline.validate.conftest import clean, frame

from weighbridge.cli.commands.baseline import _days
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.simulate.incidents import Incident, IncidentKind

GROWN = Incident(kind=IncidentKind.OUTPUT_GROWTH, line=0, first=30, days=2, size=3.0)
LAST = date(2026, 2, 5)


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """An installation with 32 days of traffic; on the last two, answers of a task are three times as long."""
    return Path(shutil.copytree(made, tmp_path / "home"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, to be copied."""
    folder = tmp_path_factory.mktemp("made") / "home"
    quietly("init", folder)
    lake_of(folder / "lake", [line(number, requests=150.0) for number in range(3)], [GROWN], days=32)
    settings = folder / "weighbridge.toml"
    settings.write_text(settings.read_text() + '\n[baseline]\nfloor = "0.01"\n', encoding="utf-8")
    return folder


def test_a_run_judges_the_last_day_and_says_what_left_its_baseline(weighbridge: Terminal, home: Path) -> None:
    ran = weighbridge("baseline", "run", "--config", home)
    assert ran.code == 1
    assert "baseline_exceeded" in ran.out
    assert "driver=output_per_request" in ran.out
    assert "promise: at most 5 % of days beyond 5 %" in ran.out
    again = weighbridge("baseline", "run", "--config", home)
    assert (again.code, "baseline_exceeded │" in again.out) == (1, False)


def test_a_record_of_a_day_still_to_come_is_not_what_is_judged(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    for number, day in enumerate((LAST, date(2199, 1, 1))):
        lake.append("attempt", frame("attempt", [clean("attempt", number, day)]))
    assert _days(lake, None, None, None) == [LAST]
    assert _days(lake, "2199-01", None, None) == [date(2199, 1, 1)]


def test_a_run_over_a_range_is_told_as_json(weighbridge: Terminal, home: Path) -> None:
    told = weighbridge("baseline", "run", "--since", "2026-02-02", "--json", "--config", home).json
    assert told["days"] == ["2026-02-02", "2026-02-03", "2026-02-04", "2026-02-05"]
    assert (told["findings"], len(told["raised"]), told["post"]) == (1, 1, "nowhere to post to")
    assert told["raised"][0]["first_day"] == "2026-02-04"
    assert told["test_alarms"] <= told["test_days"] * 0.05


def test_a_day_on_which_nothing_left_its_baseline_is_clean(weighbridge: Terminal, home: Path) -> None:
    ran = weighbridge("baseline", "run", "--until", "2026-02-03", "--since", "2026-02-03", "--config", home)
    assert ran.code == 0, ran.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--month", "2027-01"), "no day of that range has attempts; the lake has them from 2026-01-05"),
        (("show",), "no day was judged yet; run `weighbridge baseline run`"),
        (("show", "xyz"), "'xyz' is no id of a cell; give its first 8 or more digits"),
        (("show", "01234567"), "no cell has an id that begins with 01234567"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_next_step(
    weighbridge: Terminal, home: Path, arguments: tuple[str, ...], told: str
) -> None:
    ran = weighbridge("baseline", *arguments, "--config", home)
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_an_empty_lake_is_told_so(weighbridge: Terminal, tmp_path: Path) -> None:
    quietly("init", tmp_path / "empty")
    ran = weighbridge("baseline", "run", "--config", tmp_path / "empty")
    assert (ran.code, "the lake has no attempts yet" in ran.err) == (2, True)


def test_cells_are_listed_reported_ones_first_and_shown_over_their_days(weighbridge: Terminal, home: Path) -> None:
    weighbridge("baseline", "run", "--since", "2026-02-03", "--config", home)
    cells = weighbridge("baseline", "show", "--json", "--config", home).json
    assert [cell["reported"] for cell in cells][:2] == [True, False]
    first = cells[0]
    assert (first["token_class"], first["driver"], first["day"]) == ("output_visible", "output_per_request", str(LAST))
    over = weighbridge("baseline", "show", first["cell"][:8], "--json", "--config", home).json
    assert [row["day"] for row in over] == ["2026-02-03", "2026-02-04", "2026-02-05"]
    assert {row["cell"] for row in over} == {first["cell"]}
    table = weighbridge("baseline", "show", first["cell"][:8], "--day", str(LAST), "--config", home).out
    assert f"task: {first['task']}" in table
    assert f"{first['upper']:,}" in table
    assert "2026-02-04" not in table


def test_the_task_table_is_shown_beside_what_is_measured(weighbridge: Terminal, home: Path) -> None:
    settings = home / "weighbridge.toml"
    table = "[baseline.tasks.chat]\ninput = [1, 2]\noutput = [1, 100000]\ntolerance = 0.5\n"
    settings.write_text(settings.read_text() + table, encoding="utf-8")
    before = weighbridge("baseline", "tasks", "--json", "--config", home)
    assert before.code == 0
    assert {row["task"] for row in before.json} == {
        *("chat", "short_classification", "document_summary", "code_generation", "complex_reasoning"),
    }
    assert all(row["cells"] == 0 and row["least"] is None for row in before.json)
    weighbridge("baseline", "run", "--config", home)
    after = weighbridge("baseline", "tasks", "--json", "--config", home)
    chat = {row["direction"]: row for row in after.json if row["task"] == "chat"}
    assert (after.code, chat["input"]["cells"], chat["input"]["outside"], chat["output"]["outside"]) == (1, 1, 1, 0)
    assert (chat["input"]["lower"], chat["input"]["upper"]) == (1, 3)
    assert "1 to 2, 50 %" in weighbridge("baseline", "tasks", "--config", home).out


def test_findings_ls_knows_the_codes_of_baselines(weighbridge: Terminal, home: Path) -> None:
    for code in ("baseline_exceeded", "task_band_missed", "promise_not_kept", "days_go_together"):
        assert weighbridge("findings", "ls", "--code", code, "--config", home).code == 0
    wrong = weighbridge("findings", "ls", "--code", "baseline_exceded", "--config", home)
    assert (wrong.code, "did you mean baseline_exceeded?" in wrong.err) == (2, True)


def test_news_go_to_the_webhook_once_and_the_state_to_the_file(weighbridge: Terminal, home: Path) -> None:
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        settings = home / "weighbridge.toml"
        address = f"http://127.0.0.1:{server.server_address[1]}/s3cr3t"
        alerts = f'[alerts]\nwebhook = "{address}"\ntextfile = "weighbridge.prom"\n'
        settings.write_text(settings.read_text() + alerts, encoding="utf-8")
        first = weighbridge("baseline", "run", "--config", home, "--log-level", "debug")
        second = weighbridge("baseline", "run", "--json", "--config", home)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [len(body["findings"]) for body in bodies] == [1]
    assert bodies[0]["findings"][0]["cause"] == "output_per_request"
    assert "webhook: 1 finding, delivered" in first.out
    assert (second.json["posted"], second.json["post"]) == (0, "nothing to post")
    assert second.json["textfile"] == str(LAST)
    assert "weighbridge_baseline_reported_cells" in (home / "weighbridge.prom").read_text()
    assert "s3cr3t" not in first.out + first.err + second.out


def test_the_first_day_is_that_of_the_lake() -> None:
    assert (LAST - FIRST).days == 31
