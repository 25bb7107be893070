"""The parts of an answer that carry usage: one for a body, several for a stream.

Nothing here knows what a number means; which event opens, revises or closes an answer is a fact of the dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import spoken, stream_of
from weighbridge.schemas.enumerations import Ended, QuarantineReason, ReportPart
from weighbridge.schemas.leaves import Flattened, Leaf, Refusal, flatten, flatten_body

INTEGRAL_FLOAT = "integral_float"
STRINGS_DROPPED = "strings_dropped"
ERROR_EVENT = "error_event"
_DONE = "[DONE]"
# What a body says about itself in a field `status`; a body without it is whole.
_STATUS = {
    "completed": Ended.COMPLETE,
    "incomplete": Ended.COMPLETE,  # stopped at a limit: its count is final
    "failed": Ended.ERROR,
    "cancelled": Ended.CUT,
    "in_progress": Ended.UNKNOWN,
    "queued": Ended.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an answer, as it becomes one row of `usage_report`.

    Attributes:
        part_kind: which part of the answer it is.
        flattened: its leaves and refusals (a part with refusals belongs in quarantine).
        ended: whether the whole answer ended; the same for all its parts.
        notes: integral_float, strings_dropped, error_event (an error event came after this part).
    """

    part_kind: ReportPart
    flattened: Flattened
    ended: Ended
    notes: tuple[str, ...] = ()


def parts_of(
    api: str,
    *,
    usage: object = None,
    response: object = None,
    events: Sequence[object] | None = None,
    key: bytes = b"",
    ended: Ended | None = None,
    provider: str | None = None,
) -> list[Part]:
    """The parts of one answer, never empty: an answer without usage has one part without leaves.

    Args:
        api: which API was spoken; decides how stream events are told apart.
        usage, response, events: the bare usage object, or the body, or the events of a stream. Where several are
            given, the one that shows most is taken: events before body before usage. A body that is a list is a stream.
        key: the installation's pseudonym key, which names unknown keys.
        ended: what the caller knows about the end of the answer; null derives it from the answer.
        provider: who answered, where several speak an API of this name in shapes of their own.
    """
    if events is None and isinstance(response, (list, tuple)):
        events = response
    if events is not None:
        parts = _stream_parts(stream_of(api, provider), events, key)
    elif response is not None:
        parts = [_body_part(response, key)]
    else:
        parts = [_usage_part(spoken(api, provider), usage, key)]
    return parts if ended is None else [replace(part, ended=ended) for part in parts]


def calls_of(api: str, events: Sequence[object]) -> list[list[object]]:
    """The events of each answer, where one list holds the streams of several calls one after the other."""
    stream = stream_of(api)
    calls: list[list[object]] = [[]]
    for event in events:
        if _begins(stream, event, calls[-1]):
            calls.append([])
        calls[-1].append(event)
    # What follows the last closing event belongs to the answer it closed.
    if len(calls) > 1 and not stream.opening and not any(_type(event) in stream.closing for event in calls[-1]):
        rest = calls.pop()
        calls[-1] += rest
    return calls


def _begins(stream: Stream, event: object, so_far: Sequence[object]) -> bool:
    if stream.opening:
        return _type(event) in stream.opening and any(_type(one) in stream.opening for one in so_far)
    return bool(so_far) and _type(so_far[-1]) in stream.closing


def _type(event: object) -> str:
    told = event.get("type") if isinstance(event, Mapping) else None
    return told if isinstance(told, str) else ""


def _notes(flattened: Flattened) -> tuple[str, ...]:
    floats = (INTEGRAL_FLOAT,) if flattened.integral_floats else ()
    return (*floats, STRINGS_DROPPED) if flattened.dropped_strings else floats


def _unreadable(path: str) -> Flattened:
    return Flattened(refusals=[Refusal(path, QuarantineReason.NOT_AN_OBJECT)])


def _usage_part(dialect: Dialect | None, usage: object, key: bytes) -> Part:
    container = dialect.containers[0] if dialect else "usage"
    if usage is not None and not isinstance(usage, Mapping):
        flattened = _unreadable(container)
    elif dialect is not None and dialect.direct:
        flattened = _own_words(dialect, usage or {}, container, key)
    else:
        flattened = flatten(usage, key, container)
    return Part(ReportPart.WHOLE, flattened, Ended.UNKNOWN, _notes(flattened))


