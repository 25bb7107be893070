"""Verbs of `weighbridge compare` for people who judge answers: `sheet` and `verdicts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.commands import _comparison
from weighbridge.cli.commands.content import Keys, given
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import home_of

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
Raters = Annotated[
    list[str] | None,
    typer.Option("--rater", metavar="NAME", help="Who filled a file in, once for each file and in their order."),
]
OfStrategy = Annotated[str, typer.Option("--strategy", metavar="NAME", help="Whose answers, beside the baseline's.")]


def sheet(
    ctx: typer.Context,
    folder: RunArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder; it will hold texts in clear.")],
    strategy: OfStrategy,
    most: Annotated[int | None, typer.Option("--most", min=1, help="Items at most.")] = None,
    content_keys: Keys = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """A blinded sheet for people: two answers to each prompt, A and B, shuffled, as CSV, workbook and local page.

    Nobody who reads it can tell which answer is whose. Its files hold prompts and answers in clear (mode 0600).
    """
    from weighbridge.pipeline.run.comparing import sheet as write

    for path in write(home_of(ctx, config, log_level, given(content_keys)), folder, strategy, out, most):
        write_line(str(path))
    write_line("Next: weighbridge compare verdicts RUN FILE... --strategy NAME")
    return CLEAN


def verdicts(
    ctx: typer.Context,
    folder: RunArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Sheet or saved page, one per rater.")],
    strategy: OfStrategy,
    margin: Annotated[
        float, typer.Option("--loss", min=0.001, max=1, help="Tolerated preference for the baseline.")
    ] = 0.1,
    rater: Raters = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Read verdicts on a blinded sheet back: whom people prefer, whether they agree, and what that says.

    Exit 1 where the strategy is worse.
    """
    from weighbridge.pipeline.run.comparing import read_back
    from weighbridge.schemas.enumerations import Judgement

    found = read_back(home_of(ctx, config, log_level), folder, strategy, files, margin, rater or ())
    if as_json:
        write_json(_comparison.told_of_verdicts(found))
    else:
        _comparison.write_verdicts(found, strategy)
    return FINDINGS if found.judgement is Judgement.WORSE else CLEAN
