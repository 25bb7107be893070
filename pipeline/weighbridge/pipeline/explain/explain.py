"""Why a figure is what it is: from whatever has a name here down to raw leaves and their place in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from weighbridge.pipeline.explain import kinds
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.reconcile.tree.prefix import LEAST, SHOWN
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.errors import ConfigError

_NOTHING_AGREED: Mapping[str, Contract] = {}


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Every kind of thing that can be explained."""
    return tuple(declared(kinds, "KIND", Kind).values())


def explain(
    lake: Lake,
    name: str,
    key: bytes | None = None,
    *,
    packs: Path | None = None,
    views: Callable[[str], View | None] | None = None,
    contracts: Mapping[str, Contract] = _NOTHING_AGREED,
    depth: int | None = None,
) -> Node:
    """The tree behind whatever is called so. Each kind is one file of `kinds`.

    Args:
        lake: where the tables lie.
        name: the first 8 or more hexadecimal digits of an id, the name of a figure, an invoice line, or an identifier
            another system gave to an attempt, whole.
        key, packs, views, contracts: as of `Asked`.
        depth: levels below the first that are kept; null: all.

    Raises:
        ConfigError: nothing is called so, or several things are; the message says what was looked for, and names them.
    """
    asked = Asked(lake, name.strip(), key, packs, views, contracts)
    found = sorted((kind.name, held, kind) for kind in all_kinds() for held in kind.find(asked))
    if len(found) != 1:
        raise ConfigError(_told(asked, [(kind, held) for kind, held, _ in found]))
    tree = found[0][2].node(asked, found[0][1])
    return tree if depth is None else cut(tree, depth)


def cut(node: Node, depth: int) -> Node:
    """A tree without what lies deeper; where something was left out, its number says so."""
    if not node.children:
        return node
    if depth <= 0:
        return Node(node.label, node.value, (Node("further down", len(node.children)),))
    return Node(node.label, node.value, tuple(cut(child, depth - 1) for child in node.children))


def _told(asked: Asked, found: Sequence[tuple[str, str]]) -> str:
    """Why a name stands for nothing or for several things."""
    if found:
        shown = ", ".join(f"{kind} {held}" for kind, held in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        if asked.digits and not asked.named:
            return f"{asked.digits} is the beginning of several ids: {shown}{more}; give more digits"
        return f"{asked.name!r} is ambiguous: {len(found)} things are called so, {shown}{more}; give one of these ids"
    tried = "".join(f"\n  {kind.name}: {kind.title}" for kind in all_kinds())
    if asked.digits:
        return (
            f"nothing here has an id that begins with {asked.digits}. Looked for:{tried}\n`weighbridge findings ls` "
            "lists findings, and a report names its figures"
        )
    return (
        f"{asked.name!r} is no id of ours and no identifier of another system that is known here. Looked for:{tried}\n"
        f"Give the first {LEAST} or more digits of an id, a figure's name, or the whole response id a provider gave"
    )
