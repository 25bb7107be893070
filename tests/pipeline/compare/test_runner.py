"""The runner as a process: how it ends, and that it does not outlive who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weighbridge.pipeline.compare.plan import Plan
from weighbridge.pipeline.compare.runner import _ended, run
from weighbridge.schemas.errors import ConfigError

PARENT = """
import sys
from dataclasses import replace
from pathlib import Path
from weighbridge.pipeline.compare.demo import demo_plan
from weighbridge.pipeline.compare.runner import run
folder = Path(sys.argv[1])
run(demo_plan(prompts=5000), folder / "run", folder / "key", {"folder": str(folder / "keys")})
"""


def test_what_a_runner_says_and_how_it_ended_comes_back() -> None:
    words = "import sys; line = sys.stdin.readline(); sys.stderr.write('said ' + line); sys.exit(2)"
    assert _ended([sys.executable, "-c", words], {"a": 1}) == (2, 'said {"a": 1}\n')
    assert _ended([sys.executable, "-c", "raise SystemExit(3)"], {"a": "x" * 1_000_000}) == (3, "")


def test_packages_come_first_in_its_environment(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text("raise SystemExit(7)")
    assert _ended([sys.executable, "-c", "import apart"], {}, str(tmp_path)) == (7, "")


def test_its_pipe_is_open_while_somebody_waits() -> None:
    """A process that ends with its standard input, and finds it open, ends by itself."""
    words = (
        "import sys; from weighbridge.capture.comparison_runner import end_with; sys.stdin.buffer.readline();"
        "end_with(0); import time; time.sleep(0.2)"
    )
    assert _ended([sys.executable, "-c", words], {}) == (0, "")
    shut = subprocess.run([sys.executable, "-c", words.replace("0.2", "30")], input=b"{}\n", check=False, timeout=20)
    assert shut.returncode == 3


def _gone(number: int) -> bool:
    try:
        return (Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the runner under /proc")
def test_a_runner_ends_with_who_started_it_however_that_ends(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "key").write_text("00" * 32)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    try:
        until = time.monotonic() + 90
        while not (tmp_path / "run" / "policy.json").exists():
            assert parent.poll() is None
            assert time.monotonic() < until, "the run did not begin"
            time.sleep(0.1)
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert not _gone(int(child))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until = time.monotonic() + 20
    while not _gone(int(child)):
        if time.monotonic() > until:
            os.kill(int(child), signal.SIGKILL)
            pytest.fail("the runner computes on for nobody")
        time.sleep(0.05)
    assert not (tmp_path / "run" / "comparison.json").exists()


@pytest.mark.system
def test_parameters_are_refused_before_a_model_is_looked_for(tmp_path: Path) -> None:
    """The model is not there either, and that would be said second."""
    (tmp_path / "key").write_text("00" * 32)
    plan = Plan(model=str(tmp_path / "none"), name="none", prompts=[], strategies={"s": {"topk": 3}})
    with pytest.raises(ConfigError, match="strategy s: there is no parameter 'topk'; allowed are window"):
        run(plan, tmp_path / "run", tmp_path / "key", {"folder": str(tmp_path)})
    with pytest.raises(ConfigError, match="a file cannot be written or read"):
        run(plan, tmp_path / "run", tmp_path / "no key", {})
