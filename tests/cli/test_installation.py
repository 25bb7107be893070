"""`init`, `doctor`, settings on the command line, and the ways to find an installation."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weighbridge.schemas.identity import key_id

Run = Callable[..., Any]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def healths(ran: Any) -> dict[str, str]:
    return {check["name"]: check["health"] for check in ran.json["checks"]}


def test_init_makes_settings_key_and_lake_for_their_owner_only(weighbridge: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    ran = weighbridge("init", home, "--json")
    assert ran.code == 0
    key_file = Path(ran.json["key_file"])
    assert ran.json["key_id"] == key_id(bytes.fromhex(key_file.read_text()))
    assert (mode(home), mode(key_file.parent), mode(key_file), mode(home / "lake")) == (0o700, 0o700, 0o600, 0o700)
    assert "# environment: WEIGHBRIDGE_TIMEZONE" in (home / "weighbridge.toml").read_text()
    assert key_file.read_text().strip() not in ran.out + ran.err


def test_init_again_leaves_everything_as_it_is(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "home")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert weighbridge("init", tmp_path / "home").code == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_fresh_installation_is_healthy(weighbridge: Run, tmp_path: Path) -> None:
    weighbridge("init", tmp_path / "home")
    ran = weighbridge("doctor", "--config", tmp_path / "home", "--json")
    assert (ran.code, ran.json["healthy"]) == (0, True)
    assert set(healths(ran).values()) == {"ok"}
    assert {"python", "polars", "key", "lake", "price book", "disk"} <= healths(ran).keys()
    table = weighbridge("doctor", "--config", tmp_path / "home")
    assert table.out.endswith("0 problems, 0 notices\n")


def test_doctor_finds_what_is_wrong_and_says_what_to_do(weighbridge: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    key_file = Path(weighbridge("init", home, "--json").json["key_file"])
    key_file.chmod(0o644)
    home.chmod(0o755)
    (home / "weighbridge.toml").write_text("price_age_days = 0\nfree_disk_mib = 999999999\n")
    shutil.rmtree(home / "lake")
    ran = weighbridge("doctor", "--config", home, "--json")
    assert ran.code == 1
    bad = {name for name, health in healths(ran).items() if health == "problem"}
    assert bad == {"home folder", "key", "lake", "disk"}
    cures = {check["name"]: check["cure"] for check in ran.json["checks"]}
    assert cures["home folder"] == f"run `chmod 700 {home}`"
    assert f"chmod 600 {key_file}" in cures["key"]
    assert "weighbridge init" in cures["lake"]


def test_doctor_gives_notice_of_old_prices(weighbridge: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    own = home / "own.toml"
    own.write_text(
        'format = 1\nprovider = "openai"\ncurrency = "USD"\nsource = "our contract"\nchecked_on = 2020-01-01\n'
        '[[rows]]\nmatch = "equals"\nmodels = ["ours"]\nprices = { input = "1", output = "2" }\n'
    )
    (home / "weighbridge.toml").write_text('prices = ["own.toml"]\nprice_age_days = 2000\n')
    ran = weighbridge("doctor", "--config", home, "--json")
    (check,) = (check for check in ran.json["checks"] if check["name"] == "price book")
    assert check["health"] == "notice"
    assert "1 checked more than 2000 days ago" in check["found"]
    assert ran.code == 0


def test_doctor_without_an_installation_is_told_how_to_make_one(
    weighbridge: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = weighbridge("doctor", "--json")
    assert (ran.code, healths(ran)["settings"]) == (1, "problem")
    assert "weighbridge init" in ran.out


def test_doctor_sees_rows_of_another_key_and_segments_that_wait(
    weighbridge: Run, weighed: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(weighed, home)
    shutil.copytree(weighed / "made", home / "spool", dirs_exist_ok=True)
    other = tmp_path / "other"
    weighbridge("init", other)
    weighbridge("simulate", home / "spool" / "more", "--attempts", 1, "--days", 1, "--config", other)
    (segment, *_) = (home / "spool" / "more").glob("*.segment")
    segment.rename(home / "spool" / segment.name.replace("agent", "late").replace("provider", "late"))
    (home / "keys" / "pseudonym.key").write_text("ab" * 32)
    ran = weighbridge("doctor", "--config", home, "--json")
    assert (ran.code, healths(ran)["keys of rows"], healths(ran)["spool"]) == (1, "problem", "notice")
    assert any(check["found"] == "1 segments wait" for check in ran.json["checks"])


def test_an_installation_is_found_from_inside_it_by_option_and_by_environment(
    weighbridge: Run, weighed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = weighbridge("digest", "--config", weighed, "--json").json
    assert weighbridge("--config", weighed / "weighbridge.toml", "digest", "--json").json == expected
    monkeypatch.chdir(weighed / "reports")
    assert weighbridge("digest", "--json").json == expected
    monkeypatch.chdir(tmp_path)
    assert weighbridge("digest").code == 2
    monkeypatch.setenv("WEIGHBRIDGE_CONFIG", str(weighed))
    assert weighbridge("digest", "--json").json == expected


def test_a_mistyped_setting_stops_a_verb_and_names_the_right_one(
    weighbridge: Run, weighed: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(weighed, home)
    with (home / "weighbridge.toml").open("a") as file:
        file.write('timezon = "UTC"\n')
    ran = weighbridge("findings", "ls", "--config", home)
    assert (ran.code, ran.out) == (2, "")
    assert "unknown setting 'timezon'; did you mean timezone?" in ran.err
    assert ran.err.count("\n") == 1


def test_a_mistyped_verb_option_or_month_is_a_usage_error(weighbridge: Run, weighed: Path) -> None:
    for arguments in (
        ["reconsile"],
        ["report", "--mont", "2026-01"],
        ["report", "--month", "January"],
        ["report", "--month", "2026-00"],
        ["report", "--since", "2026-02-30"],
        ["report", "--since", "202601"],
        ["report", "--month", "2026-01", "--since", "20260101"],
        ["report", "--timezone", "Mars"],
        ["digest", "readings"],
        ["--log-level", "loud", "digest"],
        ["init"],
    ):
        ran = weighbridge(*arguments, *(["--config", weighed] if arguments[0] in {"report", "digest"} else []))
        assert (ran.code, ran.out) == (2, ""), arguments
        assert ran.err


def test_the_version_names_product_and_vocabulary(weighbridge: Run) -> None:
    ran = weighbridge("--version")
    assert (ran.code, ran.out) == (0, "weighbridge 0.1.0 (vocabulary 5)\n")


def test_a_key_file_that_others_may_read_stops_a_verb(weighbridge: Run, tmp_path: Path) -> None:
    key_file = Path(weighbridge("init", tmp_path / "home", "--json").json["key_file"])
    key_file.chmod(0o640)
    ran = weighbridge("digest", "--config", tmp_path / "home")
    assert ran.code == 2
    assert f"run `chmod 600 {key_file}`" in ran.err
    assert key_file.read_text().strip() not in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_no_crash(weighbridge: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    ran = weighbridge("init", tmp_path / "home")
    assert ran.code == 2
    assert "Permission denied" in ran.err
