"""What lies behind the findings of a room, and behind the figures of its sheets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import FindingOrigin

SHOWN = 5


def nothing(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """What lies behind a finding of which only its own attempts and files are known."""
    del asked, finding
    return ()


def untitled() -> Mapping[str, str]:
    """The causes of a room that names none."""
    return {}


@dataclass(frozen=True, slots=True)
class Behind:
    """One room: a file in `behind/`.

    Attributes:
        origin: whose findings these are; null: only figures are followed.
        of_finding: groups of nodes behind a row of `finding`.
        titles: what its causes mean, by code.
        sheets: the sheets of the report it is about.
        of_row: groups of nodes behind a row of such a sheet: the sheet's name, and the row's values by column. The row
            of sums has none.
    """

    origin: FindingOrigin | None
    of_finding: Callable[[Asked, Row], tuple[Node, ...]] = nothing
    titles: Callable[[], Mapping[str, str]] = untitled
    sheets: tuple[str, ...] = ()
    of_row: Callable[[Asked, View, str, Mapping[str, object]], tuple[Node, ...]] | None = None


def subject_of(finding: Row) -> dict[str, str]:
    """Name -> value of what a finding is about."""
    return dict(pair.split("=", 1) for pair in (finding["subject"] or "").split("; ") if "=" in pair)


def group(label: str, nodes: tuple[Node, ...], many: int | None = None) -> tuple[Node, ...]:
    """Nodes below one that says how many there are; nothing where there are none."""
    return (Node(label, len(nodes) if many is None else many, nodes),) if nodes else ()
