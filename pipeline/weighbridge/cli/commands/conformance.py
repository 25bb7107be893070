"""`weighbridge conformance`: does this product read usage as it should?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import CHECK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import begin


def conformance(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.jsonl]", help="Cases, one JSON object a line. Default: the product's own."),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Run cases of usage with known answers.

    Prints PASS, the difference, or UNSUPPORTED with what is missing. Exit 1 where a case fails; an unsupported case
    is no failure.
    """
    from weighbridge.pipeline.conformance.run import OWN_CASES, run_file

    begin(ctx, config, log_level)
    results = run_file(path or OWN_CASES)
    counts = Counter(str(result.outcome) for result in results)
    if as_json:
        write_json({"outcomes": dict(sorted(counts.items())), "cases": [asdict(result) for result in results]})
    else:
        write_table(
            ["case", "outcome", "difference, or what is missing"],
            [[result.id, str(result.outcome), result.missing or "; ".join(result.differences)] for result in results],
        )
        write_line("\n" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return FINDINGS if counts["FAIL"] else CLEAN


COMMAND = Command("conformance", conformance, CHECK)
