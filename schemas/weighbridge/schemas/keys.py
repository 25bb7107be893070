"""Key-encrypting keys: who gives them, how they are named, how they are destroyed.

One key per (tenant, subject bucket, month, class); its name is `<tenant>.<bucket>.<month>.<class>.<version>`. Losing or
destroying a key erases exactly what was written under it, and its name is never given to another one. Three providers
ship: a local folder of key files, a command that speaks to a key service, and a root key in the environment, which
cannot erase. A key never stands in a log, an error or a journal; its name does.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

KEY_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,64}\.\d{1,3}\.\d{4}-\d{2}\.[a-z]{2,16}\.\d{1,6}")
KEY_BYTES: Final = 32
DESTROYED: Final = ".destroyed"


class KeyUnavailableError(Exception):
    """A key cannot be had. The message names the key and the provider, never a key."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """What one key covers."""

    tenant: str
    bucket: int
    month: str
    kind: str = "ids"

    def name(self, version: int) -> str:
        """The key's public name."""
        return f"{self.tenant}.{self.bucket}.{self.month}.{self.kind}.{version}"

    @classmethod
    def of(cls, name: str) -> KeyScope:
        """What the key called `name` covers.

        Raises:
            ValueError: it is no key name.
        """
        if not KEY_NAME.fullmatch(name):
            raise ValueError("this is no key name of this product")
        tenant, bucket, month, kind, _ = name.split(".")
        return cls(tenant, int(bucket), month, kind)


class KeyProvider(Protocol):
    """Four verbs. `current` makes the key if there is none yet."""

    erases: bool  # whether one key can be destroyed alone

    def current(self, scope: KeyScope) -> tuple[str, bytes]:
        """The name and the 32 bytes of the key new data of this scope is encrypted with.

        Raises:
            KeyUnavailableError: the provider cannot give one now.
        """

    def get(self, name: str) -> bytes:
        """The key called `name`.

        Raises:
            KeyUnavailableError: it does not exist (any more), or the provider cannot be reached.
        """

    def names(self) -> list[str] | None:
        """The names of all keys there are, in order; null where the provider does not tell.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """

    def destroy(self, name: str) -> bool:
        """Destroy it for good; whether it existed. Again, it does nothing.

        Raises:
            KeyUnavailableError: it could not be destroyed.
        """


