"""The grain of a bill: by which of tenant, tier, region and modality each model can be compared, and what lacks.

lines of a model        calls of the model      compared by tenant
acme, beta              acme, beta              yes
acme, beta              acme, unassigned        no: 1 call lacks it, as whose it is nobody knows
acme, (no project)      acme, beta              no: 1 line lacks it
(none)                  acme, beta              no, and nothing lacks: the bill does not state it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.invoice.cells import FINE, Grouping, tier_of
from weighbridge.pipeline.invoice.ours.bundle import TEXT, Bundle
from weighbridge.pipeline.price.terms import AUTO
from weighbridge.schemas.lattice import CROSSED_CELLS
from weighbridge.schemas.tables import UNASSIGNED

# A bill with one tenant is the bill of that tenant; with one tier, region or modality it distinguishes none.
_FEWEST = {"tenant": 1}


class Lacking(NamedTuple):
    """What a bill states and could not be compared by.

    Attributes:
        dimension: one of `FINE`.
        model: of its lines; null where they name none.
        lines, calls: how many lines, and calls, do not tell it.
    """

    dimension: str
    model: str | None
    lines: int
    calls: int


@dataclass(frozen=True, slots=True)
class Grain:
    """What the lines of a model state of one dimension."""

    dimension: str
    model: str | None
    values: frozenset[str]
    untold: int

    @property
    def stated(self) -> bool:
        """Whether lines distinguish anything by it."""
        return len(self.values) >= _FEWEST.get(self.dimension, 2)


def settled(grouping: Grouping, lines: pl.DataFrame, bundles: Iterable[Bundle]) -> tuple[Grouping, list[Lacking]]:
    """The grouping with all that both sides tell, and what one of them does not.

    Args:
        grouping: by model and class, as far as the bill names them.
        lines: `CHARGES` of tokens of the month.
        bundles: our calls.
    """
    grains = [each for each in _grains(grouping, lines) if each.stated]
    by_model: dict[str | None, list[Bundle]] = {}
    for bundle in bundles if grains else ():
        if not bundle.failed and not bundle.superseded:
            by_model.setdefault(bundle.named if "model" in grouping.named else None, []).append(bundle)
    fine: dict[str, set[str | None]] = {}
    lacking = []
    for grain in grains:
        calls = sum(each.calls for each in by_model.get(grain.model, ()) if not _tells(each, grain))
        if grain.untold or calls:
            lacking.append(Lacking(grain.dimension, grain.model, grain.untold, calls))
        else:
            fine.setdefault(grain.dimension, set()).add(grain.model)
    named = (*grouping.named, *(name for name in FINE if name in fine))
    told = {name: frozenset(models) for name, models in fine.items()}
    return replace(grouping, named=named, fine=told), lacking


def _grains(grouping: Grouping, lines: pl.DataFrame) -> Iterator[Grain]:
    about = ("model", "token_class", *FINE)
    held: dict[str | None, list[Mapping[str, str | None]]] = {}
    for row in lines.select(about).unique(maintain_order=True).iter_rows(named=True):
        if grouping.fits("tokens", row["model"], row["token_class"]):
            held.setdefault(row["model"] if "model" in grouping.named else None, []).append(row)
    names = [name for name in FINE if name != "modality" or "token_class" in grouping.named]
    for model, rows in sorted(held.items(), key=lambda each: each[0] or ""):
        for name in names:
            yield _grain(name, model, rows)


def _grain(name: str, model: str | None, rows: Sequence[Mapping[str, str | None]]) -> Grain:
    if name == "service_tier":
        return Grain(name, model, frozenset(tier_of(row[name], None) for row in rows), 0)
    told = [row[name] for row in rows]
    return Grain(name, model, frozenset(each for each in told if each is not None), told.count(None))


def _tells(bundle: Bundle, grain: Grain) -> bool:
    """Whether calls tell what the lines state."""
    match grain.dimension:
        case "tenant":
            return bundle.tenant not in {None, UNASSIGNED}
        case "service_tier":
            return bundle.service_tier != AUTO
        case "region":
            return bundle.region in grain.values
    apart = [cell for cell in CROSSED_CELLS if cell.modality != TEXT and str(cell.modality) in grain.values]
    return all(bundle.cells[str(cell.name)] is not None or bundle.counts[str(cell.token_class)] == 0 for cell in apart)
