"""The demonstration: a home of its own, a simulated quarter with known faults, the whole road, and a comparison.

What reconciliation found is held against what was put in: same codes, providers, models and months, same attempts,
same tokens. One finding too many, too few or off by one token, and the demonstration says so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.report.report import ReportFiles
from weighbridge.pipeline.run.home import Home, init_home, open_home
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh, write_reports
from weighbridge.pipeline.settings import FILE as SETTINGS_FILE
from weighbridge.pipeline.simulate.expected import FILE as EXPECTED_FILE
from weighbridge.pipeline.simulate.expected import ExpectedFinding, together
from weighbridge.pipeline.simulate.simulate import START, simulate
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.segment import SUFFIX

_PRICES = Path(__file__).with_name("simulated_prices.toml")
_MADE_WITH = "demo.json"
# A demonstration stays in its folder and comes out the same, whatever is set for the user's own installation.
_NO_ENVIRONMENT: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demonstration made and how the comparison came out.

    Attributes:
        home: the installation; it can be used like any other.
        reports: month -> the files of its report.
        findings: the rows of the table `finding`.
        expected: what had to be found.
        missing: expected, and not found or found with other figures.
        unexpected: found, and not expected or expected with other figures.
        attempts: how many attempts and usage reports were taken in, together.
    """

    home: Home
    reports: Mapping[str, ReportFiles]
    findings: pl.DataFrame
    expected: list[ExpectedFinding]
    missing: list[ExpectedFinding]
    unexpected: list[ExpectedFinding]

    @property
    def as_expected(self) -> bool:
        """Whether every known fault was found exactly, and nothing else was."""
        return not self.missing and not self.unexpected


def demo(out: Path, *, seed: int = 7, attempts: int = 20_000, days: int = 90, start: date = START) -> DemoResult:
    """Run the main job on data made for it.

    The same arguments give the same bytes in every report, in whatever folder; run again in the same folder, it
    finds everything done and comes to the same result.

    Args:
        out: the folder of the new installation; empty, or that of the same demonstration.
        seed, attempts, days, start: of the simulation.

    Raises:
        ConfigError: `out` holds something else.
    """
    made_with = {"seed": seed, "attempts": attempts, "days": days, "start": start.isoformat()}
    home = _home(out, made_with, seed)
    _simulate(home, seed=seed, attempts=attempts, days=days, start=start)
    expected = stored_faults(home)
    take_in(home, sorted(home.spool.glob(f"*{SUFFIX}")), Intake(day=start))
    lake = home.lake()
    months = all_months(lake)
    set_prices(home, days_of(lake, months))
    weigh(home, months)
    reports = write_reports(home, months)
    findings = lake.scan("finding").collect()
    found = found_faults(findings)
    return DemoResult(
        home,
        reports,
        findings,
        expected,
        missing=sorted(set(expected) - set(found)),
        unexpected=sorted(set(found) - set(expected)),
    )


def demo_key(seed: int) -> bytes:
    """The pseudonym key of a demonstration. It is public by construction: only made-up names are hidden by it."""
    return hashlib.blake2b(f"weighbridge demonstration {seed}".encode(), digest_size=32).digest()


def found_faults(findings: pl.DataFrame) -> list[ExpectedFinding]:
    """The findings, in the form of expected ones: one per code, provider, model and month."""
    return together(
        ExpectedFinding(
            row["code"],
            row["provider"] or "",
            row["model"] or "",
            row["period"],
            row["rows"],
            row["difference"] or 0,
        )
        for row in findings.iter_rows(named=True)
    )


def new_home(root: Path, seed: int) -> Home:
    """A new installation for a demonstration, with a key and prices of its own."""
    given = {"prices": ["prices"], "title": "Simulated quarter"}
    home = init_home(root, key=demo_key(seed), given=given, env=_NO_ENVIRONMENT)
    (root / "prices").mkdir()
    shutil.copyfile(_PRICES, root / "prices" / _PRICES.name)
    return home


def stored_faults(home: Home) -> list[ExpectedFinding]:
    """The expected findings that were written beside the segments in the spool."""
    content = json.loads((home.spool / EXPECTED_FILE).read_text(encoding="utf-8"))
    return [ExpectedFinding(**row) for row in content["expected"]]


def _home(out: Path, made_with: Mapping[str, object], seed: int) -> Home:
    root = out.expanduser().absolute()
    if (root / _MADE_WITH).is_file():
        if json.loads((root / _MADE_WITH).read_text(encoding="utf-8")) != made_with:
            raise ConfigError(f"{root} holds a demonstration with other arguments; name an empty folder")
        return open_home(root / SETTINGS_FILE, env=_NO_ENVIRONMENT)
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty; name a new folder for the demonstration")
    home = new_home(root, seed)
    (root / _MADE_WITH).write_text(json.dumps(made_with) + "\n", encoding="utf-8")
    return home


def _simulate(home: Home, *, seed: int, attempts: int, days: int, start: date) -> None:
    """Write the segments into the spool, unless they are there whole: the expected findings are written last."""
    if not (home.spool / EXPECTED_FILE).is_file():
        for leftover in home.spool.glob(f"*{SUFFIX}"):
            shutil.rmtree(leftover)
        simulate(home.spool, attempts=attempts, seed=seed, start=start, days=days, key=home.key)
