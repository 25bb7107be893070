"""Fixtures of the capture tests: errors of our own are raised, the keeper looks often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder


@pytest.fixture(autouse=True)
def _raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RAISE_VARIABLE, "1")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    """A key folder of the test's own."""
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
def recorder(tmp_path: Path, key: bytes, keys: KeyFolder) -> Iterator[Recorder]:
    """A recorder on a spool of the test's own, closed afterwards."""
    made = Recorder.start(tmp_path / "spool", installation="test-1", key=key, keys=keys, limits=Limits(keeper_s=0.05))
    yield made
    made.close()
