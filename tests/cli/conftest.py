"""Running the command line inside the test process, and an installation with simulated traffic."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.by_hand import by_great_expectations, mostly_by_hand  # noqa: F401 - fixtures

from weighbridge.cli.main import execute


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs this folder, so that each installation its tests copy or read is made once."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("cli"))


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


class Terminal:
    """Runs commands and keeps what they print."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object) -> Ran:
        """Run `weighbridge` with these arguments."""
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            execute([str(argument) for argument in arguments])
        told = self._capture.readouterr()
        return Ran(int(ended.value.code or 0), told.out, told.err)


@pytest.fixture
def weighbridge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The command line. The log of a test ends with the test."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIGHBRIDGE_CONFIG", raising=False)
    log = logging.getLogger("weighbridge")
    handlers, level = list(log.handlers), log.level
    yield Terminal(capsys)
    log.handlers[:] = handlers
    log.setLevel(level)


def quietly(*arguments: object, allowed: frozenset[int] = frozenset({0, 1})) -> None:
    """Run `weighbridge` where nobody looks at what it prints; it must end clean or with findings, or as is allowed."""
    with pytest.raises(SystemExit) as ended:
        execute([str(argument) for argument in arguments])
    assert (ended.value.code or 0) in allowed, arguments


@pytest.fixture(scope="session")
def weighed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that ingested and reconciled 600 simulated attempts of half of January 2026; only to be read."""
    home = tmp_path_factory.mktemp("weighed") / "home"
    quietly("init", home)
    quietly("simulate", home / "made", "--attempts", 600, "--days", 16, "--config", home)
    quietly("ingest", home / "made", "--config", home)
    quietly("reconcile", "--config", home)
    return home
