"""When the schedules of `prefect.yaml` fire in the zones of their users, and how thin the flows are."""

from __future__ import annotations

import ast
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from tests.conftest import ROOT
from tests.dags.conftest import CRONS, ZONES, Told

from weighbridge.dags import run as module
from weighbridge.dags import work
from weighbridge.dags.quiet import hush, settle
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.failure import GateRefusedError
from weighbridge.pipeline.run.month import last_month_over

DAGS = ROOT / "dags" / "weighbridge" / "dags"


@pytest.fixture(scope="module")
def fired(told: Told) -> dict[tuple[str, str], list[datetime]]:
    """(cron, zone) -> every time of 2026 at which Prefect starts a run."""
    asked = [(cron, zone) for cron in CRONS for zone in ZONES]
    times = [[datetime.fromisoformat(text) for text in of_one] for of_one in told.said["fired"]]
    return dict(zip(asked, times, strict=True))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS[:2])
def test_every_local_day_has_one_night(fired: dict[tuple[str, str], list[datetime]], cron: str, zone: str) -> None:
    """Also those on which 02:05 is not there or comes twice: 8 and 29 March, 25 October and 1 November."""
    days = Counter(each.astimezone(ZoneInfo(zone)).date() for each in fired[cron, zone])
    assert set(days.values()) == {1}
    first = date(2026, 1, 2)
    assert {first + timedelta(days=number) for number in range(363)} <= set(days)


@pytest.mark.parametrize("grace", [3, 10, 28])
@pytest.mark.parametrize("zone", ZONES)
def test_every_month_is_due_on_a_day_its_close_is_tried_and_within_two_days(
    fired: dict[tuple[str, str], list[datetime]], zone: str, grace: int
) -> None:
    """Months are UTC months: what is due follows from the UTC day of the run, days of grace included."""
    first: dict[str, date] = {}
    for each in fired["5 6 * * *", zone]:
        day = each.astimezone(ZoneInfo("UTC")).date()
        first.setdefault(last_month_over(day - timedelta(days=grace)), day)
    for month in (f"2026-{number:02d}" for number in range(1, 11)):
        late = first[month] - ends(month)[1] - timedelta(days=grace)
        assert timedelta() < late <= timedelta(days=2), month


def test_a_month_that_a_gate_holds_back_keeps_no_other_from_being_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(_config: Path, month: str, _by: str) -> dict[str, Any]:
        if month == "2026-01":
            raise GateRefusedError("2026-01 was not closed: open_findings: look at them")
        return {"counts": {"rows": 3, "new": 1}, "files": [month]}

    monkeypatch.setattr(module, "months_due", lambda _home, _now: ("2026-01", "2026-02"))
    monkeypatch.setattr(module, "steps_of", lambda _home, _month: ())
    monkeypatch.setattr(work, "close", close)
    run = module.Run("monthly-close", new_home(tmp_path / "home", 1), date(2026, 3, 4), uuid4())
    with pytest.raises(GateRefusedError, match="2026-01 was not closed: open_findings"):
        run.month(None, "test")
    assert run.told()["units"] == {"close": ["2026-02"]}
    assert run.told()["files"] == ["2026-02"]
    run.month("2026-02", "test")
    assert run.told()["units"] == {"close": ["2026-02", "2026-02"]}


def flows() -> list[tuple[str, ast.FunctionDef]]:
    """Every function that is a flow."""
    found = []
    for path in sorted(DAGS.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", [])]
            if isinstance(node, ast.FunctionDef) and any(mark.startswith("flow(") for mark in marks):
                found.append((path.name, node))
    return found


def test_there_are_five_flows_and_each_is_a_dozen_lines() -> None:
    assert sorted(node.name for _, node in flows()) == ["alert", "backfill", "monthly_close", "nightly", "retention"]
    for _, node in flows():
        said = ast.get_docstring(node, clean=False)
        body = node.body[1:] if said else node.body
        assert body[-1].end_lineno is not None
        assert body[-1].end_lineno - body[0].lineno < 12, node.name
        assert all(argument.annotation is not None for argument in node.args.args), node.name


def test_flows_know_the_pipeline_through_run_alone() -> None:
    """What a flow does, a plain night does too: there is nothing of it here."""
    known = (
        "weighbridge.dags",
        "weighbridge.pipeline.run",
        "weighbridge.pipeline.settings",
        "weighbridge.schemas.errors",
    )
    for path in DAGS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("weighbridge"):
                assert str(node.module).startswith(known), f"{path.name}: {node.module}"


def test_what_is_set_about_analytics_is_overruled_and_the_rest_is_left() -> None:
    env = {"DO_NOT_TRACK": "0", "PREFECT_SERVER_ANALYTICS_ENABLED": "true", "PREFECT_RESULTS_DEFAULT_SERIALIZER": "x"}
    hush(env)
    assert env["DO_NOT_TRACK"] == "1"
    assert env["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert env["PREFECT_RESULTS_DEFAULT_SERIALIZER"] == "x"
    assert env["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] == "120"


@pytest.mark.parametrize("chosen", ["PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE", "profiles", None])
def test_a_prefect_that_was_set_up_is_used_as_it_is(tmp_path: Path, chosen: str | None) -> None:
    env: dict[str, Any] = {} if chosen in {None, "profiles"} else {str(chosen): "x"}
    profiles = tmp_path / "profiles.toml"
    if chosen == "profiles":
        profiles.write_text("")
    settle(tmp_path / "state", env, profiles)
    own = str(tmp_path / "state" / "prefect")
    assert (env.get("PREFECT_HOME") == own) is (chosen is None)
    assert (tmp_path / "state").exists() is (chosen is None)
