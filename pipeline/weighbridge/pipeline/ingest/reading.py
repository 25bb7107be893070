"""What one usage report means: `read_usage` for one record, with `UsageReading` as its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import NamedTuple

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.headers import flatten_headers
from weighbridge.pipeline.ingest.iterations import Call
from weighbridge.pipeline.ingest.known import Figures
from weighbridge.pipeline.ingest.merge import merge
from weighbridge.pipeline.ingest.outcome import Flag, flag_names, words
from weighbridge.pipeline.ingest.parts import ERROR_EVENT, INTEGRAL_FLOAT, STRINGS_DROPPED, Part, calls_of, parts_of
from weighbridge.pipeline.ingest.plan import LIMIT
from weighbridge.pipeline.ingest.recorded import as_record, why_unread
from weighbridge.pipeline.ingest.router_estimate import ROUTER, judged
from weighbridge.pipeline.ingest.solver import NO_CELLS, NO_CLASSES, Solution, solve
from weighbridge.pipeline.ingest.speakers import Lookup
from weighbridge.pipeline.ingest.terms import Told, told_by
from weighbridge.schemas.enumerations import Ended, ReportPart, Verdict
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES
from weighbridge.schemas.leaves import Leaf

__all__ = [
    "ERROR_EVENT",
    "INTEGRAL_FLOAT",
    "STRINGS_DROPPED",
    "Part",
    "UsageReading",
    "calls_of",
    "no_dialect",
    "parts_of",
    "read_parts",
    "read_usage",
]

CLASS_NAMES: tuple[str, ...] = tuple(str(name) for name in REPORTED_CLASSES)
CELL_NAMES: tuple[str, ...] = tuple(str(cell.name) for cell in CROSSED_CELLS)
NO_API = "this line has no `api` that is a name, such as openai_chat, so no dialect can be chosen; the leaves are kept"
_ENDED = {
    **{str(ended): ended for ended in Ended},
    "completed": Ended.COMPLETE,
    "client_disconnected": Ended.CUT,
    "client_cancelled": Ended.CUT,
    "cancelled": Ended.CUT,
    "aborted": Ended.CUT,
    "failed": Ended.ERROR,
}


@dataclass(frozen=True, slots=True)
class UsageReading:
    """The disjoint counts of one usage report, with a verdict on how sure they are.

    Attributes:
        provider, api, model: as the record names them.
        dialect: the dialect that read it, null where there is none for (provider, api).
        verdict, reason: how sure the reading is, and why, in words.
        rule: the reading that was chosen, as convention=value pairs; empty where there is none.
        counts: the seven reported token classes, each the total over all modalities. Null is unknown, never zero.
        cells: of some classes, the part that is audio, image or video.
        input_total, output_total, total: sums; null where unknown.
        reported_total: the provider's own total, as it stands.
        ended: whether the answer was whole.
        flags: what was noticed, snake_case, in alphabetical order.
        leaves: the raw leaves the reading was made from, parts of a stream merged.
        estimated: local counts that stand beside null totals, never inside them; or what a prompt was counted to be
            that nobody served.
        children: readings of single model calls of this answer, each with its model. Those with the flag
            `inside_answer` are in its own figures already, the others are beside them.
        told: what the report says beside its counts: terms, what is charged by use, and what it was charged.
    """

    provider: str
    api: str
    model: str | None
    dialect: str | None
    verdict: Verdict
    reason: str
    rule: str
    counts: dict[str, int | None]
    cells: dict[str, int | None]
    input_total: int | None
    output_total: int | None
    total: int | None
    reported_total: int | None
    ended: Ended
    flags: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    estimated: dict[str, int] | None = None
    children: tuple[UsageReading, ...] = ()
    told: Told = field(default_factory=Told)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values, for `weighbridge read`. Holds numbers, paths and words of the product, never text."""
        return {
            "provider": self.provider,
            "api": self.api,
            "model": self.model,
            "dialect": self.dialect,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "rule": self.rule,
            "counts": dict(self.counts),
            "cells": dict(self.cells),
            "input_total": self.input_total,
            "output_total": self.output_total,
            "total": self.total,
            "reported_total": self.reported_total,
            "ended": str(self.ended),
            "flags": list(self.flags),
            "leaves": {leaf.path: leaf.text if leaf.integer is None else leaf.integer for leaf in self.leaves},
            "estimated": None if self.estimated is None else dict(self.estimated),
            "children": [child.to_dict() for child in self.children],
            "told": self.told.to_dict(),
        }


