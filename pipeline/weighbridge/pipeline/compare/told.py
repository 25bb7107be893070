"""A comparison as plain values: numbers and names, never an id. For JSON, and for what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weighbridge.pipeline.compare.comparison import Compared, Comparison, Loss, saved_by
from weighbridge.pipeline.compare.eviction import (
    Visible,
    evicted_by_decile,
    evicted_by_origin,
    parting_by_eviction,
    parting_with_eviction,
    visibility_of_shared,
)
from weighbridge.pipeline.compare.power import Need
from weighbridge.pipeline.compare.survival import Step, median, share_at
from weighbridge.pipeline.compare.why import why, word

PLACES: Final = (0, 4, 16, 64, 256, 1024)
OF_PAIR: Final = (
    "exact", "prefix", "similarity", "edit", "replaced", "deleted", "inserted", "rouge_1", "rouge_2", "in_order",
    "moved", "foreign", "moved_blocks",
)  # fmt: skip
EDITS: Final = "deleted, inserted and replaced are differences between two answers, not tokens a strategy removed"


def told(found: Comparison) -> dict[str, Any]:
    """The whole comparison."""
    return {
        "baseline": found.baseline.name,
        "model": found.baseline.model,
        "tokenizer": found.baseline.tokenizer,
        "floor_measured": found.floor_measured,
        "baseline_differed": found.unrepeated,
        "margins": dict(found.margins),
        "level": found.gate.level,
        "pairs_needed": found.gate.pairs,
        "resamples": found.gate.resamples,
        "resource": found.resource,
        "recommended": found.recommended,
        "note": EDITS,
        "strategies": [_strategy(each, found) for each in found.strategies],
    }


def evicted(visible: Mapping[str, Sequence[Visible]], shared: Mapping[str, int]) -> dict[str, Any]:
    """Per strategy with traces where the evicted KV entries of its prompts lay, and whether its answers part.

    Args:
        visible: strategy -> what is left of each prompt.
        shared: cluster -> length of the beginning its prompts have in common.
    """
    return {
        name: {
            "by_origin": evicted_by_origin(seen),
            "by_decile": evicted_by_decile(seen),
            "parting": {
                group: {"answers": answers, "parted": parted}
                for group, (answers, parted) in parting_by_eviction(seen).items()
            },
            "parting_with_eviction": parting_with_eviction(seen),
            "shared_beginnings": {
                cluster: {
                    "length": shared[cluster],
                    "answers": len(left),
                    "left_least": min(left),
                    "left_most": max(left),
                }
                for cluster, left in sorted(visibility_of_shared(seen, shared).items())
            },
        }
        for name, seen in sorted(visible.items())
    }


def _strategy(each: Compared, found: Comparison) -> dict[str, Any]:
    return {
        "strategy": each.side.name,
        "parameters": dict(each.side.parameters),
        "implementation": each.side.implementation,
        "judgement": str(each.judgement),
        "pairs": len(each.pairs),
        "unpaired": each.unpaired,
        "unshown": each.unshown,
        "saved": saved_by(each, found.resource),
        "losses": _losses(each.losses),
        "p_not_worse": None if each.ruling is None else each.ruling.p,
        "said": word(each),
        "why": why(found, each),
        "acted": {
            "pairs": each.acted,
            "told_by": None if each.held is None else str(each.held.evidence),
            "losses": _losses(each.touched),
        },
        "needs": {} if each.ruling is None else {"all": _need(each.ruling.whole), "acted": _need(each.ruling.touched)},
        "measures": {
            name: {
                "off": held.off,
                "on": held.on,
                "difference": held.found.mean,
                "low": held.found.low,
                "high": held.found.high,
                "pairs": held.found.pairs,
                "clusters": held.found.clusters,
                "q": held.q,
                "unrelated": held.unrelated,
            }
            for name, held in each.measured.items()
        },
        "passed": {name: table._asdict() for name, table in each.passed.items()},
        "perplexity": None if each.perplexity is None else dict(zip(("off", "on"), each.perplexity, strict=True)),
        "divergence": _curve(each.parting),
        "divergence_of_floor": _curve(each.floor),
        "savings": {
            name: {"pairs": held.pairs, "off": held.off, "on": held.on, "saved": held.saved}
            for name, held in each.saved.items()
        },
    }


def _need(held: Need | None) -> dict[str, Any] | None:
    if held is None:
        return None
    return {"have": held.have, "least": held.least, "pairs": held.pairs, "least_margin": held.margin}


def _losses(given: Mapping[str, Loss]) -> dict[str, Any]:
    return {name: dict(zip(("loss", "low", "high"), loss, strict=True)) for name, loss in given.items()}


def _curve(steps: Sequence[Step]) -> dict[str, Any]:
    return {
        "median": median(steps),
        "still_equal": {str(place): share_at(steps, place) for place in PLACES},
        "steps": [step._asdict() for step in steps],
    }


def pair_rows(found: Comparison) -> list[dict[str, Any]]:
    """One row per strategy and pair: numbers only."""
    return [
        {
            "strategy": each.side.name,
            "pair": pair.off.pair,
            "off_length": pair.off_alone.length,
            "on_length": pair.on_alone.length,
            **{name: getattr(pair.held, name) for name in OF_PAIR},
            "floor_exact": None if pair.floor is None else pair.floor.exact,
            "off_rep_4": pair.off_alone.rep_4,
            "on_rep_4": pair.on_alone.rep_4,
            "off_stop": pair.off.stop,
            "on_stop": pair.on.stop,
        }
        for each in found.strategies
        for pair in each.pairs
    ]
