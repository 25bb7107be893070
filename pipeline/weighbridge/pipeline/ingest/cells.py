"""The cells of class and modality: what a modality's tokens are, as far as the details say."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    UNCACHED_BY_MODALITY,
)
from weighbridge.pipeline.ingest.known import Count, Known


def plus(first: Count, second: Count) -> Count:
    """The sum, unknown where one of the two is."""
    return None if first is None or second is None else first + second


def cross(
    known: Known, prompt: Count, in_total: Count, out_total: Count, classes: Sequence[Count], *, inside: bool
) -> tuple[tuple[Count, ...], bool]:
    """The cells of class and modality, and whether some exceed the figure that contains them.

    Where tokens of a modality and cached tokens overlap and no detail says how, the cells are unknown.
    """
    of, (uncached, read, *writes), visible = known.of, classes[:5], classes[5]
    unwritten = all(write == 0 for write in writes)
    fresh: list[Count] = []
    cached: list[Count] = []
    listed: list[Count] = []
    for index, role in enumerate(INPUT_BY_MODALITY):
        whole = plus(of[role], of[TOOL_BY_MODALITY[index]])
        reads, rest = of[CACHED_BY_MODALITY[index]], of[UNCACHED_BY_MODALITY[index]]
        if reads is None and (read == 0 or (inside and whole == 0)):
            reads = 0
        if rest is None and whole is not None:
            rest = apart(whole, reads, unwritten=unwritten) if inside else whole
        rest = 0 if rest is None and uncached == 0 else rest
        if reads is None and inside and unwritten and uncached == 0:
            reads = whole
        fresh.append(rest)
        cached.append(reads)
        listed.append(whole)
    shown = [0 if of[role] is None and visible == 0 else of[role] for role in OUTPUT_BY_MODALITY]
    beyond = (
        exceeds(fresh, in_total if uncached is None else uncached)
        or exceeds(cached, in_total if read is None else read)
        or exceeds(listed, prompt)
        or exceeds(shown, out_total if visible is None else visible)
    )
    return (*fresh, *cached, *shown), beyond


def apart(whole: int, reads: Count, *, unwritten: bool) -> Count:
    """What is left of a modality beside its cache reads; unknown where cache writes may hold some of it."""
    if reads is None:
        return None
    return whole - reads if unwritten or whole <= reads else None


def exceeds(parts: Sequence[Count], whole: Count) -> bool:
    """Whether a part is negative, or the known parts are more than the whole."""
    known = [part for part in parts if part is not None]
    return any(part < 0 for part in known) or (whole is not None and sum(known) > whole)
