"""The runner, as a process of its own: this room has no torch. Prompts go through its standard input, into no file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weighbridge.pipeline.compare.plan import Plan
from weighbridge.schemas.errors import ConfigError, WeighbridgeError

MODULE: Final = "weighbridge.capture.comparison_runner"
WHILE_OPEN: Final = "--while-open"
_REFUSED: Final = 2
_WORDS: Final = 1 << 16  # bytes of what it said that are looked at
_KIND: Final = re.compile(r"[A-Za-z_.]{0,60}(Error|Exception|Interrupt)")
_OFFLINE: Final[Mapping[str, str]] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class RunnerError(WeighbridgeError):
    """The runner did not do its part."""


def run(plan: Plan, folder: Path, key_file: Path, keys: Mapping[str, Any]) -> None:
    """Run a plan.

    Args:
        plan: what is to be run.
        folder: of the run; empty or not there.
        key_file: the pseudonym key of the installation.
        keys: where the keys of content come from.

    Raises:
        ConfigError: the folder is not empty, or the plan cannot be run as written.
        RunnerError: the runner ended for another reason.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; name a new folder for the run")
    command = [plan.python or sys.executable, "-m", MODULE, str(folder), str(key_file), WHILE_OPEN]
    code, said = _ended(command, plan.told(keys), plan.packages)
    if code == _REFUSED:
        raise ConfigError((said.strip().splitlines() or ["the plan cannot be run"])[-1])
    if code:
        # What a framework says of an error may quote its input; its kind is enough to go on.
        last = (said.strip().splitlines() or [""])[-1].partition(":")[0]
        kind = last if _KIND.fullmatch(last) else "it did not say why"
        raise RunnerError(
            f"the runner ended with {code} ({kind}); see that torch and transformers are installed "
            "(weighbridge[models]) and that the model fits into memory"
        )


def _ended(command: Sequence[str], plan: Mapping[str, Any], packages: str | None = None) -> tuple[int, str]:
    """Wait for a runner; its code and what it said last.

    Its standard input stays open as long as this process waits. However this one ends, the system closes it, and the
    runner ends as well: nothing is left that computes for nobody.
    """
    around = {**os.environ, **_OFFLINE}
    if packages is not None:
        around["PYTHONPATH"] = os.pathsep.join(each for each in (packages, around.get("PYTHONPATH")) if each)
    with (
        tempfile.TemporaryFile() as words,
        subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=words, env=around
        ) as process,
    ):
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it ended before it read all: its code says why
                process.stdin.write(json.dumps(plan).encode() + b"\n")
                process.stdin.flush()
            process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        words.seek(max(0, words.seek(0, os.SEEK_END) - _WORDS))
        return process.returncode, words.read().decode("utf-8", "replace")
