"""What an answer says about itself: its usage, why it stopped, whether it is whole. Its text passes by unread.

Most events of a stream carry text only. They are told by one search over their bytes and never parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weighbridge.capture.wire.apis import Api
from weighbridge.capture.wire.call import model_name
from weighbridge.capture.wire.sieve import Sieve
from weighbridge.capture.wire.sse import EventStream
from weighbridge.schemas.enumerations import Ended, FinishReason, ReportPart
from weighbridge.schemas.identity import IDENTIFIER
from weighbridge.schemas.leaves import USAGE_NAMES, locate

_TELLS: Final = re.compile(
    rb'"(?:usage|usageMetadata|error|x_groq)"\s*:\s*[^n\s]'
    rb'|"(?:finish_reason|stop_reason|finishReason)"\s*:\s*"'
    rb'|"type"\s*:\s*"(?:message_|error"|response\.(?:completed|incomplete|failed|cancelled))'
)
_TEXT: Final = re.compile(
    rb'"(?:content|text|delta|partial_json|arguments|reasoning_content|reasoning|thinking)"\s*:\s*"[^"]'
)
_FINISH: Final[Mapping[str, FinishReason]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "completed", "STOP"), FinishReason.STOP),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_context_window_exceeded"),
        FinishReason.LENGTH,
    ),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), FinishReason.TOOL_CALLS),
    **dict.fromkeys(
        ("content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        FinishReason.CONTENT_FILTER,
    ),
    **dict.fromkeys(("error", "failed", "MALFORMED_FUNCTION_CALL"), FinishReason.ERROR),
    **dict.fromkeys(("cancelled", "abort", "aborted"), FinishReason.ABORT),
}
_STATUS: Final[Mapping[str, Ended]] = {
    "failed": Ended.ERROR,
    "cancelled": Ended.CUT,
    "in_progress": Ended.UNKNOWN,
    "queued": Ended.UNKNOWN,
}
MOST_PARTS: Final = 16


@dataclass(slots=True)
class Part:
    """One usage object of an answer, and where in its body or event it stood."""

    kind: ReportPart
    root: str
    usage: object


class Answer:
    """Reads one answer while it passes.

    Attributes:
        parts: its usage reports in order; a running total keeps the last one only.
        finish: why generation stopped, None where it does not say.
        identifier, model: what the answer calls itself and its model.
        ended: whether it is whole; final after `close`.
        began: text of the answer has been seen.
        unread: something was too long or was no JSON, so that usage may have been missed.
        events: bytes of the events or body that carry text, where they are collected for a recount.
    """

    __slots__ = (
        "_api", "_body", "_events", "_first", "began", "ended", "events", "finish", "identifier", "model", "parts",
        "room", "unread",
    )  # fmt: skip

    def __init__(self, api: Api, *, streamed: bool, collect: int = 0) -> None:
        """`collect`: how many bytes of text-carrying JSON may be kept for a recount; 0 keeps none."""
        self._api = api
        self._events = EventStream(self._on_event) if streamed else None
        self._body = Sieve()
        self._first = True
        self.parts: list[Part] = []
        self.finish: FinishReason | None = None
        self.identifier: str | None = None
        self.model: str | None = None
        self.ended = Ended.UNKNOWN
        self.began = False
        self.unread = False
        self.events: list[bytes] = []
        self.room = collect

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the decoded body."""
        if self._events is not None:
            self._events.feed(data)
            return
        self._body.feed(data)
        if self.room > 0:
            self.keep(data)

    def keep(self, data: bytes) -> None:
        """Keep bytes for the recount, or, when the room is used up, none at all."""
        self.room -= len(data)
        if self.room > 0:
            self.events.append(data)
        else:
            self.events.clear()

    def close(self, *, whole: bool) -> None:
        """The body is over. `whole`: it came to its own end, nobody went away."""
        if self._events is not None:
            if whole:
                self._events.close()
            self.unread |= self._events.lost > 0
            if self.ended is Ended.UNKNOWN and (not whole or self._api.closing):
                self.ended = Ended.CUT
        elif whole:
            self._read_body()
        else:
            self.ended = Ended.CUT

    def _read_body(self) -> None:
        self.unread |= self._body.overflow
        raw = self._body.take()
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            self.unread = True
            return
        self.ended = Ended.COMPLETE
        for item in body if isinstance(body, list) else [body]:
            if isinstance(item, Mapping):
                self._take(item, streamed=isinstance(body, list))

    def _on_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.ended = Ended.COMPLETE if self.ended is Ended.UNKNOWN else self.ended
            return
        carries = (not self.began or self.room > 0) and _TEXT.search(data) is not None
        self.began |= carries
        if self.room > 0 and carries:
            self.keep(data)
        if not self._first and not _TELLS.search(data):
            return
        self._first = False
        try:
            event = json.loads(data)
        except ValueError:
            self.unread = True
            return
        if isinstance(event, Mapping):
            self._take(event, streamed=True)

    def _take(self, item: Mapping[str, object], *, streamed: bool) -> None:
        kind = item.get("type")
        inner = next((item[name] for name in ("response", "message") if isinstance(item.get(name), Mapping)), item)
        assert isinstance(inner, Mapping)
        self._name(inner if inner is not item else item)
        for told in (*_reasons(item), *(_reasons(inner) if inner is not item else ())):
            self.finish = _FINISH.get(told, FinishReason.OTHER)
            if streamed and self.ended is Ended.UNKNOWN and not self._api.closing:
                self.ended = Ended.COMPLETE
        if kind in self._api.closing and self.ended is Ended.UNKNOWN:
            self.ended = Ended.COMPLETE
        state = inner.get("status") if inner.get("object") == "response" else None
        if isinstance(state, str) and state in _STATUS and (not streamed or kind in self._api.closing):
            self.ended = _STATUS[state]
        if item.get("error") or kind == "error" or (inner is not item and inner.get("error")):
            self.ended = Ended.ERROR
        self._usage(item, kind, streamed=streamed)

    def _name(self, item: Mapping[str, object]) -> None:
        told = item.get("id") or item.get("responseId")
        if self.identifier is None and isinstance(told, str) and IDENTIFIER.fullmatch(told):
            self.identifier = told
        self.model = self.model or model_name(item.get("model") or item.get("modelVersion"))

    def _usage(self, item: Mapping[str, object], kind: object, *, streamed: bool) -> None:
        for root, usage in locate(item):
            if root.rsplit(".", 1)[-1] not in USAGE_NAMES:
                continue
            part = Part(self._kind(kind, streamed=streamed), root, usage)
            if part.kind is ReportPart.FINAL:
                self.parts = [kept for kept in self.parts if kept.kind is not ReportPart.FINAL]
            elif len(self.parts) >= MOST_PARTS:
                self.parts.pop()
            self.parts.append(part)
            return

    def _kind(self, kind: object, *, streamed: bool) -> ReportPart:
        if not streamed:
            return ReportPart.WHOLE
        if kind in self._api.opening:
            return ReportPart.START
        return ReportPart.DELTA if kind in self._api.revising else ReportPart.FINAL


def _reasons(item: Mapping[str, object]) -> Iterator[str]:
    """The words in which an answer or event says why it stopped."""
    details = item.get("incomplete_details")
    if isinstance(details, Mapping) and isinstance(details.get("reason"), str):
        yield str(details["reason"])
    elif item.get("object") == "response" and item.get("status") in {"completed", "failed", "cancelled"}:
        yield str(item["status"])
    delta = item.get("delta")
    places = [item, delta, *(_first(item, "choices")), *(_first(item, "candidates"))]
    for place in places:
        if isinstance(place, Mapping):
            for name in ("finish_reason", "stop_reason", "finishReason"):
                told = place.get(name)
                if isinstance(told, str) and told:
                    yield told


def _first(item: Mapping[str, object], name: str) -> list[object]:
    items = item.get(name)
    return items if isinstance(items, list) else []