def _own_words(dialect: Dialect, usage: Mapping[str, object], container: str, key: bytes) -> Flattened:
    """Our own names are no provider's keys: the allow-list of leaves lacks them, its grammar of numbers holds."""
    out = flatten({name: value for name, value in usage.items() if name not in dialect.roles}, key, container)
    for name in dialect.roles.keys() & usage.keys():
        one = flatten(usage[name], key, f"{container}.tokens")
        path = f"{container}.{name}"
        out.leaves += [Leaf(path, leaf.integer, leaf.text) for leaf in one.leaves]
        out.refusals += [Refusal(path, refusal.reason) for refusal in one.refusals]
        out.integral_floats += [path] * len(one.integral_floats)
    out.leaves.sort(key=lambda leaf: leaf.path)
    out.refusals.sort()
    return out


def _body_part(body: object, key: bytes) -> Part:
    if not isinstance(body, Mapping):
        return Part(ReportPart.WHOLE, _unreadable("response"), Ended.UNKNOWN)
    flattened = flatten_body(body, key)
    failed = _is_error(body)
    status = body.get("status")
    ended = _STATUS.get(status, Ended.COMPLETE) if isinstance(status, str) else Ended.COMPLETE
    notes = (*_notes(flattened), ERROR_EVENT) if failed else _notes(flattened)
    return Part(ReportPart.WHOLE, flattened, Ended.ERROR if failed else ended, notes)


def _is_error(event: Mapping[str, object]) -> bool:
    return bool(event.get("error")) or event.get("type") == "error"


def _stream_parts(stream: Stream, events: Sequence[object], key: bytes) -> list[Part]:
    parts: list[Part] = []
    error_first = False
    for event in events:
        if not isinstance(event, Mapping):
            continue
        flattened = flatten_body(event, key)
        if flattened.leaves or flattened.refusals:
            parts.append(Part(_kind(stream, event), flattened, Ended.UNKNOWN, _notes(flattened)))
        if _is_error(event) and parts:
            parts[-1] = replace(parts[-1], notes=tuple(dict.fromkeys((*parts[-1].notes, ERROR_EVENT))))
        error_first = error_first or (_is_error(event) and not parts)
    ended = _ended(stream, events)
    if not parts:
        notes = (ERROR_EVENT,) if error_first else ()
        return [Part(ReportPart.FINAL, Flattened(), ended, notes)]
    if parts[-1].part_kind is ReportPart.RUNNING:
        parts[-1] = replace(parts[-1], part_kind=ReportPart.FINAL)
    return [replace(part, ended=ended) for part in parts]


def _kind(stream: Stream, event: object) -> ReportPart:
    kind = _type(event)
    if kind in stream.opening:
        return ReportPart.START
    if kind in stream.revising:
        return ReportPart.DELTA
    return ReportPart.FINAL if kind in stream.closing else ReportPart.RUNNING


def _ended(stream: Stream, events: Sequence[object]) -> Ended:
    ended = stream.unclosed
    for event in events:
        if event == _DONE:
            ended = Ended.COMPLETE
        if not isinstance(event, Mapping):
            continue
        if _is_error(event):
            return Ended.ERROR
        if _type(event) in stream.closing:
            ended = _closed(event, stream.closing[_type(event)])
        elif _whole(stream, event):
            ended = Ended.COMPLETE
    return ended


def _whole(stream: Stream, event: Mapping[str, object]) -> bool:
    return any(_finished(event.get(name), told) for name, told in stream.finish) or any(map(event.get, stream.ending))


def _closed(event: Mapping[str, object], ended: Ended) -> Ended:
    """How a closing event says the answer ended: its body may name it, else the kind of event does."""
    body = event.get("response")
    status = body.get("status") if isinstance(body, Mapping) else None
    return _STATUS.get(status, ended) if isinstance(status, str) else ended


def _finished(items: object, told: str) -> bool:
    return isinstance(items, list) and any(isinstance(item, Mapping) and item.get(told) for item in items)
