"""A kind of thing that can be explained, and what every kind may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.match.foreign import attempts_named
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.reconcile.tree.prefix import digits_if_any
from weighbridge.pipeline.report.view import View


@dataclass(frozen=True)
class Asked:
    """What somebody wants to have explained, and where to look.

    Attributes:
        lake: where the tables lie.
        name: an id or the beginning of one, the name of a figure, an identifier of another system.
        key: the installation's pseudonym key, needed for the identifiers of other systems; null: these are not found.
        packs: folder of the close packs; null: figures of closed months are not found.
        views: month -> what its report is made from, null where there is no such month; null: figures of reports are
            not found.
        contracts: provider -> what was agreed: its zone, and what it calls our models.
    """

    lake: Lake
    name: str
    key: bytes | None = None
    packs: Path | None = None
    views: Callable[[str], View | None] | None = None
    contracts: Mapping[str, Contract] = field(default_factory=dict)

    def contract(self, provider: str) -> Contract:
        """What was agreed with a provider; where nobody says, the defaults."""
        return self.contracts.get(provider) or Contract(provider)

    @property
    def digits(self) -> str | None:
        """The hexadecimal digits of the name, where it may be the beginning of an id of ours."""
        return digits_if_any(self.name)

    @cached_property
    def named(self) -> Mapping[str, tuple[str, ...]]:
        """Attempts that another system calls so: id -> the kinds of identifier it is."""
        return attempts_named(self.lake, self.key, self.name.strip()) if self.key else {}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing: a file in `kinds/`.

    Attributes:
        name: what it is called, and how the tree begins.
        title: how it is named by somebody, in a few words.
        find: ids of the things of this kind that are called so. None where the name cannot be one of this kind.
        node: the tree behind one of them.
    """

    name: str
    title: str
    find: Callable[[Asked], Iterable[str]]
    node: Callable[[Asked, str], Node]
