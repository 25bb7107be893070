"""The runner of a comparison, a process of its own: `python -m weighbridge.capture.comparison_runner FOLDER KEY_FILE`.

The plan comes on standard input as one line of JSON, so that prompts stand in no file. Who gives `--while-open` as well
leaves standard input open, and the runner ends when it is closed: a model must not compute on for somebody who was
killed. Models are local: nothing is fetched. Exit codes: 0 done, 2 the plan cannot be run as written, with the reason
on standard error, 3 nobody waits for it any more.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weighbridge.capture.comparison.setting import settings
from weighbridge.capture.keys import KeyCommand, KeyEnvironment, KeyFolder, KeyProvider
from weighbridge.schemas.errors import ConfigError

DEMO: Final = "demo"
WHILE_OPEN: Final = "--while-open"
ALONE: Final = 3


def main(folder: Path, key: bytes, given: Mapping[str, Any]) -> None:
    """Run a plan.

    Args:
        folder: of the run; empty or not there.
        key: the pseudonym key of the installation.
        given: the plan.

    Raises:
        ConfigError: it cannot be run as written.
    """
    from weighbridge.capture.comparison.run import Run, plan_of  # noqa: PLC0415 - after the environment is set

    # What is written wrong is said before a model is loaded, which may take minutes.
    settings(given["strategies"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    model, tokenizer = load(given)
    Run(plan_of(given, model, tokenizer), folder, key, provider(given["keys"]))()


def end_with(pipe: int) -> None:
    """End this process when nothing more can come through a pipe: whoever held its other end is gone.

    A pipe closes with the process that holds it, however that ends and on every system. Nothing is tidied
    up: a folder without a manifest is a run that did not end.
    """

    def watch() -> None:
        while os.read(pipe, 1):  # not through sys.stdin, whose lock would be held when this process ends
            pass
        os._exit(ALONE)

    threading.Thread(target=watch, name="weighbridge-parent", daemon=True).start()


def load(given: Mapping[str, Any]) -> tuple[Any, Any]:
    """The model and its tokenizer, from local files; or those of the demonstration.

    Raises:
        ConfigError: there is no model there that can be loaded.
    """
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if given["model"] == DEMO:
        from weighbridge.capture import demo_model  # noqa: PLC0415 - as above

        tokenizer = demo_model.tiny_tokenizer()
        return demo_model.tiny_model(tokenizer), tokenizer
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - as above

    try:
        model = AutoModelForCausalLM.from_pretrained(given["model"], local_files_only=True).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no model can be loaded from {given['model']} ({type(error).__name__}); name a folder with "
            "config.json and weights"
        ) from None
    named = given.get("tokenizer") or given["model"]
    try:
        return model, AutoTokenizer.from_pretrained(named, local_files_only=True)
    except (OSError, ValueError, KeyError):
        if given.get("tokenizer"):
            raise ConfigError(f"no tokenizer can be loaded from {named}; name a folder with tokenizer.json") from None
        return model, None  # prompts may be ids


def provider(told: Mapping[str, Any]) -> KeyProvider:
    """Who gives the keys, as the installation names them."""
    if "folder" in told:
        return KeyFolder(Path(told["folder"]))
    return KeyCommand(told["command"]) if "command" in told else KeyEnvironment(told["variable"])


if __name__ == "__main__":
    try:
        plan = json.loads(sys.stdin.buffer.readline())
        if WHILE_OPEN in sys.argv[3:]:
            end_with(sys.stdin.fileno())
        main(Path(sys.argv[1]), bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")), plan)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    except OSError as error:
        # Of what the system says its own words alone: a path may be long, and is told by who started this.
        said = os.strerror(error.errno) if error.errno else type(error).__name__
        sys.stderr.write(f"a file cannot be written or read ({said}); mend that, then run it into a new folder\n")
        sys.exit(2)
