"""The small closed world that reconciliation is tested with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.reconcile.conftest import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world without rows."""
    return World(tmp_path)
