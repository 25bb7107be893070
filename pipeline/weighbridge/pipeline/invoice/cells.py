"""Cells: which grouping both sides have in common, and the cell of each line and of each call.

The grouping is the coarsest one common to both sides. A bill that names the model of any line is compared by model,
and a line that names none is then a line nobody can place (`unmapped_line`). Service tier, region and modality are no
grouping: a call that is charged on another tier than it was served on has to meet its own line, not to miss it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.invoice.usage import CLASSES
from weighbridge.schemas.enumerations import LineKind, TokenClass

DIMENSIONS = ("model", "tenant", "token_class")


class Key(NamedTuple):
    """What a cell is about; null where the cell is about all, or the line does not say."""

    kind: str | None
    start: datetime
    end: datetime
    model: str | None = None
    tenant: str | None = None
    token_class: str | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """How both sides are grouped beside their periods.

    Attributes:
        named: of `DIMENSIONS` those both sides have.
        folded: class of a token -> class of the line that charges it: where a bill knows no reasoning, its output
            holds it; where it knows no cache reads, its input does; where it knows no lifetimes, its writes do.
    """

    named: tuple[str, ...]
    folded: Mapping[str, str]

    @classmethod
    def of(cls, lines: pl.DataFrame) -> Grouping:
        """The grouping of lines that charge tokens."""
        told = [name for name in ("model", "token_class") if lines[name].drop_nulls().len()]
        owned = lines.height > 0 and lines["tenant"].null_count() == 0
        named = tuple(name for name in DIMENSIONS if name in told or (name == "tenant" and owned))
        return cls(named, folded(set(lines["token_class"].drop_nulls())))

    def fits(self, kind: str | None, model: str | None, token_class: str | None) -> bool:
        """Whether a line can be placed."""
        if kind != LineKind.TOKENS:
            return kind is not None
        told = {"model": model, "token_class": token_class}
        return all(told[name] is not None for name in self.named if name in told)


def folded(told: set[str]) -> dict[str, str]:
    """Class -> the class a bill that names `told` charges it as."""
    into = {name: name for name in CLASSES}
    if TokenClass.REASONING not in told:
        into[TokenClass.REASONING.value] = TokenClass.OUTPUT_VISIBLE.value
    if TokenClass.CACHE_READ not in told:
        into[TokenClass.CACHE_READ.value] = TokenClass.INPUT_UNCACHED.value
    writes = (TokenClass.CACHE_WRITE_5M, TokenClass.CACHE_WRITE_1H)
    if not told & set(writes):
        whole = TokenClass.CACHE_WRITE_UNKNOWN if TokenClass.CACHE_WRITE_UNKNOWN in told else TokenClass.INPUT_UNCACHED
        into |= dict.fromkeys((*writes, TokenClass.CACHE_WRITE_UNKNOWN), whole.value)
    return {str(name): str(value) for name, value in into.items()}