class KeyFolder:
    """A folder (0700) of key files (0600), for one host or an air gap. Keep it out of the backups of the data.

    A destroyed key leaves an empty file `<name>.destroyed`, so that its version is not given again.
    """

    erases = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._cache: dict[KeyScope, tuple[str, bytes]] = {}

    def current(self, scope: KeyScope) -> tuple[str, bytes]:
        """See `KeyProvider`. The highest version that exists; the first one is made."""
        with self._lock:
            known = self._cache.get(scope)
            if known is None or self._stale(scope, known[0]):
                known = self._cache[scope] = self._newest(scope)
            return known

    def _stale(self, scope: KeyScope, name: str) -> bool:
        """Whether another process has destroyed the key, or made a later one."""
        later = self.folder / scope.name(_version(name) + 1)
        return later.exists() or not (self.folder / name).is_file()

    def _newest(self, scope: KeyScope) -> tuple[str, bytes]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held, spent = self._versions(scope)
            if held > spent:
                return scope.name(held), self.get(scope.name(held))
            return self._make(scope.name(spent + 1))
        except OSError as error:
            raise KeyUnavailableError(f"the key folder cannot be used ({error.strerror})") from error

    def _versions(self, scope: KeyScope) -> tuple[int, int]:
        """The highest version that is there and the highest that was destroyed, 0 for none."""
        prefix = scope.name(0)[:-1]
        held = spent = 0
        for path in self.folder.glob(f"{prefix}[0-9]*"):
            if path.name.endswith(DESTROYED):
                spent = max(spent, _version(path.name.removesuffix(DESTROYED)))
            else:
                held = max(held, _version(path.name))
        return held, spent

    def _make(self, name: str) -> tuple[str, bytes]:
        """Two processes may race: the first to create the file wins, the other reads it."""
        temporary = self.folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, os.urandom(KEY_BYTES))
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(temporary, self.folder / name)
        except (FileExistsError, FileNotFoundError):
            pass  # another process made it, and may even have destroyed it since
        finally:
            temporary.unlink(missing_ok=True)
        return name, self.get(name)

    def rotate(self, scope: KeyScope) -> str:
        """Make a new version for data that comes from now on; the old ones stay until they are destroyed."""
        with self._lock:
            name, _ = self._newest(scope)
            fresh, _ = made = self._make(scope.name(_version(name) + 1))
            self._cache[scope] = made
            return fresh

    def get(self, name: str) -> bytes:
        """See `KeyProvider`."""
        if not KEY_NAME.fullmatch(name):
            raise KeyUnavailableError("this is no key name of this product")
        try:
            key = (self.folder / name).read_bytes()
        except OSError as error:
            raise KeyUnavailableError(
                f"key {name} is not in the key folder: it was destroyed, or never here"
            ) from error
        if len(key) != KEY_BYTES:
            raise KeyUnavailableError(f"key {name} has {len(key)} bytes instead of {KEY_BYTES}; restore its file")
        return key

    def names(self) -> list[str]:
        """See `KeyProvider`."""
        return sorted(path.name for path in self._paths() if KEY_NAME.fullmatch(path.name))

    def destroyed(self) -> list[str]:
        """The names of the keys that were destroyed, in order."""
        told = (path.name.removesuffix(DESTROYED) for path in self._paths() if path.name.endswith(DESTROYED))
        return sorted(name for name in told if KEY_NAME.fullmatch(name))

    def _paths(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise KeyUnavailableError(f"the key folder cannot be read ({error.strerror})") from error

    def destroy(self, name: str) -> bool:
        """See `KeyProvider`. Its end is on disk before the file is overwritten, and that before it is unlinked."""
        path = self.folder / name
        if not KEY_NAME.fullmatch(name) or not path.is_file():
            return False
        try:
            (self.folder / (name + DESTROYED)).touch(mode=0o600)
            _sync(self.folder)
            with path.open("r+b") as file:
                file.write(os.urandom(KEY_BYTES))
                os.fsync(file.fileno())
            for left in self.folder.glob(f".{name}.*"):  # a second name of the same file, of a process that was killed
                left.unlink(missing_ok=True)
            path.unlink()
            _sync(self.folder)
        except OSError as error:
            raise KeyUnavailableError(f"key {name} could not be destroyed ({error.strerror})") from error
        with self._lock:
            self._cache = {scope: known for scope, known in self._cache.items() if known[0] != name}
        return True


class KeyCommand:
    """A command that speaks to a key service: `COMMAND current SCOPE`, `get NAME`, `destroy NAME`, `list`.

    `current` prints `<name> <64 hexadecimal digits>`, `get` the digits, `list` one name a line, `destroy` nothing; exit
    0 means done, for `destroy` also that the key was gone already. A service need not know `list`: it then ends with
    another code. Keys are kept in memory for the life of the process, at most 4,096 of them.
    """

    erases = True

    def __init__(self, command: Sequence[str], timeout_s: float = 10.0) -> None:
        self._command = tuple(command)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._current: dict[KeyScope, tuple[str, bytes]] = {}

    def current(self, scope: KeyScope) -> tuple[str, bytes]:
        """See `KeyProvider`."""
        with self._lock:
            known = self._current.get(scope)
        if known is None:
            words = self._run("current", scope.name(0).rsplit(".", 1)[0]).split()
            if len(words) != 2 or not KEY_NAME.fullmatch(words[0]):
                raise KeyUnavailableError("the key command's `current` must print a key name and 64 hexadecimal digits")
            known = (words[0], _key(words[1]))
            with self._lock:
                if len(self._current) >= 4096:
                    self._current.clear()
                self._current[scope] = known
        return known

    def get(self, name: str) -> bytes:
        """See `KeyProvider`."""
        return _key(self._run("get", name).strip())

    def names(self) -> list[str] | None:
        """See `KeyProvider`; null where the service does not know `list`."""
        done = self._done("list")
        return None if done.returncode else sorted(filter(KEY_NAME.fullmatch, done.stdout.split()))

    def destroy(self, name: str) -> bool:
        """See `KeyProvider`."""
        self._run("destroy", name)
        with self._lock:
            self._current.clear()
        return True

    def _run(self, verb: str, argument: str) -> str:
        done = self._done(verb, argument)
        if done.returncode:
            raise KeyUnavailableError(f"the key command's `{verb}` ended with exit code {done.returncode}")
        return done.stdout

    def _done(self, *words: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603 - the operator's own command, no shell
                [*self._command, *words], capture_output=True, timeout=self._timeout_s, check=False, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KeyUnavailableError(f"the key command failed: {type(error).__name__}") from error


class KeyEnvironment:
    """Keys derived from one root key in an environment variable (64 hexadecimal digits): HMAC-SHA-256 of their names.

    For hosts that get their secrets that way and need no erasure by key: one key cannot be destroyed alone.
    """

    erases = False

    def __init__(self, variable: str = "WEIGHBRIDGE_ROOT_KEY", environment: Mapping[str, str] = os.environ) -> None:
        self._variable = variable
        self._environment = environment

    def current(self, scope: KeyScope) -> tuple[str, bytes]:
        """See `KeyProvider`."""
        name = scope.name(1)
        return name, self.get(name)

    def get(self, name: str) -> bytes:
        """See `KeyProvider`."""
        digits = self._environment.get(self._variable, "")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
            raise KeyUnavailableError(f"the environment variable {self._variable} must hold 64 hexadecimal digits")
        return hmac.new(bytes.fromhex(digits), b"weighbridge content key " + name.encode(), hashlib.sha256).digest()

    def names(self) -> list[str] | None:
        """See `KeyProvider`: every name has a key, so there is no list of them."""
        return None

    def destroy(self, name: str) -> bool:
        """Refuse: the key would come back.

        Raises:
            KeyUnavailableError: always.
        """
        raise KeyUnavailableError(f"key {name} is derived from a root key and cannot be destroyed alone; use a folder")


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _version(name: str) -> int:
    return int(name.rsplit(".", 1)[1])


def _key(digits: str) -> bytes:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
        raise KeyUnavailableError("the key command printed no 64 hexadecimal digits")
    return bytes.fromhex(digits)
