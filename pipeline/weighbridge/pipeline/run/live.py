"""The live demonstration: real chat attempts on a tiny random model, weighed at the engine and at the client.

Two servers and a client run as processes of their own on loopback, each under the agent, and meet only in the files
they leave: `transformers serve` for the calls it can answer, and a small server of the product's own around
`generate()` for those it cannot, or for all where the former cannot run. The spools are sealed, ingested and
reconciled like any other; attempts meet through the id in the header, or through the id of the answer.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import polars as pl

from weighbridge.pipeline.ingest.keys import alias_key
from weighbridge.pipeline.report.report import ReportFiles
from weighbridge.pipeline.run.home import Home, init_home
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh, write_reports
from weighbridge.schemas.enumerations import Direction, ForeignIdKind, WithheldReason
from weighbridge.schemas.errors import ConfigError, WeighbridgeError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import SUFFIX

NEEDED: Final = ("torch", "transformers", "httpx", "starlette", "uvicorn")
SERVE_NEEDED: Final = ("accelerate", "fastapi", "openai", "pydantic")  # what `transformers serve` asks for besides
SERVE: Final = "transformers serve"
OWN: Final = "own server"
# Why these kinds of call are not served by `transformers serve`: what was seen of 5.24.
NOT_SERVED: Final[Mapping[str, str]] = {
    "stop string": "it leaves the stop string in the text and counts it, so nothing is cut off",
    "stream without usage": "it sends usage at the end of every stream, asked or not",
    "aborted stream": "it ends its engine by an exception, so how much was computed is unknown and a recount has to do",
    "padded batch": "it answers one call after the other",
    "several choices": "it ignores `n`",
    "refused, failed, retry": "it has no limit at which it would turn a call away",
}
START_S = 90.0
CALLS_S = 120.0
STOP_S = 20.0
_NO_ENVIRONMENT: Mapping[str, str] = {}
_BOTH: Final = (Direction.INPUT, Direction.OUTPUT)
_REFUSED: Final = frozenset({"refused", "failed"})
# What explains the difference that each kind of call is made for, per server and direction; none: the sides agree.
EXPECTED: Final[Mapping[tuple[str, str], tuple[str | None, str | None]]] = {
    (SERVE, "plain"): (None, None),
    (SERVE, "stop string"): (None, None),
    (SERVE, "end token"): (None, None),
    (SERVE, "stream"): (None, None),
    (SERVE, "aborted stream"): ("aborted", "aborted"),
    (SERVE, "known by its answer"): (None, None),
    (OWN, "plain"): (None, None),
    (OWN, "stop string"): (None, "stop_trimmed"),
    (OWN, "stream"): (None, None),
    (OWN, "stream without usage"): ("usage_missing", "usage_missing"),
    (OWN, "aborted stream"): ("aborted", "aborted"),
    (OWN, "several choices"): (None, None),
    (OWN, "padded batch"): ("padding_counted", None),
    (OWN, "refused"): (None, None),
    (OWN, "failed"): (None, None),
    (OWN, "retry"): (None, None),
    (OWN, "known by its answer"): (None, None),
}
ONLY_ALONE: Final = frozenset({(OWN, "stream"), (OWN, "known by its answer")})


class LiveError(WeighbridgeError):
    """A process of the demonstration did not do its part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One direction of one attempt: what each side says, and why they differ. Counts are tokens, None where unknown.

    Attributes:
        computed: by the engine.
        reported: by usage.
        recounted: by tokenising again what was sent and delivered, at the client.
        difference: reported - computed, or - recounted where the engine does not know; 0 - it where no usage came.
        withheld: reason -> computed tokens that were not delivered, where the engine or the server says so.
        aborted: the client went away.
    """

    server: str
    kind: str
    attempt: str
    direction: Direction
    computed: int | None
    reported: int | None
    recounted: int | None
    difference: int | None
    causes: tuple[str, ...]
    residual: int | None
    withheld: Mapping[WithheldReason, int]
    aborted: bool = False

    @property
    def explained(self) -> bool:
        """Whether it has the cause its call was made for, and no residual.

        A prompt that is the longest of its batch has no padding. What was refused has nothing to compare.
        """
        if self.residual:
            return False
        if self.kind in _REFUSED:
            return self.computed is self.reported is None and self.causes == ()
        wanted = EXPECTED[self.server, self.kind][_BOTH.index(self.direction)]
        if wanted is None or (self.difference == 0 and self.kind == "padded batch"):
            return self.difference == 0 and self.causes == ()
        return self.causes == (wanted,) and self.difference not in {0, None}

    @property
    def recount_explained(self) -> bool:
        """Whether the recount is what was computed without what was withheld; None on either side says nothing.

        Of a stream that was left early the client has got at most what the server had sent.
        """
        if self.recounted is None or self.computed is None:
            return True
        delivered = self.computed - sum(self.withheld.values())
        return self.recounted <= delivered if self.aborted else self.recounted == delivered


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What the demonstration made.

    Attributes:
        home: its installation.
        weighed: every attempt, both directions.
        reports: month -> files.
        seconds: how long it took.
        serve: the version of `transformers serve`, None where it took no part.
        left_out: why it took no part.
    """

    home: Home
    weighed: tuple[Weighed, ...]
    reports: Mapping[str, ReportFiles]
    seconds: float
    serve: str | None
    left_out: str | None

    @property
    def unexplained(self) -> list[Weighed]:
        """Rows with a residual, with another cause than the one the call was made for, or whose recount is off."""
        return [row for row in self.weighed if not (row.explained and row.recount_explained)]


