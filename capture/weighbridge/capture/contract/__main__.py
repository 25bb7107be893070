"""`python -m weighbridge.capture.contract PACKAGE.MODULE:ENGINE`: prints the report; exit 1 where it is not proved."""

from __future__ import annotations

import argparse
import importlib
import sys

from weighbridge.capture.contract import prove


def main(arguments: list[str] | None = None) -> int:
    """Prove one engine; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m weighbridge.capture.contract", description=__doc__)
    parser.add_argument("engine", help="a subclass of contract.Engine, as package.module:Name")
    told = parser.parse_args(arguments).engine
    module, _, name = told.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        parser.error(f"{told} cannot be loaded ({type(error).__name__}); name it as package.module:Name")
    report = prove(made())
    sys.stdout.write(report.text())
    return 0 if report.proved else 1


if __name__ == "__main__":
    raise SystemExit(main())
