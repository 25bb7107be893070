"""A run that failed: those who are to know are told, as the settings say under `[alerts]`.

Told is which flow, which run and how it ended; never what an exception said. It does not touch the lake, which may be
what failed.
"""

from __future__ import annotations

import logging
import os
import re
from datetime import datetime
from pathlib import Path

from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.pipeline.baseline.webhook import Delivery, post
from weighbridge.pipeline.run.home import Home
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.tables import NAME

_log = logging.getLogger("weighbridge.run")
CODE = "run_failed"
METRIC = "weighbridge_run_failed_timestamp_seconds"
_CURE = (
    "Look at the run in Prefect, mend what its last message names, and run it again: it goes on where it stopped. "
    "Where a gate refused, `weighbridge findings ls` says why."
)


def run_failed(home: Home, *, flow: str, run: str, state: str, now: datetime) -> Delivery:
    """Post that a run failed, and write when into a file beside that of the baselines, for Prometheus.

    What cannot be sent is logged and told; nothing is raised for it.

    Args:
        home: the installation.
        flow: the name of the flow.
        run: the id of the run.
        state: how it ended: Failed, Crashed, TimedOut.
        now: when, with its zone.
    """
    policy = AlertPolicy.of(home.settings.alerts)
    finding = Finding(
        code=CODE,
        severity=Severity.ERROR,
        period=f"{now:%Y-%m}",
        subject={"flow": _word(flow), "run": _word(run), "state": _word(state)},
        rows=1,
        unit="runs",
        cure=_CURE,
        first_day=now.date(),
        last_day=now.date(),
    )
    if policy.textfile is not None:
        path = policy.textfile.with_name(f"{policy.textfile.stem}_runs{policy.textfile.suffix}")
        try:
            _write(path, _word(flow), now)
        except OSError as error:
            _log.warning("%s cannot be written (%s); make its folder, or name another", path, error.strerror)
    return post([finding], policy, kind=CODE)


def _word(text: str) -> str:
    """A name as it may be told: anything that is none is left out."""
    return text if re.fullmatch(NAME, text) else "unnamed"


def _write(path: Path, flow: str, now: datetime) -> None:
    """Set the time of this flow and leave the others; a file that cannot be read is begun anew."""
    kept: dict[str, str] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            found = re.fullmatch(rf'{METRIC}{{flow="([^"]*)"}} (\d+)', line)
            if found:
                kept[found[1]] = found[2]
    except (OSError, UnicodeDecodeError):
        kept = {}
    kept[flow] = str(int(now.timestamp()))
    lines = [
        f"# HELP {METRIC} When a run of this flow failed last.",
        f"# TYPE {METRIC} gauge",
        *(f'{METRIC}{{flow="{name}"}} {at}' for name, at in sorted(kept.items())),
    ]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.chmod(0o644)  # the collector runs as another user
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
