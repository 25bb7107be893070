"""How a growing folder finds its members: one module, one declared object, no registry."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def declared(folder: ModuleType, name: str, kind: type[T]) -> dict[str, T]:
    """Every module of `folder` (a package) that declares `name`, by module name, in alphabetical order.

    Raises:
        TypeError: a module of the folder declares no `name`, or one that is not a `kind`. Modules whose name starts
            with an underscore are passed over.
    """
    found: dict[str, T] = {}
    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        member = getattr(module, name, None)
        if not isinstance(member, kind):
            raise TypeError(
                f"{module.__name__} declares {name} = {member!r}; "
                f"every module of this folder declares one {kind.__name__}"
            )
        found[info.name] = member
    return found
