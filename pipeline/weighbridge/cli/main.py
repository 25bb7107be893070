"""The command `weighbridge`: finds the verbs, runs one, and turns its outcome into an exit code.

0 clean    1 findings    2 usage    3 gate refused    70 crash    130 interrupted    141 output closed
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from weighbridge.cli import commands, exits
from weighbridge.cli.command import PANELS, Command
from weighbridge.cli.options import Config, LogLevel
from weighbridge.cli.session import begin, session_of, spent
from weighbridge.schemas.discovery import declared

_log = logging.getLogger("weighbridge.cli")


class Verbs(TyperGroup):
    """The group of all verbs: the one place where an error becomes a line and an exit code."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the verb; its return value is the exit code."""
        session = session_of(ctx)
        with exits.guarded(lambda: session.debug):
            code = super().invoke(ctx)
        _log.info("%s ended with %s; %s", ctx.invoked_subcommand, code or exits.CLEAN, spent())
        if code:
            raise typer.Exit(code)
        return code


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from weighbridge.schemas.version import SCHEMA_VERSION

        sys.stdout.write(f"weighbridge {version('weighbridge')} (vocabulary {SCHEMA_VERSION})\n")
        raise typer.Exit


def _root(
    ctx: typer.Context,
    config: Config = None,
    log_level: LogLevel = None,
    _show: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """The independent scale for LLM tokens: weigh what was served, check what was reported and billed.

    Exit codes: 0 clean, 1 findings, 2 usage, 3 gate refused, 70 crash.
    """
    begin(ctx, config, log_level)


def application() -> typer.Typer:
    """The command line with every verb of `commands/`."""
    app = typer.Typer(
        name="weighbridge", cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )
    app.callback()(_root)
    found = declared(commands, "COMMAND", Command).values()
    for command in sorted(found, key=lambda item: (PANELS.index(item.panel), item.order, item.name)):
        if isinstance(command.run, typer.Typer):
            app.add_typer(command.run, name=command.name, rich_help_panel=command.panel)
        else:
            told = _unwrapped(command.run.__doc__)
            app.command(command.name, rich_help_panel=command.panel, help=told)(command.run)
    return app


def _unwrapped(docstring: str | None) -> str:
    """The paragraphs of a docstring without its line ends, which would break lines of help in the middle."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (docstring or "").split("\n\n"))


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line of this process, with the manners of a console script; leaves it with an exit code."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # they are for us, and the text of a library's warning may quote data
    execute(arguments)


def execute(arguments: Sequence[str] | None = None) -> None:
    """Run one command line, that of the process where null; raises SystemExit with the exit code."""
    if sys.stdout is None:  # the caller closed it, as `>&-` does: what is printed goes nowhere
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process
    exits.check_text(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    typer.main.get_command(application()).main(args=arguments, prog_name="weighbridge")


if __name__ == "__main__":
    run()
