"""One run of the command line: its settings and its log."""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.pipeline.run.failure import PROGRESS
from weighbridge.pipeline.settings import LOG_LEVELS, Settings, find_config, load
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.run.home import Home


_log = logging.getLogger("weighbridge.cli")


@dataclass(slots=True)
class Session:
    """What was said before the verb; a verb's own options go before it."""

    config: Path | None = None
    log_level: str | None = None

    @property
    def debug(self) -> bool:
        """Whether a crash shows where it happened."""
        return self.log_level == "debug"


def session_of(ctx: typer.Context) -> Session:
    """The session of this run."""
    root = ctx.find_root()
    if not isinstance(root.obj, Session):
        root.obj = Session()
    return root.obj


def begin(ctx: typer.Context, config: Path | None, log_level: str | None) -> Session:
    """Take up what a verb was given, and start the log at the level asked for.

    Raises:
        ConfigError: there is no such level.
    """
    session = session_of(ctx)
    session.config = config or session.config
    session.log_level = log_level or session.log_level
    if session.log_level:
        start_log(session.log_level)
    return session


def settings_of(
    ctx: typer.Context, config: Path | None, log_level: str | None, given: Mapping[str, object] | None = None
) -> Settings:
    """The settings of this run, resolved from file, environment and options; starts the log.

    Raises:
        ConfigError: there is no settings file, or it cannot be used as written.
    """
    session = begin(ctx, config, log_level)
    settings = load(find_config(session.config, os.environ), given={"log_level": session.log_level, **(given or {})})
    session.log_level = settings.log_level
    start_log(settings.log_level)
    for name, origin in settings.origins.items():
        if origin != "default":
            _log.debug("setting %s from %s", name, origin)
    return settings


def home_of(
    ctx: typer.Context, config: Path | None, log_level: str | None, given: Mapping[str, object] | None = None
) -> Home:
    """The installation this run is about, opened."""
    from weighbridge.pipeline.run.home import open_home

    return open_home(settings_of(ctx, config, log_level, given))


def spent() -> str:
    """What this process has used up to now: CPU seconds of all its threads, and memory at its highest."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return f"{used.ru_utime + used.ru_stime:.1f} CPU seconds, {used.ru_maxrss / 1024:.0f} MiB at most"


def start_log(level: str) -> None:
    """Log what Weighbridge does to standard error. Messages hold names, counts and paths, never text of the data.

    Raises:
        ConfigError: there is no such level.
    """
    if level not in LOG_LEVELS:
        raise ConfigError(f"--log-level is {level!r}; allowed is {', '.join(LOG_LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    log = logging.getLogger("weighbridge")
    log.handlers[:] = [handler]  # one, on the standard error of now
    log.setLevel(level.upper())


def show_progress() -> None:
    """Where a person waits at a terminal, say which step begins; a log that is kept says it at the level info."""
    logging.getLogger(PROGRESS).setLevel(logging.INFO if sys.stderr.isatty() else logging.NOTSET)


def user_name() -> str:
    """The user of this system, in the letters a name may have."""
    from weighbridge.pipeline.run.changes import user

    return user()
