"""Cached tokens were left out of an input total that should hold them, or put into one that should not.

The amount is what the report itself names as read from the cache, or read and written, or, where the report names
nothing that fits, what the engine took from its caches. Left out: the gap is negative. Counted once too often: it is
positive.

Money: cached tokens that the report names were subtracted from (or stayed in) the uncached remainder, so the
difference is charged at the price of uncached input. Where only the engine knows of them, no report priced them at
all, and they are valued at the price of a cache read.

Worked example (input):

    observed  reported  cache_read  cache_write  cached_engine | cache_convention
        1000       700         300            0              - |             -300
        1000      1600         600            -              - |              600
        1000       500         200          300              - |             -500
        1000       360           -            -            640 |             -640
        1000       999         300            0              - |                -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    read, write, engine = nw.col("cache_read"), nw.col("cache_write"), nw.col("cached_engine")
    sizes = (
        (read, TokenClass.INPUT_UNCACHED),
        (read + write, TokenClass.INPUT_UNCACHED),
        (engine, TokenClass.CACHE_READ),
    )
    left_out = tuple(Candidate(tokens(0) - size, priced_as) for size, priced_as in sizes)
    put_in = tuple(Candidate(size, priced_as) for size, priced_as in sizes)
    return left_out + put_in


CAUSE = Cause(
    code="cache_convention",
    title="Cached tokens counted by another convention",
    directions=(Direction.INPUT,),
    cure="Make the server count cached tokens inside the prompt total (or outside, where its API says so) and recount.",
    structural=False,
    order=40,
    candidate=_candidate,
)
