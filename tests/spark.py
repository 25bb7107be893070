"""Whether Spark can be started here: tests of it are skipped where it cannot, unless it was asked for by name."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

ASKED = os.environ.get("WEIGHBRIDGE_SPARK") == "1"


def needs_spark() -> pytest.MarkDecorator:
    """Skips where pyspark or Java is missing; `./setup.sh spark` sees to both, and there nothing is skipped."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    missing = "pyspark" if find_spec("pyspark") is None else "Java" if java is None else ""
    return pytest.mark.skipif(
        bool(missing) and not ASKED, reason=f"{missing} is missing; `./setup.sh spark` installs it and runs these tests"
    )
