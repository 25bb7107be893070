"""Closing, verifying and comparing months on the command line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import quietly

from weighbridge.pipeline.close.adjust import CODES
from weighbridge.pipeline.lake import Lake

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def closed_once(weighed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with January closed; only to be copied."""
    home = tmp_path_factory.mktemp("closed") / "home"
    shutil.copytree(weighed, home)
    quietly("close", "2026-01", "--by", "finops", "--config", home)
    return home


@pytest.fixture
def home(closed_once: Path, tmp_path: Path) -> Path:
    """An installation with January closed."""
    copy = tmp_path / "home"
    shutil.copytree(closed_once, copy)
    return copy


@pytest.fixture
def open_home(weighed: Path, tmp_path: Path) -> Path:
    """An installation with January open."""
    copy = tmp_path / "open"
    shutil.copytree(weighed, copy)
    return copy


def test_closing_prints_the_root_to_be_kept(weighbridge: Run, open_home: Path) -> None:
    ran = weighbridge("close", "2026-01", "--config", open_home)
    assert ran.code == 0, ran.err
    (root,) = re.findall(r"^root     ([0-9a-f]{64})$", ran.out, re.MULTILINE)
    assert "Keep the root where nobody can change it." in ran.out
    assert (open_home / "closes" / "2026-01" / "manifest.json").is_file()
    again = weighbridge("close", "2026-01", "--config", open_home, "--json")
    assert (again.code, again.json["root"], again.json["new"]) == (0, root, False)
    assert again.json["refused"] == []


def test_a_month_that_is_not_over_is_refused_with_what_to_do(weighbridge: Run, open_home: Path) -> None:
    ran = weighbridge("close", "2199-12", "--config", open_home)
    assert ran.code == 3
    assert "too_early: 2199-12 is not over" in ran.out
    assert "nothing_to_close: the lake has no rows of 2199-12" in ran.out
    told = weighbridge("close", "2199-12", "--config", open_home, "--json")
    assert (told.code, told.json["closed"]) == (3, False)
    assert [each["code"] for each in told.json["refused"]] == ["too_early", "nothing_to_close"]
    assert not (open_home / "closes").exists()


def test_early_takes_its_reason(weighbridge: Run, open_home: Path) -> None:
    ran = weighbridge("close", "2026-01", "--force-early", "books are due", "--by", "me", "--config", open_home)
    assert ran.code == 0
    (row,) = Lake.open(open_home / "lake").scan("close").collect().to_dicts()
    assert (row["early_reason"], row["closed_by"]) == ("books are due", "me")
    assert "books are due" not in ran.out


def test_the_settings_say_when_a_month_may_be_closed(weighbridge: Run, open_home: Path) -> None:
    with (open_home / "weighbridge.toml").open("a") as file:
        file.write('\n[close]\ngrace_days = 36500\naccepts = ["unexplained_gap"]\n')
    ran = weighbridge("close", "2026-01", "--config", open_home, "--json")
    assert [each["code"] for each in ran.json["refused"]] == ["too_early"]
    assert "36500 days of grace" in ran.json["refused"][0]["why"]


def test_a_closed_month_holds(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("verify", "2026-01", "--config", home)
    assert ran.code == 0
    assert re.search(r"^2026-01 holds: [\d,]+ figures RECOMPUTED, 0 COMMITTED$", ran.out, re.MULTILINE)
    told = weighbridge("verify", "2026-01", "--config", home, "--json").json
    assert (told["sound"], told["anchored"], told["differences"]) == (True, True, [])
    assert set(told["figures"].values()) == {"RECOMPUTED"}


def test_a_copied_pack_needs_no_installation(
    weighbridge: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = shutil.copytree(home / "closes" / "2026-01", tmp_path / "elsewhere" / "pack")
    root = weighbridge("close", "2026-01", "--config", home, "--json").json["root"]
    shutil.rmtree(home)
    monkeypatch.chdir(tmp_path)
    assert weighbridge("verify", pack, "--root", root).code == 0
    alone = weighbridge("verify", pack)
    assert alone.code == 0
    assert "no root was given" in alone.out
    other = weighbridge("verify", pack, "--root", "0" * 64)
    assert other.code == 3
    assert "root manifest.json" in other.out


def test_what_differs_is_named_and_the_exit_code_says_so(weighbridge: Run, home: Path) -> None:
    part = next((home / "closes/2026-01/rows/reading").glob("*.parquet"))
    raw = bytearray(part.read_bytes())
    raw[len(raw) // 2] ^= 1
    part.write_bytes(raw)
    ran = weighbridge("verify", "2026-01", "--config", home)
    assert ran.code == 3
    assert f"partition rows/reading/{part.name}: " in ran.out
    assert "2026-01 does not hold: " in ran.out


def test_what_is_not_closed_or_no_pack_is_said(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    ran = weighbridge("verify", "2026-02", "--config", home)
    assert ran.code == 2
    assert "2026-02 is not closed" in ran.err
    nothing = weighbridge("verify", tmp_path / "nothing")
    assert nothing.code == 3
    assert "no such folder" in nothing.out


def test_the_difference_of_a_close_and_the_lake_is_told_in_parts(weighbridge: Run, home: Path) -> None:
    weighbridge("simulate", home / "late", "--attempts", 20, "--days", 4, "--seed", 99, "--config", home)
    weighbridge("ingest", home / "late", "--config", home)
    told = weighbridge("diff", "2026-01", "now", "--config", home, "--json").json
    (dollars,) = told["money"]
    assert {name for name, value in dollars["parts"].items() if value != "0"} == {"data"}
    assert dollars["parts"]["data"] == dollars["difference"]
    assert sum(part["parts"]["data"] for part in told["tokens"]) > 0
    shown = weighbridge("diff", "2026-01", "now", "--config", home)
    assert shown.code == 0
    assert "2026-01  ->  2026-01 in the lake now" in shown.out


def test_what_came_late_is_booked_by_the_next_close(weighbridge: Run, home: Path) -> None:
    weighbridge(
        "simulate",
        home / "late",
        "--attempts",
        40,
        "--days",
        2,
        *("--start", "20260131", "--seed", 99),
        "--config",
        home,
    )
    weighbridge("ingest", home / "late", "--config", home)
    weighbridge("reconcile", "--config", home)
    done = weighbridge("close", "2026-02", "--config", home, "--json")
    assert done.json["closed"], done.json["refused"]
    rows = Lake.open(home / "lake").scan("adjustment").collect()
    assert set(rows["corrects"]) == {"2026-01"}
    assert set(rows["period"]) == {"2026-02"}
    assert weighbridge("verify", "2026-02", "--config", home).code == 0
    told = weighbridge("diff", "2026-01", "2026-02", "--config", home, "--json").json
    assert told["money"][0]["parts"]["data"] != "0"
    listed = weighbridge("findings", "ls", "--month", "2026-02", "--code", "late_data", "--config", home, "--json").json
    assert {row["origin"] for row in listed} == {"close"}


@pytest.mark.parametrize("code", CODES)
def test_codes_of_a_close_can_be_asked_for_before_there_are_any(weighbridge: Run, closed_once: Path, code: str) -> None:
    ran = weighbridge("findings", "ls", "--code", code, "--config", closed_once, "--json")
    assert (ran.code, ran.json) == (0, [])


@pytest.mark.parametrize("text", ["now", "now:", "now:2026-13"])
def test_now_has_to_name_a_month(weighbridge: Run, home: Path, text: str) -> None:
    ran = weighbridge("diff", text, "2026-01", "--config", home)
    assert ran.code == 2
    assert "names no month" in ran.err
