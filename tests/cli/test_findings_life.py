"""From an open finding to a closed one, on the command line."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Terminal as Run


@pytest.fixture
def home(weighed: Path, tmp_path: Path) -> Path:
    """A weighed installation of its own."""
    return Path(shutil.copytree(weighed, tmp_path / "home"))


def listed(weighbridge: Run, home: Path, *options: str) -> list[dict[str, Any]]:
    return list(weighbridge("findings", "ls", "--config", home, "--json", *options).json)


def test_a_finding_is_disputed_credited_in_parts_and_closed(weighbridge: Run, home: Path) -> None:
    at = ["--config", home, "--by", "ann"]
    row = next(each for each in listed(weighbridge, home) if each["severity"] in {"warning", "error"})
    about = [row["finding_id"][:8], "--reference", "CASE-7", "--amount", "12.50", "--currency", "USD"]
    asked = weighbridge("findings", "dispute", *about, *at)
    assert (asked.code, asked.out) == (0, f"finding {row['finding_id'][:8]} is disputed, 12.5000 USD outstanding\n")
    given = weighbridge("findings", "credit", row["finding_id"], "--amount", "5", "--reference", "inv-1/7", *at)
    assert given.out == f"finding {row['finding_id'][:8]}: the credit is entered, 7.5000 USD outstanding\n"
    again = weighbridge("findings", "credit", row["finding_id"], "--amount", "5", "--reference", "inv-1/7", *at)
    assert again.out == (
        f"finding {row['finding_id'][:8]}: the same as before: nothing entered; a second credit of this amount needs a "
        "--reference of its own, 7.5000 USD outstanding\n"
    )
    (sums,) = weighbridge("findings", "sums", "--config", home, "--json").json
    assert (sums["disputed"], sums["credited"], sums["outstanding"], sums["findings"]) == ("12.5", "5", "7.5", 1)
    shown = weighbridge("findings", "show", row["finding_id"], "--config", home, "--json").json
    assert (shown["state"], shown["outstanding"], shown["reference"]) == ("disputed", "7.5", "inv-1/7")
    assert weighbridge("findings", "close", row["finding_id"], *at).code == 0
    past = weighbridge("findings", "history", row["finding_id"][:8], "--config", home, "--json").json
    assert [(each["state"], each["amount"], each["reference"]) for each in past[:2]] == [
        ("disputed", "12.5", "CASE-7"),
        ("credited", "5", "inv-1/7"),
    ]
    assert (past[2]["state"], past[2]["amount"]) == ("closed", row["amount"])
    assert weighbridge("findings", "history", "--config", home, "--json").json == past
    assert weighbridge("findings", "reopen", row["finding_id"], "--reason", "again", *at).code == 0
    assert listed(weighbridge, home, "--state", "open") == listed(weighbridge, home)


def test_only_what_is_material_fails_the_gate(weighbridge: Run, home: Path) -> None:
    assert weighbridge("findings", "ls", "--gate", "--config", home).code == 3
    assert weighbridge("findings", "ls", "--gate", "--month", "2026-02", "--config", home).code == 0
    with (home / "weighbridge.toml").open("a") as file:
        file.write('\n[material]\namount = "1000000"\nunpriced = false\n')
    told = weighbridge("findings", "ls", "--gate", "--config", home)
    assert (told.code, told.out.splitlines()[-1].endswith("0 of them material")) == (0, True)
    assert weighbridge("findings", "ls", "--config", home).code == 1
    rules = {row["material_rule"] for row in listed(weighbridge, home)}
    assert rules == {"amount", "unpriced"}


def test_money_of_a_finding_is_shown_to_the_last_digit(weighbridge: Run, home: Path) -> None:
    row = next(each for each in listed(weighbridge, home) if each["amount"] and len(each["amount"].split(".")[-1]) > 4)
    shown = weighbridge("findings", "show", row["finding_id"], "--config", home).out
    (line,) = [line for line in shown.splitlines() if line.split()[:2] == ["amount", "│"]]
    assert line.split()[2].replace(",", "") == f"{Decimal(row['amount']):+f}"


def test_what_matters_is_carried_into_the_next_month(weighbridge: Run, home: Path) -> None:
    weighty = {row["finding_id"] for row in listed(weighbridge, home, "--severity", "warning", "--month", "2026-01")}
    own = {row["finding_id"] for row in listed(weighbridge, home) if row["period"] == "2026-01"}
    found = weighbridge("findings", "carry", "2026-02", "--config", home, "--json").json
    assert {row["finding_id"] for row in found} == weighty & own != set()
    assert {row["first_month"] for row in found} == {"2026-01"}
    assert weighbridge("findings", "carry", "2026-01", "--config", home, "--json").json == []


def test_a_pack_is_written_and_verified_without_the_installation(weighbridge: Run, home: Path, tmp_path: Path) -> None:
    row = next(each for each in listed(weighbridge, home) if each["evidence"])
    out = tmp_path / "sent.zip"
    told = weighbridge(
        "findings", "pack", row["finding_id"][:8], "--zip", "--out", out, "--config", home, "--json"
    ).json
    assert (told["path"], told["root"], told["proved"]) == (str(out), None, 0)
    assert told["rows"] > 0
    bare = weighbridge("findings", "pack", row["finding_id"], "--zip", "--out", tmp_path / "v1.2", "--config", home)
    assert (bare.code, (tmp_path / "v1.2.zip").read_bytes()) == (0, out.read_bytes())
    shutil.rmtree(home)
    checked = weighbridge("verify", out)
    assert (checked.code, "2026-01 holds" in checked.out) == (0, True)
    raw = out.read_bytes()
    out.write_bytes(raw[: len(raw) // 2])
    assert weighbridge("verify", out).code == 3


def test_an_open_finding_that_cannot_be_closed_yet_says_which_verbs_go_before(weighbridge: Run, home: Path) -> None:
    row = next(each for each in listed(weighbridge, home) if each["severity"] in {"warning", "error"})
    ran = weighbridge("findings", "close", row["finding_id"][:8], "--config", home)
    assert ran.code == 2
    assert "acknowledged (`findings ack`), waived (`findings waive`), disputed (`findings dispute`)" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dispute", "ffffffff"], "--reference"),
        (["credit", "ffffffff", "--amount", "a lot"], "is no amount; write it as 12.50"),
        (["credit", "ffffffff", "--amount", "1"], "no finding has an id that begins with ffffffff"),
        (["reopen", "ffffffff"], "--reason"),
    ],
)
def test_a_mistake_says_what_to_do(weighbridge: Run, weighed: Path, arguments: list[str], message: str) -> None:
    ran = weighbridge("findings", *arguments, "--config", weighed)
    assert (ran.code, message in ran.err) == (2, True)
