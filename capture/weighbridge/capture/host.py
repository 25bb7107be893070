"""Settings of an agent in a process that is not ours: a server that loads it by name has no line of ours to start it.

`WEIGHBRIDGE_CAPTURE` names a TOML file:

    spool = "/var/spool/weighbridge"
    installation = "gpu-1"                        # recorders are named after it: gpu-1-engine, gpu-1-server
    key_file = "/etc/weighbridge/pseudonym.key"   # the lake's key: 16 to 64 bytes
    policy = "/etc/weighbridge/policy.json"       # optional, as all below: levels, see `capture.policy`
    id_keys = "/etc/weighbridge/keys"             # token ids of level 2 are encrypted under these
    tenant_header = "x-tenant"                    # a gateway sets it; it is believed
    model = "my-model"                            # where the engine's own name of it may not stand in clear
    token_ids = true                              # ask the engine for the ids of what it answers, to count them

Without the variable nothing is recorded, and nothing is said. A file that cannot be used is said once, in the log of
`weighbridge.capture`; the server runs on without a record.
"""

from __future__ import annotations

import os
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weighbridge.capture.guard import report
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.limits import Limits
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

VARIABLE: Final = "WEIGHBRIDGE_CAPTURE"
_NEEDED: Final = {"spool": str, "installation": str, "key_file": str}
_MAY: Final = {"policy": str, "id_keys": str, "tenant_header": str, "model": str, "token_ids": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the file says. Paths are as they stand there; `key` is the content of the key file."""

    spool: Path
    installation: str
    key: bytes
    policy: Path | None = None
    id_keys: Path | None = None
    tenant_header: str | None = None
    model: str | None = None
    token_ids: bool = True

    @classmethod
    def read(cls, path: Path) -> Host:
        """Read a file.

        Raises:
            ConfigError: names the file, the setting that is wrong, and what is allowed.
        """
        try:
            with path.open("rb") as file:
                told = tomllib.load(file)
        except (OSError, tomllib.TOMLDecodeError) as error:
            why = type(error).__name__
            raise ConfigError(f"{path} cannot be read as TOML ({why}); mend it or unset {VARIABLE}") from error
        _check(path, told)
        try:
            key = Path(told["key_file"]).read_bytes()
        except OSError as error:
            why = type(error).__name__
            raise ConfigError(f"{path}: key_file cannot be read ({why}); copy the lake's key there") from error
        return cls(
            spool=Path(told["spool"]),
            installation=told["installation"],
            key=key,
            policy=_path(told, "policy"),
            id_keys=_path(told, "id_keys"),
            tenant_header=told.get("tenant_header"),
            model=told.get("model"),
            token_ids=told.get("token_ids", True),
        )

    def recorder(self, part: str, *, limits: Limits | None = None, rank: int | None = None) -> Recorder:
        """Start the recorder of one part of this process, such as `engine` or `server`; its role is the part's name.

        Raises:
            ConfigError: a name or key that cannot be used.
        """
        return Recorder.start(
            self.spool,
            installation=f"{self.installation}-{part}",
            key=self.key,
            limits=limits,
            policy_file=self.policy,
            keys=None if self.id_keys is None else KeyFolder(self.id_keys),
            role=part,
            rank=rank,
        )


_lock = threading.RLock()
_read: dict[str, Host | None] = {}


def host(environment: Mapping[str, str] = os.environ) -> Host | None:
    """The settings the environment names; None where it names none, or a file that cannot be used, which is said."""
    named = environment.get(VARIABLE)
    if not named:
        return None
    with _lock:
        if named not in _read:
            try:
                _read[named] = Host.read(Path(named))
            except ConfigError as error:
                _read[named] = None
                report(error, f"settings named by {VARIABLE}")
        return _read[named]


def _check(path: Path, told: Mapping[str, Any]) -> None:
    allowed = {**_NEEDED, **_MAY}
    unknown = sorted(set(told) - set(allowed))
    if unknown:
        raise ConfigError(f"{path}: unknown setting {unknown[0]!r}; allowed are {', '.join(allowed)}")
    for name, kind in allowed.items():
        if name in _NEEDED and name not in told:
            raise ConfigError(f"{path}: {name} is missing; a recorder needs {', '.join(_NEEDED)}")
        if name in told and not isinstance(told[name], kind):
            raise ConfigError(f"{path}: {name} must be a {'boolean' if kind is bool else 'string'}")
    for name in ("installation", "model"):
        if name in told and not NAME.fullmatch(told[name]):
            raise ConfigError(f"{path}: {name} must match {NAME.pattern}")


def _path(told: Mapping[str, Any], name: str) -> Path | None:
    return Path(told[name]) if name in told else None
