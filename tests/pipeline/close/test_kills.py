"""A close that is killed with SIGKILL at any step, and run again, comes to the same digests as one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipeline.close.conftest import Office, contents

from weighbridge.pipeline.close import pins

pytestmark = pytest.mark.xdist_group("killed closes")

_ROOT = Path(__file__).resolve().parents[3]
# Kills itself before the n-th change of the file system below the installation. The lake's own library writes without
# Python, so each of its commits counts through the lock and the files around it.
_CLOSE = """
import os, signal, sys
from pathlib import Path
from tests.pipeline.close.conftest import Office
from weighbridge.pipeline.close import pins
root, at = sys.argv[1], int(sys.argv[2])
steps = 0
def watch(event, arguments):
    global steps
    changes = event in {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"} or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    )
    if changes and str(arguments[0]).startswith(root):
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGKILL)
pins.source_files = lambda: {"the.py": "0" * 64}
office = Office(Path(root))
lake = office.lake
sys.addaudithook(watch)
done = office.close()
assert done.closed, done.refused
print(steps)
"""


def close_in(office: Office, at: int) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", _CLOSE, str(office.root), str(at)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def ends_alike(filled: Office, whole: Office, steps: int, at: int, where: Path) -> None:
    """Kill a close before step `at`, run it again, and compare it with one that was not killed."""
    office = filled.copy(where)
    killed = close_in(office, at)
    assert killed.returncode == -signal.SIGKILL, (at, steps, killed.stderr)
    left = sorted(path.name for path in office.packs.iterdir()) if office.packs.exists() else []
    assert all(name == "2026-03" or name.startswith(".2026-03.") for name in left)
    done = office.close()
    assert done.closed
    assert contents(office.packs) == contents(whole.packs)
    assert office.lake.digests() == whole.lake.digests()


@pytest.fixture(autouse=True)
def unchanging_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A close names the digest of its code; these closes take minutes, in which a checkout may be edited."""
    monkeypatch.setattr(pins, "source_files", lambda: {"the.py": "0" * 64})
    pins.room_digest.cache_clear()
    yield
    pins.room_digest.cache_clear()


@pytest.fixture(scope="module")
def unkilled(filled_once: Office, tmp_path_factory: pytest.TempPathFactory) -> tuple[Office, int]:
    """A close that ran to its end, and in how many steps."""
    office = filled_once.copy(tmp_path_factory.mktemp("unkilled") / "office")
    done = close_in(office, 0)
    assert done.returncode == 0, done.stderr
    return office, int(done.stdout)


def test_a_kill_at_a_step_changes_nothing_in_the_end(
    filled_once: Office, unkilled: tuple[Office, int], tmp_path: Path
) -> None:
    whole, steps = unkilled
    assert steps > 60
    at = random.Random(5).randrange(2, steps)
    ends_alike(filled_once, whole, steps, at, tmp_path / str(at))


@pytest.mark.system
def test_a_kill_at_some_more_steps_changes_nothing_in_the_end(
    filled_once: Office, unkilled: tuple[Office, int], tmp_path: Path
) -> None:
    whole, steps = unkilled
    for at in (1, *random.Random(6).sample(range(2, steps), 2), steps):
        ends_alike(filled_once, whole, steps, at, tmp_path / str(at))


@pytest.mark.slow
def test_a_kill_at_any_step_changes_nothing_in_the_end(
    filled_once: Office, unkilled: tuple[Office, int], tmp_path: Path
) -> None:
    whole, steps = unkilled
    for at in range(1, steps + 1):
        ends_alike(filled_once, whole, steps, at, tmp_path / str(at))
