"""An installation with March closed, that closing is tested with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.close.conftest import Office
from tests.pipeline.close.conftest import closed_once as closed_once  # noqa: PLC0414 - a fixture
from tests.pipeline.close.conftest import filled_once as filled_once  # noqa: PLC0414 - a fixture


@pytest.fixture
def closed(closed_once: Office, tmp_path: Path) -> Office:
    """March closed, April open; to be changed."""
    return closed_once.copy(tmp_path / "closed")
