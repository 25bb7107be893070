"""Was the strategy on? Equal answers may mean a good strategy, or one that never did anything; only traces tell.

On which pairs it acted is never read off the answers: to choose the pairs whose answers differ would make any strategy
look bad, to choose the equal ones any look good.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from weighbridge.pipeline.compare.answer import Answer, Cost


class Evidence(StrEnum):
    """What tells on which pairs a strategy acted."""

    EVENTS = "state events"
    COUNTS = "counts of the cache, of keys read and of drafts, as no state events are at hand"
    NOTHING = "nothing: neither state events nor counts are at hand"


def evidence(answers: Iterable[Answer]) -> Evidence:
    """The best that is known of these answers of a strategy."""
    costs = [answer.cost for answer in answers]
    if any(cost.events is not None for cost in costs):
        return Evidence.EVENTS
    return Evidence.COUNTS if any(map(_counted, costs)) else Evidence.NOTHING


def _counted(cost: Cost) -> bool:
    own = (cost.pruned, cost.kv_evicted, cost.kv_masked, cost.drafted)
    both = (cost.attended, cost.attended_dense), (cost.kv_kept, cost.kv_written)
    return any(value is not None for value in own) or any(None not in each for each in both)


def shown(off: Answer, on: Answer) -> bool:
    """Whether anything that was recorded shows that the strategy did something to this answer.

    A different answer shows nothing: two dense runs may differ as well.
    """
    cost, base = on.cost, off.cost
    own = (cost.pruned, cost.kv_evicted, cost.kv_masked, cost.drafted, cost.events)
    if any(own):
        return True
    if cost.attended is not None and cost.attended_dense is not None and cost.attended < cost.attended_dense:
        return True
    if cost.kv_kept is not None and cost.kv_written is not None and cost.kv_kept < cost.kv_written:
        # A model of sliding layers keeps less than it wrote by itself: what counts is that the strategy keeps less.
        share = None if not base.kv_written or base.kv_kept is None else base.kv_kept / base.kv_written
        return share is None or cost.kv_kept < share * cost.kv_written
    return False
