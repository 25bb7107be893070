"""Runs one piece of retention on an installation and dies at a step: `killed.py ROOT WORK STEP`.

A step is anything this process does to a file, counted by the interpreter's own audit events. Prints how many there
were; STEP -1 lets it come to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from tests.pipeline.retention.world import ACME, World, policy

from weighbridge.pipeline.retention.apply import apply
from weighbridge.pipeline.retention.erase import erase
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import Subject

TODAY = date(2026, 3, 4)
NOW = datetime(2026, 3, 4, 10, 30, tzinfo=UTC)
STEPS = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "open", "os.link", "os.chmod"}


def work(world: World, what: str) -> None:
    """Carry out a plan, or erase a tenant with its billing counts."""
    if what == "apply":
        apply(plan(world.places, policy(operations=20), TODAY), by="tester", now=NOW)
    else:
        erase(world.places, Subject(tenant=ACME), by="tester", now=NOW, billing_too=True, look=False)


def main() -> None:
    """See the module."""
    root, what, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    world = World(root)
    count = 0

    def step(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event in STEPS and arguments and str(arguments[0]).startswith(str(root)):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)
    work(world, what)
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main()