def missing_packages(names: Sequence[str] = NEEDED) -> list[str]:
    """The packages a live demonstration needs and that are not installed."""
    return [name for name in names if find_spec(name) is None]


def live(out: Path) -> LiveResult:
    """Serve, call, seal, ingest, reconcile and report.

    Args:
        out: the folder of the new installation; it must be empty or not there.

    Raises:
        ConfigError: the folder is not empty, or a package is missing.
        LiveError: the product's own server did not start, or the calls failed; what they wrote stays for review.
    """
    began = time.monotonic()
    if lacking := missing_packages():
        raise ConfigError(f"a live demonstration needs {', '.join(lacking)}; install weighbridge[models,serving]")
    root = out.expanduser().absolute()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty; name a new folder for the demonstration")
    home = init_home(root, given={"title": "Live demonstration"}, env=_NO_ENVIRONMENT)
    agents = root / "agents"
    agents.mkdir(mode=0o700)
    served = _serve_and_call(agents, home.settings.key_file)
    for spool in sorted(path for path in agents.iterdir() if path.is_dir()):
        _run("weighbridge.capture.spool", "seal", spool)
    intake = Intake(day=datetime.now(tz=UTC).date())
    take_in(home, sorted(agents.glob(f"*/*{SUFFIX}")), intake)
    take_in(home, [agents / _ANSWERS], intake)
    lake = home.lake()
    months = all_months(lake)
    set_prices(home, days_of(lake, months))
    weigh(home, months)
    weighed = tuple(_weighed(home, served.calls))
    reports = write_reports(home, months)
    return LiveResult(home, weighed, reports, time.monotonic() - began, served.version, served.left_out)


# -- the processes -----------------------------------------------------------------------------------------------------

_ANSWERS: Final = "answers.jsonl"


@dataclass(frozen=True, slots=True)
class _Served:
    """What the client says of its calls, and which `transformers serve` took part, or why none did."""

    calls: list[dict[str, str]]
    version: str | None
    left_out: str | None


def _serve_and_call(agents: Path, key_file: Path) -> _Served:
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
        said = _run("weighbridge.capture.demo_client", agents / "client", key_file, agents / _ANSWERS, *ports)
        for server in (own, serve):
            if server is not None:
                server.process.terminate()  # both at once; they are waited for at the end of the block
    calls = [json.loads(line) for line in said.splitlines()]
    return _Served(calls, None, why) if told is None else _Served(calls, str(told["version"]), None)


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


def _run(module: str, *arguments: object) -> str:
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


# -- what came of it ---------------------------------------------------------------------------------------------------

