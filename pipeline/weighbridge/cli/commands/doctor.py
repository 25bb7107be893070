"""`weighbridge doctor`: what is right and wrong with the installation."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime

import typer

from weighbridge.cli.command import CHECK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import begin


def doctor(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """Examine settings, key, lake, prices and the machine.

    Changes nothing. Exit 1 where something is wrong; a notice is worth knowing and no problem.
    """
    from weighbridge.pipeline.run.doctor import examine, healthy

    session = begin(ctx, config, log_level)
    checks = examine(session.config, os.environ, today=datetime.now(UTC).date())
    if as_json:
        write_json({"healthy": healthy(checks), "checks": [asdict(check) for check in checks]})
    else:
        write_table(["check", "health", "found", "what to do"], [list(asdict(check).values()) for check in checks])
        counts = Counter(str(check.health) for check in checks)
        write_line(f"\n{counted(counts['problem'], 'problem')}, {counted(counts['notice'], 'notice')}")
    return CLEAN if healthy(checks) else FINDINGS


COMMAND = Command("doctor", doctor, CHECK, order=1)
