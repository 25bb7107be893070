"""What a module of `commands/` declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import typer

SET_UP = "Set up"
WEIGH = "Weigh"
LOOK = "Look"
CHECK = "Check"
KEEP = "Keep and erase"
PANELS = (SET_UP, WEIGH, LOOK, CHECK, KEEP)


@dataclass(frozen=True, slots=True)
class Command:
    """A verb of the command line.

    Attributes:
        name: as it is typed.
        run: the function (it returns an exit code, and its docstring is the help), or a group of such.
        panel: the group it is listed under.
        order: its place in that group.
    """

    name: str
    run: Callable[..., int] | typer.Typer
    panel: str
    order: int = 0
