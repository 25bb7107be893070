"""An installation: the folder with its settings, its pseudonym key, its lake and its reports.

<home>/
    weighbridge.toml        settings; every knob is named in it
    keys/pseudonym.key      64 hexadecimal digits, mode 0600: whoever has it can tell names from pseudonyms
    lake/                   the tables
    reports/                what people open
    spool/                  sealed segments wait here
    state/                  which run is at work, and how far the last one came; may be lost
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.settings import FILE, Settings, document, find_config, load
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import key_id

KEY_FILE = "keys/pseudonym.key"
SPOOL = "spool"
STATE = "state"
COMPARISONS = "comparisons"
NOTHING: Mapping[str, object] = {}
_KEY_BYTES = 32
_KEY_TEXT = re.compile(r"[0-9a-f]{32,128}")


@dataclass(frozen=True, slots=True)
class Home:
    """One installation, opened.

    Attributes:
        root: the folder of its settings file.
        settings: every knob, resolved.
        key: the pseudonym key, 16 to 64 bytes. Never printed.
    """

    root: Path
    settings: Settings
    key: bytes

    def __repr__(self) -> str:
        """The folder and the public name of the key; never the key."""
        return f"Home(root={str(self.root)!r}, key_id={self.key_id!r})"

    @property
    def key_id(self) -> str:
        """The public name of the pseudonym key."""
        return key_id(self.key)

    @property
    def reports(self) -> Path:
        """Where reports are written."""
        return self.settings.reports

    @property
    def spool(self) -> Path:
        """Where sealed segments wait."""
        return self.root / SPOOL

    @property
    def state(self) -> Path:
        """Where runs note what they are about; made when it is needed."""
        return self.root / STATE

    def lake(self) -> Lake:
        """The lake, opened.

        Raises:
            LakeError: there is none at the place the settings name.
        """
        return Lake.open(self.settings.lake)


def init_home(
    path: Path,
    *,
    key: bytes | None = None,
    given: Mapping[str, object] = NOTHING,
    env: Mapping[str, str] | None = None,
) -> Home:
    """Make an installation in the folder `path`, or complete one; what is there already is left as it is.

    Args:
        path: the folder; made with mode 0700 if it is not there.
        key: the pseudonym key (16 to 64 bytes); drawn from the system's random source if null.
        given: settings to write into a new settings file, by name; the others stay at their default.
        env: the environment; the process's own where null.

    Raises:
        ConfigError: `path` is a file, it holds another key than the one given, or the key of a lake with rows is lost.
    """
    root = path.expanduser().absolute()
    if root.exists() and not root.is_dir():
        raise ConfigError(f"{root} is a file; name a folder for the installation")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (root / FILE).exists():
        (root / FILE).write_text(document({"key_file": KEY_FILE, **given}), encoding="utf-8")
    settings = load(root / FILE, env)
    if not settings.key_file.exists():
        _check_unkeyed(settings)
        _write_key(settings.key_file, key or secrets.token_bytes(_KEY_BYTES))
    elif key is not None and key != read_key(settings.key_file):
        raise ConfigError(
            f"{settings.key_file} holds another key than the one given; rows of two keys do not match. "
            "Choose an empty folder, or leave the key out."
        )
    for folder in (settings.reports, root / SPOOL):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    Lake.create(settings.lake)
    return open_home(settings)


def open_home(where: Path | Settings, *, env: Mapping[str, str] | None = None) -> Home:
    """Open the installation at a folder or settings file, or the one that resolved settings describe.

    Raises:
        ConfigError: there is no settings file, it cannot be used as written, or the key file is missing, malformed
            or readable by others.
    """
    env = os.environ if env is None else env
    settings = where if isinstance(where, Settings) else load(find_config(where, env), env)
    return Home(settings.folder, settings, read_key(settings.key_file))


def read_key(path: Path) -> bytes:
    """The pseudonym key in the file `path`.

    Raises:
        ConfigError: the file is missing, holds no key, or others may read it.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise ConfigError(
            f"there is no key file {path}; `weighbridge init` makes one. If this lake has rows already, restore the "
            "key they were written with, or new rows will not match them."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as a key file ({type(error).__name__}); restore it") from None
    if mode & 0o077:
        raise ConfigError(f"others may read {path} (mode {mode & 0o777:04o}); run `chmod 600 {path}`")
    if not _KEY_TEXT.fullmatch(text) or len(text) % 2:
        raise ConfigError(f"{path} holds no key: 32 to 128 hexadecimal digits are expected; restore it from a backup")
    return bytes.fromhex(text)


def _check_unkeyed(settings: Settings) -> None:
    """A lake that has rows is never given a second key."""
    if Lake.create(settings.lake).rows("segment"):
        raise ConfigError(
            f"{settings.key_file} is gone, and {settings.lake} has rows that were written with it; a new key would not "
            "match them. Restore the key file from a backup, or start with an empty folder."
        )


def _write_key(path: Path, key: bytes) -> None:
    if not 16 <= len(key) <= 64:
        raise ConfigError(f"a pseudonym key has 16 to 64 bytes, this one has {len(key)}; give one of 32")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
