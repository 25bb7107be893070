"""What Prefect is told before anybody imports it: to report to nobody, and to give a slow machine time to start."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

# The server's telemetry has a switch of its own; the other one is that of the client.
SILENT = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
_UNLESS_SET = {
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # A temporary server starts within seconds, but not within Prefect's own limit where the machine is busy.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
}
# Any of these says that somebody has set Prefect up.
_CHOSEN = ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE")


def hush(env: MutableMapping[str, str] | None = None) -> None:
    """Turn analytics off on both sides, whatever the environment says; the rest is left where it is set."""
    env = os.environ if env is None else env
    env.update(SILENT)
    for name, value in _UNLESS_SET.items():
        env.setdefault(name, value)


def settle(state: Path, env: MutableMapping[str, str] | None = None, profiles: Path | None = None) -> bool:
    """For a trial without a server: keep Prefect's own files inside the installation.

    Args:
        state: the folder of the installation's state.
        env: the environment; the process's own where null.
        profiles: where Prefect keeps what was set up with its command line.

    Returns:
        Whether a temporary server is used, since nobody has named one.
    """
    env = os.environ if env is None else env
    profiles = profiles or Path.home() / ".prefect" / "profiles.toml"
    if any(env.get(name) for name in _CHOSEN) or profiles.exists():
        return not env.get("PREFECT_API_URL") and not profiles.exists()
    folder = state / "prefect"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    env["PREFECT_HOME"] = str(folder)
    return True
