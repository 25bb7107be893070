"""When the schedules of `prefect.yaml` fire in the zones of their users, and how thin the flows are."""

from __future__ import annotations

import ast
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.conftest import ROOT
from tests.dags.conftest import CRONS, ZONES, Told

from weighbridge.dags.quiet import hush, settle
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


@pytest.mark.parametrize("zone", ZONES)
def test_every_month_is_due_on_one_of_the_days_its_close_is_tried(
    fired: dict[tuple[str, str], list[datetime]], zone: str
) -> None:
    """Months are UTC months: what is due follows from the UTC day of the run, three days of grace included."""
    due = {
        last_month_over(each.astimezone(ZoneInfo("UTC")).date() - timedelta(days=3))
        for each in fired["5 6 4-8 * *", zone]
    }
    assert due >= {f"2026-{month:02d}" for month in range(1, 12)}
    assert due <= {"2025-11", "2025-12", *(f"2026-{month:02d}" for month in range(1, 12))}


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
