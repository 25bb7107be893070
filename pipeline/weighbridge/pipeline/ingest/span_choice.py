"""Which spans of a file are calls, each of them once, and which only say again what another one says.

    a span around others that carries their usage      `span_tree`
    the same span exported twice                       its trace and id
    two libraries that watched one call                one trace, one answer id, the same counts
    the outer span of the Vercel AI SDK                it always holds one `do...` span per call, often in a trace apart

A span that calls a model and carries no usage is a call without a report, unless one around it or inside it has some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from weighbridge.pipeline.ingest.span_calls import SpanUsage
from weighbridge.pipeline.ingest.span_tree import Place, Span, SpanId, places


class Choice(StrEnum):
    """What a span is taken for."""

    CALL = "call"
    REPEAT = "repeat"
    NONE = "none"  # it is about something else


def choices(told: Sequence[SpanUsage]) -> tuple[list[Choice], set[str | None]]:
    """What each span is, in their order; and the traces in which an outer span says other counts than those inside."""
    tree = [Span(one.span.trace, one.span.id, one.span.parent, one.usage or None) for one in told]
    found = places(tree)
    differing = {span.trace for span, place in zip(tree, found, strict=True) if place is Place.DIFFERS}
    out = [_choice(one, place) for one, place in zip(told, found, strict=True)]
    _drop_silent(tree, told, out)
    _drop_wrappers(told, out)
    _drop_told_again(told, out)
    return out, differing


def _choice(one: SpanUsage, place: Place) -> Choice:
    if one.leaves.refusals:
        return Choice.CALL  # its counts cannot be read: it goes to quarantine
    if place in {Place.REPEATS, Place.DIFFERS}:
        return Choice.REPEAT
    if place is Place.COUNTS and one.leaves.leaves:
        return Choice.CALL
    if one.calls_model or (one.empty_error and not one.around):
        return Choice.CALL
    return Choice.NONE


def _drop_silent(tree: Sequence[Span], told: Sequence[SpanUsage], out: list[Choice]) -> None:
    """Calls without usage that are told with usage by a span around them or inside them. Failed ones stay: tries."""
    parents = {span.key: (span.trace, span.parent) for span in tree if span.key is not None}
    counting = {
        span.key
        for span, one, choice in zip(tree, told, out, strict=True)
        if span.key and one.usage and choice is Choice.CALL
    }
    holding = {outer for key in counting for outer in _around(key, parents)}
    for at, (span, one) in enumerate(zip(tree, told, strict=True)):
        if out[at] is not Choice.CALL or one.usage or one.leaves.refusals or one.span.failed or span.key is None:
            continue
        if span.key in holding or any(outer in counting for outer in _around(span.key, parents)):
            out[at] = Choice.NONE


def _around(key: SpanId, parents: Mapping[SpanId, tuple[str | None, str | None]]) -> Iterator[SpanId]:
    seen = {key}
    while True:
        trace, parent = parents.get(key, (None, None))
        if parent is None or (trace, parent) in seen:
            return
        key = (trace, parent)
        seen.add(key)
        yield key


def _drop_wrappers(told: Sequence[SpanUsage], out: list[Choice]) -> None:
    inner = {one.vercel.rsplit(".do", 1)[0] for one in told if ".do" in one.vercel}
    for at, one in enumerate(told):
        if out[at] is Choice.CALL and one.vercel in inner:
            out[at] = Choice.REPEAT


def _drop_told_again(told: Sequence[SpanUsage], out: list[Choice]) -> None:
    """Of the spans that tell one call, the one that tells most stays; the last one, where one span is told twice."""
    spans: dict[object, int] = {}
    answers: dict[object, list[int]] = {}
    for at, one in enumerate(told):
        if out[at] is not Choice.CALL or one.leaves.refusals:
            continue
        if one.span.id is not None:
            key = (one.span.trace, one.span.id)
            before = spans.get(key)
            if before is not None:
                stays, goes = (at, before) if one.usage or not told[before].usage else (before, at)
                out[goes] = Choice.REPEAT
                spans[key] = stays
                continue
            spans[key] = at
    for at, one in enumerate(told):
        if out[at] is Choice.CALL and not one.leaves.refusals and one.response and one.usage:
            answers.setdefault((one.span.trace, one.response), []).append(at)
    for same in answers.values():
        _keep_fullest(same, told, out)


def _keep_fullest(same: Sequence[int], told: Sequence[SpanUsage], out: list[Choice]) -> None:
    """Two calls may share the id of an answer: only those whose counts agree are one."""
    kept: list[int] = []
    for at in sorted(same, key=lambda at: (-len(told[at].leaves.leaves), at)):
        if any(_agree(told[at].usage, told[other].usage) for other in kept):
            out[at] = Choice.REPEAT
        else:
            kept.append(at)


def _agree(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    shared = one.keys() & other.keys()
    return bool(shared) and all(one[name] == other[name] for name in shared)
