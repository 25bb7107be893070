"""The runner, as a process of its own: this room has no torch. Prompts go through its standard input, into no file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weighbridge.pipeline.compare.plan import Plan
from weighbridge.schemas.errors import ConfigError, WeighbridgeError

MODULE: Final = "weighbridge.capture.comparison_runner"
_REFUSED: Final = 2
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
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", MODULE, str(folder), str(key_file)],
        input=json.dumps(plan.told(keys)), capture_output=True, text=True, check=False, env={**os.environ, **_OFFLINE},
    )  # fmt: skip
    if done.returncode == _REFUSED:
        raise ConfigError((done.stderr.strip().splitlines() or ["the plan cannot be run"])[-1])
    if done.returncode:
        # What a framework says of an error may quote its input; its kind is enough to go on.
        said = (done.stderr.strip().splitlines() or [""])[-1].partition(":")[0]
        kind = said if _KIND.fullmatch(said) else "it did not say why"
        raise RunnerError(
            f"the runner ended with {done.returncode} ({kind}); see that torch and transformers are installed "
            "(weighbridge[models]) and that the model fits into memory"
        )
