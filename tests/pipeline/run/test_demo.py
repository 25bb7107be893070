"""The demonstration finds exactly the faults that were put in, and says so when it does not."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.run import night as module
from weighbridge.pipeline.run.demo import DemoResult, demo, found_faults, new_home
from weighbridge.pipeline.run.night import Intake, is_simulated, months_of, night
from weighbridge.pipeline.run.steps import PRICE, RECONCILE
from weighbridge.pipeline.simulate.expected import ExpectedFinding
from weighbridge.pipeline.simulate.simulate import simulate
from weighbridge.schemas.errors import ConfigError

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.system]

ATTEMPTS, DAYS, FIRST_DAY = 2_000, 16, date(2026, 1, 24)
MADE: dict[str, Any] = {"attempts": ATTEMPTS, "days": DAYS, "start": FIRST_DAY, "seed": 3}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    return demo(tmp_path_factory.mktemp("demo") / "here", **MADE)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_fault_is_found_to_the_token_and_nothing_else_is(shown: DemoResult) -> None:
    assert shown.as_expected
    assert (shown.missing, shown.unexpected) == ([], [])
    assert {"usage_missing", "duplicate_report", "cache_convention", "capture_gap"} <= {e.code for e in shown.expected}
    assert shown.findings.height == len(shown.expected)


def test_no_gap_is_left_unexplained(shown: DemoResult) -> None:
    rows = shown.home.lake().scan("reconciled").collect()
    assert set(rows["status"].unique()) == {"MATCHED", "EXPLAINED", "NOT_COMPARED"}
    assert rows["residual"].fill_null(0).sum() == 0
    assert rows.height == 2 * ATTEMPTS


def test_each_month_has_its_report_and_it_says_that_the_data_is_simulated(shown: DemoResult) -> None:
    assert list(shown.reports) == ["2026-01", "2026-02"]
    for files in shown.reports.values():
        assert "simulated" in files.html.read_text(encoding="utf-8").lower()
        assert files.xlsx.is_file()
    assert is_simulated(shown.home.lake())


def test_another_folder_gives_the_same_bytes_of_every_report_and_the_same_digests(
    shown: DemoResult, tmp_path: Path
) -> None:
    other = demo(tmp_path / "elsewhere", **MADE)
    assert files_of(other.home.reports) == files_of(shown.home.reports) != {}
    assert other.home.lake().digests() == shown.home.lake().digests()


def test_run_again_it_finds_everything_done(shown: DemoResult) -> None:
    before = files_of(shown.home.reports)
    versions = {table: shown.home.lake().version(table) for table in shown.home.lake().digests()}
    again = demo(shown.home.root, **MADE)
    assert again.as_expected
    assert files_of(again.home.reports) == before
    assert {table: again.home.lake().version(table) for table in versions} == versions


def test_an_interrupted_simulation_is_made_anew(tmp_path: Path) -> None:
    first = demo(tmp_path / "demo", attempts=100, days=3, seed=5)
    reports = files_of(first.home.reports)
    (first.home.spool / "expected.json").unlink()
    assert demo(tmp_path / "demo", attempts=100, days=3, seed=5).as_expected
    assert files_of(first.home.reports) == reports


def test_a_folder_in_use_is_refused(shown: DemoResult, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match="not empty"):
        demo(tmp_path)
    with pytest.raises(ConfigError, match="other arguments"):
        demo(shown.home.root, **MADE | {"attempts": ATTEMPTS + 1})


def test_settings_of_the_user_do_not_lead_it_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_LAKE", str(tmp_path / "production"))
    demo(tmp_path / "demo", attempts=50, days=1)
    assert not (tmp_path / "production").exists()


def test_a_finding_that_is_off_by_one_token_is_not_the_expected_one() -> None:
    row = {"code": "usage_missing", "provider": "openai", "model": "m", "period": "2026-01", "rows": 2}
    findings = pl.DataFrame([row | {"difference": -10}, row | {"difference": -5}])
    assert found_faults(findings) == [ExpectedFinding("usage_missing", "openai", "m", "2026-01", 4, -15)]


# --- a night ----------------------------------------------------------------------------------------------------


def test_nights_come_to_the_findings_of_all_they_have_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NIGHT", (PRICE, RECONCILE))
    home = new_home(tmp_path / "home", 1)
    made = simulate(home.spool, attempts=400, days=8, seed=1, key=home.key, start=date(2026, 1, 27))
    intake = Intake(day=date(2026, 1, 27))
    half = len(made.segments) // 2

    first = night(home, made.segments[:half], intake)
    assert first.months == ("2026-01",)
    assert [file.skipped for file in first.ingested.files] == [False] * half

    rest = night(home, made.segments, intake)
    assert rest.months == ("2026-01", "2026-02")
    assert [file.skipped for file in rest.ingested.files] == [True] * half + [False] * (len(made.segments) - half)
    assert set(found_faults(home.lake().scan("finding").collect())) == set(made.expected)


def test_months_are_those_of_the_days() -> None:
    assert months_of([date(2026, 2, 1), date(2026, 1, 31), date(2026, 1, 1)]) == ("2026-01", "2026-02")
    assert months_of([]) == ()