_KEY: Final = ("attempt_hi", "attempt_lo")
_WITHHELD: Final = {
    "withheld_end_token": WithheldReason.END_TOKEN,
    "withheld_stop_trimmed": WithheldReason.STOP_TRIMMED,
    "withheld_aborted": WithheldReason.ABORTED,
}


def _weighed(home: Home, calls: Sequence[Mapping[str, str]]) -> Iterator[Weighed]:
    lake = home.lake()
    causes: dict[tuple[int, int, str], list[str]] = {}
    for row in lake.scan("gap_cause").collect().iter_rows(named=True):
        causes.setdefault((row["attempt_hi"], row["attempt_lo"], row["direction"]), []).append(row["cause"])
    rows = {
        (row["attempt_hi"], row["attempt_lo"], row["direction"]): row
        for row in lake.scan("reconciled").collect().iter_rows(named=True)
    }
    # Engine, server and client each know other columns of an attempt.
    known = pl.col("input_computed", "output_computed", "input_recounted", "output_recounted", *_WITHHELD).max()
    aborted = (pl.col("status") == "aborted").any().alias("aborted")
    sides = {
        (row["attempt_hi"], row["attempt_lo"]): row
        for row in lake.scan("attempt").group_by(_KEY).agg(known, aborted).collect().iter_rows(named=True)
    }
    for call in calls:
        key = AttemptKey.from_hex(call["attempt"]) if "attempt" in call else _met(home, call["response"])
        for direction in _BOTH:
            found = rows.get((*key, direction))
            if found is None:
                raise LiveError(f"attempt {key.to_hex()} was sent and is in nobody's file; keep {home.root} for review")
            side = sides[key]
            withheld = {reason: side[name] for name, reason in _WITHHELD.items() if side[name]}
            yield Weighed(
                server=call["server"],
                kind=call["kind"],
                attempt=key.to_hex(),
                direction=direction,
                computed=side[f"{direction}_computed"],
                reported=found["reported"],
                recounted=side[f"{direction}_recounted"],
                difference=found["gap"],
                causes=tuple(sorted(causes.get((*key, direction), []))),
                residual=found["residual"],
                withheld=withheld if direction is Direction.OUTPUT else {},
                aborted=side["aborted"],
            )


def _met(home: Home, response: str) -> AttemptKey:
    """The attempt that is known by the id of its answer."""
    hashed = alias_key(home.key, ForeignIdKind.PROVIDER_RESPONSE_ID, "", response)
    same = (pl.col("alias_hi") == hashed.hi) & (pl.col("alias_lo") == hashed.lo)
    found = home.lake().scan("alias").filter(same).select(_KEY).unique().collect().rows()
    if len(found) != 1:
        raise LiveError(f"{len(found)} attempts are known by the answer {response}; keep {home.root} for review")
    return AttemptKey(*found[0])


def as_frame(rows: Sequence[Weighed]) -> pl.DataFrame:
    """Per server, kind of call and direction: attempts, tokens of each side, and the causes of the difference.

    `withheld` says which tokens a recount cannot find because they were computed and not delivered.
    """
    frame = pl.DataFrame(
        [
            {
                "server": row.server,
                "kind": row.kind,
                "direction": row.direction,
                "computed": row.computed,
                "reported": row.reported,
                "recounted": row.recounted,
                "difference": row.difference,
                "causes": list(row.causes),
                "withheld": [f"{reason}" for reason in row.withheld],
                "residual": row.residual,
            }
            for row in rows
        ],
        schema={
            **dict.fromkeys(("server", "kind", "direction"), pl.String),
            **dict.fromkeys(("computed", "reported", "recounted", "difference"), pl.Int64),
            **dict.fromkeys(("causes", "withheld"), pl.List(pl.String)),
            "residual": pl.Int64,
        },
    )
    grouped = frame.group_by("server", "kind", "direction", maintain_order=True)
    return grouped.agg(
        pl.len().cast(pl.Int64).alias("attempts"),
        *(_total(name) for name in ("computed", "reported", "recounted", "difference")),
        *(pl.col(name).explode().drop_nulls().unique().sort().str.join(", ") for name in ("causes", "withheld")),
        _total("residual"),
    )


def _total(name: str) -> pl.Expr:
    """The sum of what is known, null where nothing is."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
