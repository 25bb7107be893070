"""What the command line costs before it does anything, beside an empty one of the same library.

    python benchmarks/startup.py [--repeats N]

CPU seconds (user and system) of whole processes, the least of the repeats, interleaved. `bare` is a command line with
the same library that has one group of two verbs and prints its help. Exit code 0: both limits hold; 1: not.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys

BARE = """
import sys, typer
app, group = typer.Typer(), typer.Typer()
app.add_typer(group, name="findings")
@group.command()
def ls(limit: int = typer.Option(0, help="How many.")) -> None: "List."
@group.command()
def show() -> None: "Show."
app(sys.argv[1:])
"""
OURS = "from weighbridge.cli.main import run; import sys; run(sys.argv[1:])"
ARGUMENTS = (("--help",), ("findings", "ls", "--help"))
SECONDS, RATIO = 0.5, 2.0


def cpu_s(code: str, arguments: tuple[str, ...]) -> float:
    """CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=os.environ | {"COLUMNS": "100"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    holds = True
    for arguments in ARGUMENTS:
        pairs = [(cpu_s(BARE, arguments), cpu_s(OURS, arguments)) for _ in range(repeats)]
        bare, ours = (min(column) for column in zip(*pairs, strict=True))
        good = ours <= SECONDS and ours <= RATIO * bare
        holds &= good
        mark = "ok   " if good else "WRONG"
        print(f"{mark} {' '.join(arguments)}: {ours:.3f} CPU s, {ours / bare:.2f} times the bare one's {bare:.3f}")
    print(f"limits: {SECONDS} CPU s and {RATIO} times; load {os.getloadavg()[0]:.1f}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
