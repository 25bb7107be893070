"""The live demonstration: real chat attempts on a tiny random model, weighed at the engine and at the client.

Two servers and a client run as processes of their own on loopback, each under the agent, and meet only in the files
they leave: `transformers serve` for the calls it can answer, and a small server of the product's own around
`generate()` for those it cannot, or for all where the former cannot run. The spools are sealed, ingested and
reconciled like any other; attempts meet through the id in the header, or through the id of the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl

from weighbridge.pipeline.ingest.keys import alias_key
from weighbridge.pipeline.report.report import ReportFiles
from weighbridge.pipeline.run.home import Home, init_home
from weighbridge.pipeline.run.live_calls import BOTH, Weighed
from weighbridge.pipeline.run.live_servers import ANSWERS, LiveError, missing_packages, run_module, serve_and_call
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh, write_reports
from weighbridge.schemas.enumerations import Direction, ForeignIdKind, WithheldReason
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import SUFFIX

_NO_ENVIRONMENT: Mapping[str, str] = {}
_KEY: Final = ("attempt_hi", "attempt_lo")
_WITHHELD: Final = {
    "withheld_end_token": WithheldReason.END_TOKEN,
    "withheld_stop_trimmed": WithheldReason.STOP_TRIMMED,
    "withheld_aborted": WithheldReason.ABORTED,
}


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
    served = serve_and_call(agents, home.settings.key_file)
    for spool in sorted(path for path in agents.iterdir() if path.is_dir()):
        run_module("weighbridge.capture.spool", "seal", spool)
    intake = Intake(day=datetime.now(tz=UTC).date())
    take_in(home, sorted(agents.glob(f"*/*{SUFFIX}")), intake)
    take_in(home, [agents / ANSWERS], intake)
    lake = home.lake()
    months = all_months(lake)
    set_prices(home, days_of(lake, months))
    weigh(home, months)
    weighed = tuple(_weighed(home, served.calls))
    reports = write_reports(home, months)
    return LiveResult(home, weighed, reports, time.monotonic() - began, served.version, served.left_out)


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
        for direction in BOTH:
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