def read_usage(record: Mapping[str, object], *, key: bytes = b"") -> UsageReading:
    """Read one record: provider, api, model, and one of usage (object), response (body) or events (list).

    `headers` may hold those of the response: some services count there, and only there.
    Where the meaning depends on the day, `day` (YYYY-MM-DD, in UTC) or `at` (an ISO time; UTC where it names no zone)
    says which; without them the newest is taken.
    An optional `context` holds `ended`, `local_counts` {prompt_tokens, delivered_output_tokens}, and what a router in
    front of the engine took for cached (`router_overlap_blocks` of `block_size` tokens). Never raises on data: what
    cannot be read gives the verdict UNKNOWN with the reason and the flag `unreadable`.

    A recorded answer, as `weighbridge ingest` takes it in, is read too: `api_flavor` for api, `response_model` for
    model, `meta_headers` for headers, a list of events as response.

    Args:
        record: the parsed JSON object.
        key: the installation's pseudonym key, which names unknown keys of the usage object.
    """
    odd, record = why_unread(record), as_record(record)
    provider, api, model = (named(record.get(name)) for name in ("provider", "api", "model"))
    if odd is not None:
        about = _About(provider or "", api or "", model, None, Ended.UNKNOWN)
        return _unread(about, odd, flag_names(Flag.UNREADABLE), (), {})
    context = record.get("context")
    context = context if isinstance(context, Mapping) else {}
    told = context.get("ended")
    ended = _ENDED.get(told, Ended.UNKNOWN) if isinstance(told, str) else None
    events = record.get("events")
    if events is not None and not isinstance(events, (list, tuple)):
        refused = parts_of(api or "", response=0, ended=ended)
        return read_parts(provider, api, model, refused)
    parts = parts_of(
        api or "",
        usage=record.get("usage"),
        response=record.get("response"),
        events=events,
        key=key,
        ended=ended,
        provider=provider,
    )
    headers = flatten_headers(record.get("headers"))
    if headers.leaves or headers.refusals:
        parts = [*parts, Part(ReportPart.HEADER, headers, parts[0].ended)]
    local = context.get("local_counts")
    day = day_of(record.get("day")) or day_of(record.get("at"))
    reading = read_parts(provider, api, model, parts, local=local if isinstance(local, Mapping) else {}, day=day)
    if ROUTER not in context:
        return reading
    return replace(reading, flags=tuple(sorted({*reading.flags, *judged(context, reading.counts["cache_read"])})))


def read_parts(
    provider: str | None,
    api: str | None,
    model: str | None,
    parts: Sequence[Part],
    *,
    local: Mapping[str, object] | None = None,
    day: date | None = None,
    dialects: Lookup = dialect_for,
) -> UsageReading:
    """Read the parts of one answer, as `parts_of` gives them.

    Args:
        provider, api, model: who answered, through which API, with what.
        parts: at least one.
        local: counts made on this side {prompt_tokens, delivered_output_tokens}, for `estimated`.
        day: when, in UTC; null where it is not known.
        dialects: gives the dialect of a provider, an API, a model and a day; by default those of this version.
    """
    dialect = dialects(provider, api, model, day)
    by_path = {leaf.path: leaf for part in parts for leaf in part.flattened.leaves}
    leaves = tuple(by_path[path] for path in sorted(by_path))
    refused = next((part.flattened.refusals[0] for part in parts if part.flattened.refusals), None)
    about = _About(provider or "", api or "", model, dialect, parts[-1].ended)
    if refused is not None:
        reason = f"{refused.path} cannot be read: {refused.reason}"
        return _unread(about, reason, flag_names(Flag.UNREADABLE), leaves, local or {})
    if dialect is None:
        flags = () if leaves else flag_names(Flag.USAGE_MISSING)
        unread = _unread(about, no_dialect(provider, api), flags, leaves, local or {})
        return replace(unread, told=told_by(api, (part.flattened.leaves for part in parts)))
    figures, leaves = merge(dialect, parts)
    counted = figures.values.get(Role.WOULD_BE_INPUT)
    children = tuple(_child(about, dialect, call, leaves) for call in figures.calls)
    whole = _solved(about, dialect, figures, leaves, local or ({} if counted is None else {"prompt_tokens": counted}))
    told = told_by(api, (part.flattened.leaves for part in parts))
    return replace(whole, children=tuple(replace(child, told=told.of_a_call()) for child in children), told=told)


