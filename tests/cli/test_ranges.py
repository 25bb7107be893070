"""A range of days that ends before it begins is refused by every verb that takes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from tests.cli.conftest import Terminal

from weighbridge.cli.exits import USAGE
from weighbridge.cli.main import application

# What a verb cannot do without; everything else is checked before an installation is looked for.
NEEDED = {
    ("ingest",): ("--from", "litellm"),
    ("quarantine", "release"): ("--reason", "known"),
    ("retention", "hold"): ("--why", "file 4711"),
}


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every verb with both ends of a range."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, (*path, name))
    if {"since", "until"} <= {option.name for option in command.params}:
        yield path


RANGED = sorted(verbs(typer.main.get_command(application())))


def test_the_verbs_that_take_a_range_are_found() -> None:
    assert {("baseline", "run"), ("content", "metrics"), ("findings", "ls"), ("report",), ("validate",)} <= {*RANGED}


@pytest.mark.parametrize("verb", RANGED, ids=" ".join)
def test_a_range_that_ends_before_it_begins_is_refused(weighbridge: Terminal, verb: tuple[str, ...]) -> None:
    ran = weighbridge(*verb, *NEEDED.get(verb, ()), "--since", "2026-01-16", "--until", "2026-01-14")
    assert ran.code == USAGE
    told = " ".join(ran.err.replace("│", " ").split())
    assert "--until 2026-01-14 is before --since 2026-01-16; give the first day, then the last" in told
