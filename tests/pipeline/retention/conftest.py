"""An installation for tests of retention."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.retention.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty installation."""
    return World(tmp_path)
