"""The console script, and `python -m weighbridge.cli`. Says what is missing where only the base is installed."""

from __future__ import annotations

import sys

NEEDED = frozenset({"typer", "rich"})


def run() -> None:
    """Run the command line of this process; leaves it with an exit code."""
    try:
        from weighbridge.cli.main import run as go
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.stderr.write(
            f"weighbridge: the command line needs the package {error.name}, which a serving process does without; "
            'install it with `pip install "weighbridge[pipeline,report]"`\n'
        )
        sys.exit(2)
    go()


if __name__ == "__main__":
    run()
