"""What a night fetches itself: databases of other systems and folders of files, as `[[sources]]` of the settings name.

    [[sources]]
    name = "gateway"
    kind = "litellm"
    variable = "GATEWAY_DATABASE_URL"     # of the environment; how it is reached never stands in the file
    since = "2026-03-01"

Fetching twice changes nothing. A source that fails is a finding, by its name and the kind of failure, and the night
goes on without it; the next one fetches what is missing. Where `on_failure` says stop, the night ends there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.ingest.door import holds_files
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.run.failure import DiskFullError, refused_by_machine
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.pull import pull_rows, together
from weighbridge.pipeline.run.rooms import Intake, take_in
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError, LakeError, WeighbridgeError
from weighbridge.schemas.finding import Finding

CODE = "source_failed"
CODES = frozenset({CODE})
STOP = "stop"
_CURE = (
    "Run `weighbridge nightly` by hand, read what it says about this source and mend that; it then fetches what is "
    "missing."
)
_log = logging.getLogger("weighbridge.run")
Source = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a night fetched.

    Attributes:
        result: the accounts of all files together.
        failed: name of a source -> what is wrong with it and what to do, without any secret.
    """

    result: IngestResult
    failed: Mapping[str, str]


def fetch(
    home: Home,
    *,
    now: datetime | None = None,
    env: Mapping[str, str] | None = None,
    attempt: Callable[[Callable[[], Any]], Any] = lambda work: work(),
) -> Fetched:
    """Fetch from every source the settings name, in their order.

    Args:
        home: the installation.
        now, env: the clock and the environment; the process's own where null.
        attempt: does a piece of work, again where the lake is busy.

    Raises:
        WeighbridgeError: a source failed whose failure stops the night; the finding is written.
        LakeError, DiskFullError: the lake cannot be written; running this again finishes it.
    """
    sources: Sequence[Source] = home.settings.sources
    now = now or datetime.now(UTC)
    results: list[IngestResult] = []
    failed: dict[str, WeighbridgeError] = {}
    for source in sources:
        try:
            results.append(attempt(partial(_one, home, source, now, os.environ if env is None else env)))
        except (LakeError, DiskFullError):
            raise
        except OSError as error:
            refused = refused_by_machine(error)
            if isinstance(refused, DiskFullError):  # of this host, whatever the source
                raise refused from None
            failed[source["name"]] = refused
        except WeighbridgeError as error:
            failed[source["name"]] = error
        if source["name"] in failed:
            _log.warning("the source %s failed: %s", source["name"], failed[source["name"]])
            if source["on_failure"] == STOP:
                attempt(partial(_tell, home, sources, failed))
                raise failed[source["name"]]
    attempt(partial(_tell, home, sources, failed))
    return Fetched(together(results), {name: str(error) for name, error in failed.items()})


def _one(home: Home, source: Source, now: datetime, env: Mapping[str, str]) -> IngestResult:
    place = _place(source, env)
    names = ("importer", "mapping", "provider", "model", "tenant", "task")
    told: dict[str, Any] = {name: source.get(name) for name in names}
    intake = Intake(day=now.date(), **told)
    if source["kind"] == "litellm":
        return pull_rows(home, intake, place, label=source["name"], since=source.get("since"), now=now).result
    path = Path(place)
    if not path.exists():
        raise ConfigError(
            f"the source {source['name']} is not there: no such file or folder; mount it, or correct where the "
            "settings say it is"
        )
    return take_in(home, [path], intake) if holds_files(path) else together([])


def _place(source: Source, env: Mapping[str, str]) -> str:
    """Where a source is: its path, or what its environment variable holds, which is never shown."""
    if "path" in source:
        return str(source["path"])
    told = env.get(source["variable"], "").strip()
    if not told:
        raise ConfigError(
            f"the environment variable {source['variable']} does not say where the source {source['name']} is; set it "
            "for whoever runs the nights"
        )
    return told


def _tell(home: Home, sources: Sequence[Source], failed: Mapping[str, WeighbridgeError]) -> None:
    """Findings of the sources that failed; those of sources that were fetched, or are gone, are taken back."""
    kinds = {source["name"]: source["kind"] for source in sources}
    found = [
        Finding(
            code=CODE,
            severity=Severity.WARNING,
            period="all",
            subject={"source": name, "kind": kinds[name], "failure": type(error).__name__},
            rows=1,
            unit="sources",
            cure=_CURE,
            origin=FindingOrigin.VALIDATE,
        )
        for name, error in sorted(failed.items())
    ]
    lake = home.lake()
    mine = pl.col("code") == CODE
    if found or not lake.scan("finding", columns=["code"]).filter(mine).collect().is_empty():
        write_findings(lake, found, origin=FindingOrigin.VALIDATE, periods={"all"}, where=mine)
