"""Rows of another system's database taken in: what is new since the last time, a day at a time.

How far it came stands in the lake itself: the account of a pulled file bears the span of time in its name, and it is
written last of all. A pull that was cut off is made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from weighbridge.pipeline.ingest.importers.litellm import IMPORTER
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.ingest.litellm_table import Window, pull
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import Intake, take_in
from weighbridge.pipeline.settings import Settings
from weighbridge.schemas.errors import ConfigError

# Rows are written some time after their calls began; what is read twice changes nothing.
OVERLAP = timedelta(days=1)
# How far back rows are looked at that were changed since the last pull.
LOOKS_BACK = timedelta(days=35)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull did.

    Attributes:
        window: the span of time whose rows were asked for.
        result: the account of every file, a day each; see `ingest`.
    """

    window: Window
    result: IngestResult


def connection_of(settings: Settings, env: Mapping[str, str]) -> str:
    """How LiteLLM's database is reached: the content of the file the settings name, else of an environment variable.

    Raises:
        ConfigError: neither says.
    """
    file = settings.litellm_database_file
    if file is not None:
        try:
            told = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{file}, which the setting litellm_database_file names, cannot be read ({type(error).__name__}); "
                "put the connection string into it, and give this user alone access"
            ) from None
        if told:
            return told
        raise ConfigError(f"{file} is empty; put the connection string of LiteLLM's database into it")
    name = settings.litellm_database_variable
    told = env.get(name, "").strip() if name else ""
    if not told:
        raise ConfigError(
            f"the environment variable {name or '(none is named)'} does not say how to reach LiteLLM's database; set "
            "it to a string such as postgresql://reader@host/litellm, or name a file with it in the setting "
            "litellm_database_file"
        )
    return told


def pull_in(
    home: Home,
    intake: Intake,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
    env: Mapping[str, str] | None = None,
) -> Pulled:
    """Take in the rows of LiteLLM's SpendLogs.

    Args:
        home: the installation.
        intake: what stands in where rows do not say.
        since: the first moment; null goes on where the last pull ended, a day earlier because rows come late, and
            takes rows of the 35 days before that were changed since.
        until: the first moment that is not asked for; null, or one to come, is now.
        now, env: the clock and the environment; the process's own where null.

    Raises:
        ConfigError: nothing says how to reach the database, or from when.
        ContractError, DatabaseError: see `ingest.litellm_table`.
        LakeError: the lake cannot be written; running this again finishes it.
    """
    connection = connection_of(home.settings, os.environ if env is None else env)
    return pull_rows(home, intake, connection, since=since, until=until, now=now, always_since=True)


def pull_rows(
    home: Home,
    intake: Intake,
    connection: str,
    *,
    label: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
    always_since: bool = False,
) -> Pulled:
    """Take in the rows of a LiteLLM's SpendLogs.

    Args:
        home, intake, until, now: as for `pull_in`.
        connection: how the database is reached.
        label: which of several databases it is; each goes on where its own last pull ended.
        since: the first moment of the first pull.
        always_since: of this one too, whatever was pulled before.

    Raises:
        ConfigError: nothing says from when.
        ContractError, DatabaseError, LakeError: as for `pull_in`.
    """
    # What is still to come must not be taken for read.
    moment = (now or datetime.now(UTC)).replace(second=0, microsecond=0)
    end = moment if until is None else min(until, moment)
    last = None if since is not None and always_since else _reached(home.lake(), label)
    if since is None and last is None:
        how = "--since 2026-03-01" if label is None else f'since = "2026-03-01" of the source {label}'
        raise ConfigError(f"no rows of LiteLLM were pulled yet; say from which day on: {how}")
    begin = last - OVERLAP if last is not None else since or end
    window = Window(begin, end, label)
    results = []
    if last is not None:
        back = Window(begin - LOOKS_BACK, begin, label)
        results.append(_one(home, intake, connection, back, updated_since=last - OVERLAP))
    results += [_one(home, intake, connection, day) for day in days_of(window)]
    return Pulled(window, together(results))


def days_of(window: Window) -> Iterator[Window]:
    """The span cut at every UTC midnight: no file is larger than a day."""
    at = window.since.astimezone(UTC)
    while at < window.until:
        midnight = at.replace(hour=0, minute=0, second=0, microsecond=0) + _DAY
        yield Window(at, min(midnight, window.until), window.label)
        at = midnight


def _one(
    home: Home, intake: Intake, connection: str, window: Window, updated_since: datetime | None = None
) -> IngestResult:
    with TemporaryDirectory(prefix="pull-", dir=_place(home)) as folder:  # made for this user alone
        path = pull(connection, window, Path(folder), home.key, updated_since=updated_since)
        return take_in(home, [path], _as_litellm(intake))


def _place(home: Home) -> Path:
    home.state.mkdir(mode=0o700, exist_ok=True)
    return home.state


def _as_litellm(intake: Intake) -> Intake:
    return Intake(
        day=intake.day,
        importer=IMPORTER.name,
        provider=intake.provider,
        model=intake.model,
        tenant=intake.tenant,
        task=intake.task,
    )


def _reached(lake: Lake, label: str | None) -> datetime | None:
    """The end of the latest span that was pulled of this database; null where none was."""
    files = lake.scan("segment", columns=["importer", "name"]).filter(pl.col("importer") == IMPORTER.name).collect()
    spans = [span for name in files["name"] if (span := Window.of(name)) is not None]
    return max((span.until for span in spans if span.label == label), default=None)


def together(results: Sequence[IngestResult]) -> IngestResult:
    """Several accounts as one. Of a day that several touched the last one says how many readings it has."""
    return IngestResult(
        files=tuple(file for result in results for file in result.files),
        days=tuple(sorted({day for result in results for day in result.days})),
        readings_of={day: count for result in results for day, count in result.readings_of.items()},
    )
