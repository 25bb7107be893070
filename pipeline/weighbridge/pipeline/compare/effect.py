"""Was the strategy on? Equal answers may mean a good strategy, or one that never did anything; only traces tell."""

from __future__ import annotations

from weighbridge.pipeline.compare.answer import Answer


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
