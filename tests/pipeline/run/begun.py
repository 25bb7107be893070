"""A parent that has loaded what a night needs, and lets a child do one, a close, or retention, for every line it reads.

It reads what to do and the folder of an installation, and answers with the number of the child; it reads an empty line
and answers, once that has ended, with its exit code. Such a child dies of SIGKILL like any other process, and costs no
interpreter of its own.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import great_expectations.expectations  # noqa: F401 - a night loads it when it validates
from tests.pipeline.run.conftest import FIRST_DAY, INTAKE, LATER, MONTH, TODAY

from weighbridge.pipeline.close.pins import source_files
from weighbridge.pipeline.run import month
from weighbridge.pipeline.run.home import open_home
from weighbridge.pipeline.run.month import monthly
from weighbridge.pipeline.run.night import night
from weighbridge.pipeline.run.retain import retain
from weighbridge.pipeline.run.steps import ADJUST, PRICE, READ, RECONCILE


def a_night(root: Path) -> None:
    """Everything that a night does."""
    home = open_home(root, env={})
    night(home, [home.spool], INTAKE, today=TODAY)


def a_close(root: Path) -> None:
    """The close of a month, and before it what writes rows; validation and pages are those of a night."""
    setattr(month, "ANEW", (READ, PRICE, RECONCILE, ADJUST))  # noqa: B010 - the name is the module's own
    done = monthly(open_home(root, env={}), MONTH, by="test", now=LATER)
    assert done.close is not None
    assert done.close.closed, done.close.refused


def retention(root: Path) -> None:
    """Retention on a day when most of the month is past its time, which is over; its pages stay."""
    home = open_home(root, env={})
    days = {**home.settings.retention, "billing": (LATER.date() - FIRST_DAY).days - 2, "ids": 20}
    short = replace(home, settings=replace(home.settings, retention=days))
    retain(short, today=LATER.date(), now=LATER, by="test", accept_clock=True)


def a_later_night(root: Path) -> None:
    """The night of that day, with nothing new."""
    home = open_home(root, env={})
    night(home, [home.spool], INTAKE, today=LATER.date())


def retention_and_a_night(root: Path) -> None:
    """Both, one after the other."""
    retention(root)
    a_later_night(root)


WORK: dict[str, Callable[[Path], None]] = {
    "night": a_night,
    "close": a_close,
    "retention": retention,
    "later": a_later_night,
    "retention+night": retention_and_a_night,
}


def main() -> None:
    """See the module."""
    source_files()  # a close names the digest of its code, which may be edited while children come and go
    print("ready", flush=True)
    while asked := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            try:
                what, folder = asked.rstrip("\n").split(" ", 1)
                WORK[what](Path(folder))
            except BaseException:  # noqa: BLE001 - a child never comes back to the loop of its parent
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(child, flush=True)
        sys.stdin.readline()  # until then a child that has ended keeps its number, so that no other is killed for it
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
