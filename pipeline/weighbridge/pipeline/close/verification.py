"""What verifying a close comes to: what differs, by name, and how each figure was proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What it is that differs."""

    FILE = "file"
    ROOT = "root"
    PIN = "pinned input"
    PARTITION = "partition"
    ROW = "row"
    FINDING = "finding"
    RECEIPT = "receipt"
    FIGURE = "figure"
    SEAL = "seal"


class Proof(StrEnum):
    """How a figure was proved."""

    RECOMPUTED = "RECOMPUTED"  # made anew from the rows and prices in the pack
    COMMITTED = "COMMITTED"  # some of its rows were lawfully erased; the root commits to it


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was closed.

    Attributes:
        kind: what it is.
        where: its file, and for a row or figure its name; never a value of the data but ids.
        what: what was found.
    """

    kind: Kind
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a close came to.

    Attributes:
        period: the month, null where even that cannot be read.
        root: the root the pack leads to, null where it leads to none.
        anchored: whether that root was held against one that was kept elsewhere.
        differences: what differs, in the order it was found; none where the close holds.
        proofs: figure -> how it was proved; empty where figures were not looked at.
        erased: rows that were lawfully erased.
        receipts: ids of the receipts that say so.
        notes: what the reader should know although nothing differs.
    """

    period: str | None
    root: str | None
    anchored: bool
    differences: tuple[Difference, ...]
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    erased: int = 0
    receipts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def count(self, proof: Proof) -> int:
        """How many figures were proved so."""
        return sum(found is proof for found in self.proofs.values())
