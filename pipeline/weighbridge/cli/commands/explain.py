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
            help="First 8 or more digits of a finding, an attempt or a file digest; or a provider's whole response id.",
        ),
    ],
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show why a figure is what it is.

    From a finding, an attempt or a file down to the raw leaves and their place in a file.
    """
    from weighbridge.pipeline.reconcile.tree.explain import explain as explained

    home = home_of(ctx, config, log_level)
    root = explained(home.lake(), found, home.key)
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