class _About(NamedTuple):
    """What the reading of an answer and of its calls have in common."""

    provider: str
    api: str
    model: str | None
    dialect: Dialect | None
    ended: Ended


def _child(about: _About, dialect: Dialect, call: Call, leaves: Sequence[Leaf]) -> UsageReading:
    named = about._replace(model=call.model or about.model)
    own = tuple(leaf for leaf in leaves if leaf.path.startswith(call.prefix))
    noticed = int(Flag.INSIDE_ANSWER) if call.inside else 0
    return _solved(named, dialect, Figures(call.values, noticed=noticed), own, {})


def _unread(
    about: _About, reason: str, flags: tuple[str, ...], leaves: tuple[Leaf, ...], local: Mapping[str, object]
) -> UsageReading:
    nothing = Solution(0, None, None, None, NO_CLASSES, NO_CELLS)
    return _worded(about, nothing, (Verdict.UNKNOWN, reason, "", flags), leaves, None, local)


def _solved(
    about: _About, dialect: Dialect, figures: Figures, leaves: tuple[Leaf, ...], local: Mapping[str, object]
) -> UsageReading:
    solution = solve(dialect, about.provider or None, figures)
    return _worded(about, solution, words(dialect, solution.code), leaves, figures.values.get(Role.TOTAL), local)


def _worded(
    about: _About,
    solution: Solution,
    said: tuple[Verdict, str, str, tuple[str, ...]],
    leaves: tuple[Leaf, ...],
    reported: int | None,
    local: Mapping[str, object],
) -> UsageReading:
    verdict, reason, rule, flags = said
    return UsageReading(
        provider=about.provider,
        api=about.api,
        model=about.model,
        dialect=about.dialect.name if about.dialect else None,
        verdict=verdict,
        reason=reason,
        rule=rule,
        counts=dict(zip(CLASS_NAMES, solution.classes, strict=True)),
        cells=dict(zip(CELL_NAMES, solution.cells, strict=True)),
        input_total=solution.input_total,
        output_total=solution.output_total,
        total=solution.total,
        reported_total=reported,
        ended=about.ended,
        flags=flags,
        leaves=leaves,
        estimated=_estimate(solution, local),
    )


def no_dialect(provider: str | None, api: str | None) -> str:
    """The reason of a reading nobody can make yet."""
    if not api:
        return NO_API
    return f"no dialect for provider {provider or 'unknown'} and API {api}; the leaves are kept"


def named(value: object) -> str | None:
    """A name, or null: what does not look like one may be anything, and is not repeated."""
    return value if isinstance(value, str) and NAME.fullmatch(value) else None


def day_of(value: object) -> date | None:
    """The day in UTC of a date or a time, or null where it is neither."""
    try:
        told = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(told, datetime):
            return (told.astimezone(UTC) if told.tzinfo else told).date()
        return told if isinstance(told, date) else None
    except (ValueError, OverflowError):
        return None


def _estimate(solution: Solution, local: Mapping[str, object]) -> dict[str, int] | None:
    """Local counts beside the totals that are unknown; a total of both where each side is known or estimated.

    What is no count, negative or beyond what is relied on, is no estimate either.
    """
    sides = {
        "input_total": (solution.input_total, local.get("prompt_tokens")),
        "output_total": (solution.output_total, local.get("delivered_output_tokens")),
    }
    out = {
        name: counted
        for name, (reported, counted) in sides.items()
        if reported is None and type(counted) is int and 0 <= counted <= LIMIT
    }
    if not out:
        return None
    both = [out.get(name, reported) for name, (reported, _) in sides.items()]
    if solution.total is None and None not in both:
        out["total"] = sum(count or 0 for count in both)
    return out
