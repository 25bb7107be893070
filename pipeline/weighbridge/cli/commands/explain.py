"""`weighbridge explain`: why a figure is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import shown, write, write_json
from weighbridge.cli.session import home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.reconcile.tree.node import Node


def explain(
    ctx: typer.Context,
    found: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help=(
                "First 8 or more digits of a finding, an attempt, a file digest or a row of prices; a provider's whole "
                "response id; a line of an invoice; the first digits of a cell of bills; the name of a window of an "
                "engine, a cell of an audit or an allocated amount; a figure, as the report or `diff` names it."
            ),
        ),
    ],
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="LEVELS", min=0, help="So many levels down. Default: all.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show why a figure is what it is.

    From a figure, a finding, an attempt, an amount or a file down to the raw leaves and their place in a file.
    """
    from weighbridge.pipeline.run.explained import explained

    root = explained(home_of(ctx, config, log_level), found, depth)
    if as_json:
        write_json(root.to_dict())
    else:
        write(_tree(root))
    return CLEAN


def _tree(node: Node) -> Tree:
    tree = Tree(_line(node))
    waiting = [(tree, child) for child in reversed(node.children)]
    while waiting:
        above, child = waiting.pop()
        branch = above.add(_line(child))
        waiting += [(branch, inner) for inner in reversed(child.children)]
    return tree


def _line(node: Node) -> Text:
    if node.value is None:
        return Text(shown(node.label), style="bold")
    return Text.assemble((shown(node.label), "dim" if not node.children else "bold"), "  ", shown(node.value))


COMMAND = Command("explain", explain, LOOK, order=1)
