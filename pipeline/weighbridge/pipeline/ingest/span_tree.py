"""Spans of one trace: which of them are calls that count, and which repeat what was counted inside them.

Instrumentations write the usage of a call again on whatever ran around it: the framework's own span, its agent, its
chain. Only the innermost span that says how many tokens were used stands for a call; everything around it restates,
whether its numbers are those of its children or not.

    agent 113 / 11                                  repeats: 56 + 57 and 5 + 6
      chat  56 /  5                                 counts
      chat  57 /  6                                 counts

    invoke 1,568 / 423                              differs: not 663 / 225, and still no call of its own
      chat   663 / 225                              counts

A span whose counts are all zero says nothing: it never stands in the way of one around it that does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

SpanId = tuple[str | None, str]


class Place(StrEnum):
    """What a span is among those of its trace."""

    COUNTS = "counts"  # the innermost one that carries usage: a call
    REPEATS = "repeats"  # carries the sum of the usage inside it
    DIFFERS = "differs"  # carries usage beside that inside it, and it is not the sum
    SILENT = "silent"  # carries none


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    Attributes:
        trace: the trace it belongs to; ids are unique within one. Null where the source has no traces.
        id: its own id; null makes it a trace of its own.
        parent: the id of the span around it, null where there is none. One that is not among the spans is none.
        usage: name -> count, in one vocabulary for all spans (`input`, `output`, ...); null where it carries none.
    """

    trace: str | None
    id: str | None
    parent: str | None
    usage: Mapping[str, int] | None

    @property
    def tells(self) -> bool:
        """Whether it says anything: counts that are all zero are what an instrumentation writes by default."""
        return any((self.usage or {}).values())

    @property
    def key(self) -> SpanId | None:
        """What it is known by; null where nothing names it."""
        return None if self.id is None else (self.trace, self.id)


def places(spans: Sequence[Span]) -> list[Place]:
    """What each span is, in their order.

    Rows with the same (trace, id) are one span told several times: all of them get the same answer, and the last one
    that tells anything gives the numbers. Parents that run in a circle end it.
    """
    known: dict[SpanId, Span] = {}
    for span in spans:
        if span.key is not None and (span.tells or span.key not in known):
            known[span.key] = span
    inside: dict[SpanId, list[Span]] = {}
    for span in known.values():
        if span.tells:
            # Every span around it is no call; only the next one with usage is held against its numbers.
            around = _around(span, known)
            nearest = next((one for one in around if one.tells), None)
            for one in _around(span, known):
                inside.setdefault(_keyed(one), [])
            if nearest is not None:
                inside[_keyed(nearest)].append(span)
    return [_place(span if span.key is None else known[span.key], inside) for span in spans]


def _keyed(span: Span) -> SpanId:
    assert span.id is not None, "only spans with an id are around another"
    return span.trace, span.id


def _around(span: Span, known: Mapping[SpanId, Span]) -> Iterator[Span]:
    """The spans around one, from the inside out."""
    seen = {span.key}
    at = span
    while at.parent is not None and (at.trace, at.parent) in known:
        at = known[at.trace, at.parent]
        if at.key in seen:
            return
        seen.add(at.key)
        yield at


def _place(span: Span, inside: Mapping[SpanId, Sequence[Span]]) -> Place:
    if not span.tells:
        return Place.SILENT if not span.usage or span.key in inside else Place.COUNTS
    within = inside.get(span.key) if span.key is not None else None
    if not within:
        return Place.COUNTS
    return Place.REPEATS if _is_sum(span.usage or {}, within) else Place.DIFFERS


def _is_sum(usage: Mapping[str, int], within: Sequence[Span]) -> bool:
    """Whether the counts that are told on both sides are those of the spans inside, added up."""
    shared = [name for name in usage if all(name in (span.usage or {}) for span in within)]
    return bool(shared) and all(usage[name] == sum((span.usage or {})[name] for span in within) for name in shared)
