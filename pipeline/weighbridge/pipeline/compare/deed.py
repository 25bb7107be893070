"""What a strategy did to the answers that are worse, as state events tell it: the evidence for a cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.pipeline.compare.answer import Cost
from weighbridge.pipeline.compare.comparison import Compared
from weighbridge.pipeline.compare.effect import Evidence, evidence
from weighbridge.pipeline.compare.eviction import Visible, evicted_by_decile, evicted_by_origin
from weighbridge.schemas.enumerations import Origin


@dataclass(frozen=True, slots=True)
class Deed:
    """What a strategy did.

    Attributes:
        done: parameters whose work shows in some answer; null where neither events nor counts are at hand.
        told: in words, with shares; that only the parameter speaks, where it does.
    """

    done: frozenset[str] | None
    told: str


def deed(each: Compared, seen: Sequence[Visible] = ()) -> Deed:
    """What a strategy did to its answers.

    Args:
        each: the strategy.
        seen: what traces say is left of its prompts, empty where none were opened.
    """
    costs = [pair.on.cost for pair in each.pairs]
    known = evidence(pair.on for pair in each.pairs)
    named = ", ".join(each.side.parameters) or "none"
    if known is Evidence.NOTHING:
        return Deed(None, f"Only the parameter speaks for this cause ({named}): no state events were at hand.")
    done = frozenset(name for name, did in _DID.items() if _may_have([did(cost) for cost in costs]))
    if known is Evidence.COUNTS:
        return Deed(
            done, f"Counts of the run and the parameter ({named}) speak for this cause; no state events were at hand."
        )
    if not any(cost.events for cost in costs):
        return Deed(
            done, "No state event shows that the strategy did anything: look at the baseline and its second run."
        )
    return Deed(done, f"State events speak for this cause: {'; '.join(_shares(costs, seen))}.")


def _may_have(told: Sequence[bool | None]) -> bool:
    """Whether it did it in some answer; what nobody counted is not known to be nothing."""
    return any(told) or all(each is None for each in told)


def _evicted(cost: Cost) -> bool | None:
    known = [count > 0 for count in (cost.kv_evicted, cost.kv_masked) if count is not None]
    return any(known) if known else None


def _narrowed(cost: Cost) -> bool | None:
    return None if cost.attended is None or cost.attended_dense is None else cost.attended < cost.attended_dense


def _windowed(cost: Cost) -> bool | None:
    told = _evicted(cost), _narrowed(cost)
    return True if any(told) else None if None in told else False


_DID: Final[Mapping[str, Callable[[Cost], bool | None]]] = {
    "window": _windowed,
    "kv_cache_limit": _evicted,
    "compression_ratio": _evicted,
    "attention_topk": _narrowed,
    "token_pruning_ratio": lambda cost: None if cost.pruned is None else cost.pruned > 0,
    "draft_length": lambda cost: None if cost.drafted is None else cost.drafted > 0,
}


def _shares(costs: Sequence[Cost], seen: Sequence[Visible]) -> list[str]:
    """The shares that went, first of what matters most."""
    out = []
    if seen:
        gone = evicted_by_origin(seen)
        system = gone.get(str(Origin.SYSTEM))
        if system is not None:
            out.append(f"{system:.0%} of the system prompt's KV entries were gone when answers ended")
        out.append(f"{_gone(seen):.0%} of all prompts' entries were")
        last = evicted_by_decile(seen)[-1]
        if last is not None:
            out.append(f"{last:.0%} of the last tenth before the answer were")
        parted, whole = ([each for each in seen if (each.divergence is not None) is part] for part in (True, False))
        if parted and whole:
            out.append(f"answers that part had lost {_gone(parted):.0%} of their prompt, equal ones {_gone(whole):.0%}")
    for name, words in (("pruned", "tokens of prompts never reached the model"), ("drafted", "tokens were drafted")):
        total = sum(getattr(cost, name) or 0 for cost in costs)
        if total:
            out.append(f"{total} {words}")
    narrow = [cost for cost in costs if _narrowed(cost)]
    if narrow:
        read = sum(cost.attended or 0 for cost in narrow) / sum(cost.attended_dense or 0 for cost in narrow)
        out.append(f"{read:.0%} of the keys of dense attention were read in {len(narrow)} answers")
    if not out:
        out.append(f"{sum(bool(cost.events) for cost in costs)} answers have events")
    return out


def _gone(seen: Sequence[Visible]) -> float:
    places = sum(len(each.kept) for each in seen)
    return 1 - sum(map(sum, (each.kept for each in seen))) / places if places else 0.0
