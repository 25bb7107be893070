"""Cells: which grouping both sides have in common, and the cell of each line and of each call.

The grouping is the coarsest one common to both sides: what the lines of a bill state, and only that. A bill that names
the model of any line is compared by model, and a line that names none is then a line nobody can place
(`unmapped_line`). By tenant (that of its project or key), service tier, region and modality the lines of a model are
compared where all of them tell it and all calls of the model do; where one side does not, the model is compared
without it, and that is told (`grain.Lacking`): nothing is guessed and nothing is missed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.invoice.ours.bundle import Bundle, Slot
from weighbridge.pipeline.invoice.ours.usage import CLASSES
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.schemas.enumerations import LineKind, TokenClass

# Beside the period, and beside each other where a bill names them.
DIMENSIONS = ("model", "tenant", "token_class")
# Compared for one model or another, where both sides tell them.
FINE = ("tenant", "service_tier", "region", "modality")
BATCH, DEFAULT = "batch", "default"
_SAME = {"standard": DEFAULT, "on_demand": DEFAULT}


class Key(NamedTuple):
    """What a cell is about; null where the cell is about all, or the line does not say."""

    kind: str | None
    start: datetime
    end: datetime
    model: str | None = None
    tenant: str | None = None
    token_class: str | None = None
    service_tier: str | None = None
    region: str | None = None
    modality: str | None = None


def tier_of(service_tier: str | None, batch: bool | None) -> str:
    """The service tier in one word: a batch job is one, and where nothing is said it is the default one."""
    return BATCH if batch else _SAME.get(service_tier or DEFAULT, service_tier or DEFAULT)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How both sides are grouped beside their periods.

    Attributes:
        named: of `DIMENSIONS` and `FINE` those that any cell is grouped by.
        folded: class of a token -> class of the line that charges it: where a bill knows no reasoning, its output
            holds it; where it knows no cache reads, its input does; where it knows no lifetimes, its writes do.
        fine: dimension of `FINE` -> models that are compared by it; the model is null where no line names one.
    """

    named: tuple[str, ...]
    folded: Mapping[str, str]
    fine: Mapping[str, frozenset[str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: pl.DataFrame) -> Grouping:
        """The grouping of lines that charge tokens, by what is the same on every bill: model and class."""
        told = tuple(name for name in ("model", "token_class") if lines[name].drop_nulls().len())
        return cls(told, folded(set(lines["token_class"].drop_nulls())))

    def fits(self, kind: str | None, model: str | None, token_class: str | None) -> bool:
        """Whether a line can be placed."""
        if kind != LineKind.TOKENS:
            return kind is not None
        told = {"model": model, "token_class": token_class}
        return all(told[name] is not None for name in self.named if name in told)

    def of_line(self, row: Mapping[str, object], span: Span) -> Key:
        """The cell of a line of tokens, or of a result of a page."""
        model = _text(row["model"]) if "model" in self.named else None
        token_class = _text(row["token_class"]) if "token_class" in self.named else None
        about = {name: _text(row[name]) for name in FINE}
        about["service_tier"] = tier_of(about["service_tier"], None)
        return self._key(span, model, token_class, about)

    def of_slot(self, bundle: Bundle, slot: Slot, span: Span) -> Key:
        """The cell of some tokens of calls."""
        model = bundle.named if "model" in self.named else None
        token_class = self.folded[slot.token_class] if "token_class" in self.named else None
        if not self.fine:
            return Key(LineKind.TOKENS.value, *span, model, None, token_class)
        about = {"tenant": bundle.tenant, "service_tier": tier_of(bundle.service_tier, bundle.batch),
                 "region": bundle.region, "modality": slot.modality}  # fmt: skip
        return self._key(span, model, token_class, about)

    def _key(self, span: Span, model: str | None, token_class: str | None, about: Mapping[str, str | None]) -> Key:
        told = {name: about[name] for name, models in self.fine.items() if model in models}
        tenant, tier, region, modality = (told.get(name) for name in FINE)
        return Key(LineKind.TOKENS.value, *span, model, tenant, token_class, tier, region, modality)


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


def _text(value: object) -> str | None:
    return None if value is None else str(value)
