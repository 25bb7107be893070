"""`weighbridge compare`: runs with a strategy off and on, on token ids, up to a recommended parameter."""

from __future__ import annotations

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.commands import _compare_advice, _compare_people, _compare_runs

compare = typer.Typer(
    no_args_is_help=True,
    help="Runs with a strategy off and on: what it saves, what it costs in quality, which one to use.",
)
for _name, _verb in (
    ("run", _compare_runs.run),
    ("analyse", _compare_runs.analyse),
    ("show", _compare_advice.show),
    ("sheet", _compare_people.sheet),
    ("verdicts", _compare_people.verdicts),
    ("apply", _compare_advice.apply),
    ("refuse", _compare_advice.refuse),
):
    compare.command(_name)(_verb)

COMMAND = Command("compare", compare, WEIGH, order=6)
