"""The live demonstration: real chat attempts on a tiny random model, weighed at the engine and at the client.

A server and a client run as processes of their own on loopback, each under the agent, and meet only in the files they
leave. Their spools are sealed, ingested and reconciled like any other; attempts meet through the id in the header.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from weighbridge.pipeline.report.report import ReportFiles
from weighbridge.pipeline.run.home import Home, init_home
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh, write_reports
from weighbridge.schemas.errors import ConfigError, WeighbridgeError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import SUFFIX

NEEDED = ("torch", "transformers", "httpx", "starlette", "uvicorn")
CALLS_S = 120.0
STOP_S = 20.0
_NO_ENVIRONMENT: Mapping[str, str] = {}
# What explains the difference that each kind of call is made for, per direction; none: the two sides agree.
EXPECTED: Mapping[str, Mapping[str, str | None]] = {
    "plain": {"input": None, "output": None},
    "stop string": {"input": None, "output": "stop_trimmed"},
    "stream": {"input": None, "output": None},
    "stream without usage": {"input": "usage_missing", "output": "usage_missing"},
    "aborted stream": {"input": "aborted", "output": "aborted"},
    "padded batch": {"input": "padding_counted", "output": None},
}


class LiveError(WeighbridgeError):
    """A process of the demonstration did not do its part."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """One direction of one attempt: what each side says, and why they differ."""

    kind: str
    attempt: str
    direction: str
    computed: int | None
    reported: int | None
    difference: int | None
    causes: tuple[str, ...]
    residual: int | None


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What the demonstration made: its installation, every attempt weighed, its reports, how long it took."""

    home: Home
    weighed: tuple[Weighed, ...]
    reports: Mapping[str, ReportFiles]
    seconds: float

    @property
    def unexplained(self) -> list[Weighed]:
        """Rows with a residual, or with another cause than the one the call was made for."""
        return [row for row in self.weighed if row.residual or not as_expected(row)]


def as_expected(row: Weighed) -> bool:
    """Whether a row has the cause its call was made for; a prompt that is the longest of its batch has no padding."""
    wanted = EXPECTED[row.kind][row.direction]
    return row.causes == (() if wanted is None or row.difference == 0 else (wanted,))


def missing_packages() -> list[str]:
    """The packages a live demonstration needs and that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def live(out: Path) -> LiveResult:
    """Serve, call, seal, ingest, reconcile and report.

    Args:
        out: the folder of the new installation; it must be empty or not there.

    Raises:
        ConfigError: the folder is not empty, or a package is missing.
        LiveError: the server did not start, or the calls failed; what they wrote stays for review.
    """
    began = time.monotonic()
    if lacking := missing_packages():
        raise ConfigError(f"a live demonstration needs {', '.join(lacking)}; install weighbridge[models] and uvicorn")
    root = out.expanduser().absolute()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty; name a new folder for the demonstration")
    home = init_home(root, given={"title": "Live demonstration"}, env=_NO_ENVIRONMENT)
    key_file = home.settings.key_file
    spools = {name: root / "agents" / name for name in ("server", "client")}
    with _server(spools["server"], key_file) as port:
        calls = _run("weighbridge.capture.demo_client", spools["client"], key_file, port)
    kinds = {call["attempt"]: call["kind"] for call in map(json.loads, calls.splitlines())}
    for spool in spools.values():
        _run("weighbridge.capture.spool", "seal", spool)
    segments = sorted(path for spool in spools.values() for path in spool.glob(f"*{SUFFIX}"))
    take_in(home, segments, Intake(day=datetime.now(tz=UTC).date()))
    lake = home.lake()
    months = all_months(lake)
    set_prices(home, days_of(lake, months))
    weigh(home, months)
    weighed = tuple(_weighed(home, kinds))
    return LiveResult(home, weighed, write_reports(home, months), time.monotonic() - began)


def _weighed(home: Home, kinds: Mapping[str, str]) -> Iterator[Weighed]:
    lake = home.lake()
    causes: dict[tuple[int, int, str], list[str]] = {}
    for row in lake.scan("gap_cause").collect().iter_rows(named=True):
        causes.setdefault((row["attempt_hi"], row["attempt_lo"], row["direction"]), []).append(row["cause"])
    rows = {
        (row["attempt_hi"], row["attempt_lo"], row["direction"]): row
        for row in lake.scan("reconciled").sort("direction").collect().iter_rows(named=True)
    }
    for attempt, kind in kinds.items():
        key = AttemptKey.from_hex(attempt)
        for direction in ("input", "output"):
            found = rows.get((*key, direction))
            if found is None:
                raise LiveError(f"attempt {attempt} was sent and is in nobody's file; keep {home.root} for review")
            yield Weighed(
                kind,
                attempt,
                direction,
                found["observed"],
                found["reported"],
                found["gap"],
                tuple(sorted(causes.get((*key, direction), []))),
                found["residual"],
            )


def _environment() -> dict[str, str]:
    """Child processes see the environment, and never a network."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def _command(module: str, arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]


def _run(module: str, *arguments: object) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter and modules
        _command(module, arguments), capture_output=True, text=True, env=_environment(), timeout=CALLS_S, check=False
    )
    if done.returncode:
        raise LiveError(f"{module} ended with {done.returncode}: {_last_line(done.stderr)}")
    return done.stdout


@contextmanager
def _server(spool: Path, key_file: Path) -> Iterator[int]:
    """The server, from its first word (its port) to its end. It is ended by its own process id."""
    spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = spool.parent / "server.log"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(  # noqa: S603 - as above
            _command("weighbridge.capture.demo_server", (spool, key_file)),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
        )
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port.isdecimal():
                raise LiveError(f"the server did not start: {_last_line(log.read_text(encoding='utf-8'))}")
            yield int(port)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


def as_frame(rows: Sequence[Weighed]) -> pl.DataFrame:
    """Per kind of call and direction: attempts, tokens on both sides, and the causes of the difference."""
    frame = pl.DataFrame(
        [
            {
                "kind": row.kind,
                "direction": row.direction,
                "computed": row.computed,
                "reported": row.reported,
                "difference": row.difference,
                "causes": list(row.causes),
                "residual": row.residual,
            }
            for row in rows
        ],
        schema={
            "kind": pl.String,
            "direction": pl.String,
            "computed": pl.Int64,
            "reported": pl.Int64,
            "difference": pl.Int64,
            "causes": pl.List(pl.String),
            "residual": pl.Int64,
        },
    )
    grouped = frame.group_by("kind", "direction", maintain_order=True)
    return grouped.agg(
        attempts=pl.len().cast(pl.Int64),
        computed=pl.col("computed").sum(),
        reported=pl.when(pl.col("reported").count() > 0).then(pl.col("reported").sum()),
        difference=pl.col("difference").sum(),
        causes=pl.col("causes").explode().drop_nulls().unique().sort().str.join(", "),
        residual=pl.col("residual").sum(),
    )
