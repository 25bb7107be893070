"""What every adapter is: a name, a framework, the versions it was run with, and one `install`.

Importing an adapter's module loads no framework. `install` touches the framework for as long as the `Installed` it
returns is not removed, and `remove` puts back exactly what was there. Outside the versions it was run with an adapter
records only what is certain whatever the version, and a gap `unsupported_version` says so.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from weighbridge.schemas.enumerations import GapReason

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


class Installed:
    """What an adapter put into a framework. Also a context manager; `remove` may be called more than once."""

    def __init__(self, *, supported: bool) -> None:
        self.supported = supported
        self._undo: list[Callable[[], object]] = []

    def undo(self, step: Callable[[], object]) -> None:
        """Add a step of removal; the last one added runs first."""
        self._undo.append(step)

    def remove(self) -> None:
        """Put back what was there."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Installed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def put_attribute(installed: Installed, target: object, name: str, value: object) -> None:
    """Set an attribute of an instance so that removal leaves the instance as it was.

    What was put over it by somebody else in the meantime is left alone.
    """
    there = vars(target)
    had = name in there
    before = there.get(name)
    there[name] = value

    def back() -> None:
        if there.get(name) is not value:
            return
        if had:
            there[name] = before
        else:
            del there[name]

    installed.undo(back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter.

    Attributes:
        name: name of its module.
        framework: the distribution it watches.
        first, below: versions it was run with: `first` and later, before `below`.
        install: puts it into the framework.
    """

    name: str
    framework: str
    first: str
    below: str
    install: Callable[..., Installed]

    def version(self) -> str | None:
        """The installed version of the framework, None where it is not installed. Loads nothing."""
        try:
            return importlib.metadata.version(self.framework)
        except importlib.metadata.PackageNotFoundError:
            return None

    def supports(self, version: str | None) -> bool:
        """Whether `version` is among those it was run with."""
        return version is not None and _order(self.first) <= _order(version) < _order(self.below)

    def admit(self, recorder: Recorder, version: str | None = None) -> bool:
        """Whether the present version is one it was run with; if not, the gap is counted (no attempt is lost by it).

        The recorder is told that a hook is there: one that nothing ever runs through is a gap at its end.
        """
        recorder.hooks.add(self.name)
        if self.supports(version or self.version()):
            return True
        recorder.losses.count(GapReason.UNSUPPORTED_VERSION, attempts=0)
        return False


def _order(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    numbers = () if found is None else tuple(int(part) for part in found.group().split("."))
    return (*numbers, 0, 0, 0)[: max(3, len(numbers))]


def adapters() -> dict[str, Adapter]:
    """Every adapter of this folder by name: each module but this one declares an `ADAPTER`.

    Raises:
        TypeError: a module declares none.
    """
    package: Any = importlib.import_module("weighbridge.capture.adapters")
    found: dict[str, Adapter] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if info.name == "adapter" or info.name.startswith("_"):
            continue
        member = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "ADAPTER", None)
        if not isinstance(member, Adapter):
            raise TypeError(f"{package.__name__}.{info.name} declares ADAPTER = {member!r}; an Adapter is wanted")
        found[info.name] = member
    return found
