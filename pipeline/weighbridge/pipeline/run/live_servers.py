"""The processes of the live demonstration: two servers and a client on loopback, each under the agent."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from weighbridge.schemas.errors import WeighbridgeError

NEEDED: Final = ("torch", "transformers", "httpx", "starlette", "uvicorn")
SERVE_NEEDED: Final = ("accelerate", "fastapi", "openai", "pydantic")  # what `transformers serve` asks for besides
ANSWERS: Final = "answers.jsonl"
START_S = 90.0
CALLS_S = 120.0
STOP_S = 20.0


class LiveError(WeighbridgeError):
    """A process of the demonstration did not do its part."""


def missing_packages(names: Sequence[str] = NEEDED) -> list[str]:
    """The packages a live demonstration needs and that are not installed."""
    return [name for name in names if find_spec(name) is None]


@dataclass(frozen=True, slots=True)
class Served:
    """What the client says of its calls, and which `transformers serve` took part, or why none did."""

    calls: list[dict[str, str]]
    version: str | None
    left_out: str | None


def serve_and_call(agents: Path, key_file: Path) -> Served:
    """Start both servers where they can run, have the client call them, and end them.

    Raises:
        LiveError: the product's own server did not start, or the calls failed.
    """
    with ExitStack() as stack:
        own = stack.enter_context(_started("demo_server", agents / "server", key_file))
        lacking = missing_packages(SERVE_NEEDED)
        serve = None if lacking else stack.enter_context(_started("demo_serve", agents / "serve", key_file))
        port = own.listening()["port"]
        told, why = None, f"{', '.join(lacking)} not installed"
        if serve is not None:
            try:
                told = serve.listening()
            except LiveError as error:
                why = str(error)
        ports = [port] if told is None else [port, told["port"]]
        said = run_module("weighbridge.capture.demo_client", agents / "client", key_file, agents / ANSWERS, *ports)
        for server in (own, serve):
            if server is not None:
                server.process.terminate()  # both at once; they are waited for at the end of the block
    calls = [json.loads(line) for line in said.splitlines()]
    return Served(calls, None, why) if told is None else Served(calls, str(told["version"]), None)


@dataclass(frozen=True, slots=True)
class _Process:
    """A server that was started."""

    process: subprocess.Popen[str]
    log: Path

    def listening(self) -> dict[str, Any]:
        """Its first word, once it listens.

        Raises:
            LiveError: it ended, or said nothing for too long.
        """
        heard = self.process.stdout
        assert heard is not None
        line = heard.readline() if select.select([heard], [], [], START_S)[0] else ""
        if not line:
            raise LiveError(f"the server did not start: {_last_line(self.log.read_text(encoding='utf-8'))}")
        told: dict[str, Any] = json.loads(line)
        return told


@contextmanager
def _started(module: str, spool: Path, key_file: Path) -> Iterator[_Process]:
    """A server, from its start to its end. It is ended by its own process id."""
    log = spool.with_name(f"{spool.name}.log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules
            _command(f"weighbridge.capture.{module}", (spool, key_file)),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
        )
        try:
            yield _Process(process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def run_module(module: str, *arguments: object) -> str:
    """What a module of ours says on standard output.

    Raises:
        LiveError: it failed.
    """
    done = subprocess.run(  # noqa: S603 - as above
        _command(module, arguments), capture_output=True, text=True, env=_environment(), timeout=CALLS_S, check=False
    )
    if done.returncode:
        raise LiveError(f"{module} ended with {done.returncode}: {_last_line(done.stderr)}")
    return done.stdout


def _command(module: str, arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]


def _environment() -> dict[str, str]:
    """Child processes see the environment, and never a network. A tiny model gains nothing from threads."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return {**os.environ, **offline, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]
