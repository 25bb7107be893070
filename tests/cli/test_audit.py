"""`weighbridge audit` and `simulate --misreport`: from a misreport to an accusation, with what the shell sees."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Terminal, quietly

HONEST = "2026-03-01..2026-03-02"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with a cell whose bills are 1.8 % too high from the third day on; to be copied."""
    home = tmp_path_factory.mktemp("audited") / "home"
    quietly("init", home)
    few = ("--attempts", 400, "--days", 4, "--start", "2026-03-01")
    quietly("simulate", home / "spool", "--misreport", "M5", "--factor", "0.018", *few, "--config", home)
    quietly("ingest", home / "spool", "--config", home)
    quietly("reconcile", "--config", home)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "home"))


def test_an_audit_says_what_it_lacks_and_accuses_once_it_is_calibrated(weighbridge: Terminal, home: Path) -> None:
    before = weighbridge("audit", "--config", home)
    assert before.code == 0
    assert "not_calibrated" in before.out
    assert "weighbridge audit --calibrate FROM..TO" in " ".join(before.out.split())
    after = weighbridge("audit", "--calibrate", HONEST, "--config", home)
    assert after.code == 1
    assert "calibrated 2 cells with 400 answers" in after.out
    assert "accused" in after.out
    assert "constant_factor" in after.out
    shown = weighbridge("audit", "--cell", "input", "--config", home)
    assert (shown.code, "accused" in shown.out) == (0, False)
    other = weighbridge("audit", "--month", "2026-04", "--json", "--config", home)
    assert (other.code, other.json["cells"]) == (0, [])
    told = weighbridge("audit", "--json", "--alpha", "0.05", "--config", home).json
    accused = {cell["measure"]: cell for cell in told["cells"]}["output"]
    assert (told["alpha"], accused["verdict"], accused["cause"], accused["rows"]) == (
        0.05,
        "accused",
        "constant_factor",
        200,
    )
    assert accused["slope_lower"] > 0.016
    assert accused["says"].startswith("What was recounted from the text and what was reported differ")
    listed = weighbridge("findings", "ls", "--code", "audit_overbilled", "--config", home)
    assert (listed.code, "+" in listed.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--calibrate", "2026-03-01"), "is no range of days; write it as FROM..TO"),
        (("--calibrate", "2026-03-02..2026-03-01"), "before it begins"),
        (("--calibrate", "2027-03-01..2027-03-02"), "no cell has 100 answers"),
        (("--alpha", "0.001"), "from 0.002 to 0.5 is allowed"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(
    weighbridge: Terminal, made: Path, arguments: tuple[str, ...], says: str
) -> None:
    ran = weighbridge("audit", *arguments, "--config", made)
    assert ran.code == 2
    assert says in " ".join(ran.err.replace("│", " ").split())


def test_a_misreport_says_what_it_is_and_what_an_audit_has_to_name(weighbridge: Terminal, made: Path) -> None:
    few = ("--attempts", 4, "--days", 2, "--config", made)
    ran = weighbridge("simulate", made / "other", "--misreport", "m10", *few)
    assert ran.code == 0
    assert "M10, usage reported twice on a retry" in ran.out
    assert "an audit has to name: retry_duplicated" in ran.out
    assert "audit --calibrate 2026-01-01..2026-01-01" in ran.out
    told = weighbridge("simulate", made / "third", "--misreport", "M0", "--json", *few).json
    assert (told["misreport"], told["expected"], len(told["segments"])) == ("M0", None, 2)
    refused = weighbridge("simulate", made / "fourth", "--misreport", "M99", *few)
    assert (refused.code, "M17 discarded drafts billed" in " ".join(refused.err.split())) == (2, True)
    alone = weighbridge("simulate", made / "fifth", "--factor", "2", "--config", made)
    assert (alone.code, "--factor goes with --misreport" in " ".join(alone.err.replace("│", " ").split())) == (2, True)
