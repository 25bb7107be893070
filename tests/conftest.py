"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on a machine that is shared.
settings.register_profile("weighbridge", deadline=None)
settings.load_profile("weighbridge")

ROOT = Path(__file__).resolve().parent.parent
KEY = bytes(range(32))


def real_folder() -> Path:
    """The folder of recorded data beside the checkout, or the one the environment names."""
    return Path(os.environ.get("WEIGHBRIDGE_REAL", ROOT.parent / "shared" / "real"))


@pytest.fixture
def shared_real(request: pytest.FixtureRequest) -> Path:
    """The recorded data; the test is skipped, with a message, where it is absent."""
    folder = real_folder()
    if not (folder / "README.md").is_file():
        pytest.skip("the shared folder of recorded data is not beside this checkout")
    marker = os.environ.get("WEIGHBRIDGE_REAL_MARKER")
    if marker:
        with Path(marker).open("a", encoding="utf-8") as file:
            file.write(request.node.nodeid + "\n")
    return folder


@pytest.fixture
def key() -> bytes:
    """A pseudonym key that is the same in every test."""
    return KEY
