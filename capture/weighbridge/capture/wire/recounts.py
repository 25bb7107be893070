"""Recounts of delivered text, off the request path: the text waits in a bounded queue, is counted, and dropped.

The keeper counts; nothing of the text is written anywhere. Where the queue has no room the recount is left out, and
the gap `buffer_full` says so (no attempt is lost by it).
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import COMMIT, RECOUNT_NO_INPUT, RECOUNT_SCRIPT_SHIFT, SCRIPTS, SLOT, Kind
from weighbridge.schemas.enumerations import GapReason, Script

if TYPE_CHECKING:
    from weighbridge.capture.binding import Attempt
    from weighbridge.capture.recorder import Recorder

_SLOT: Final = struct.Struct(f"<9q{SLOT - 72}x")
assert _SLOT.size == SLOT
assert COMMIT > 72
MOST_ONE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one call sent and got, in memory only.

    Attributes:
        model: the model that answered, else the one asked for.
        api: which API was spoken.
        asked: the body of the request.
        text: the text of each choice that reached the client, in order of the choices.
    """

    model: str | None
    api: str
    asked: Mapping[str, object]
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recounted:
    """Counts made of delivered text; None where there is none to make.

    Attributes:
        input, output: tokens of the prompt and of all choices.
        template, special: tokens that the chat template and the tokenizer add to the prompt.
        has_template, has_special: whether `input` contains them.
        script: what the answer, else the prompt, is mostly written in.
    """

    input: int | None = None
    template: int | None = None
    special: int | None = None
    output: int | None = None
    has_template: bool = False
    has_special: bool = False
    script: Script | None = None


class Recounter(Protocol):
    """Counts the tokens of what was delivered; None where it has no tokenizer for that model."""

    def __call__(self, delivered: Delivered, /) -> Recounted | None: ...


class Recounts:
    """The queue. `offer` is called on the request path, `work` by the keeper."""

    def __init__(self, recorder: Recorder, recounter: Recounter, *, queue_bytes: int = 8 << 20) -> None:
        self._recorder = recorder
        self._recounter = recounter
        self._room = self._most = queue_bytes
        self._pid = os.getpid()
        self._waiting: deque[tuple[Attempt, str | None, str, bytes, Sequence[bytes], bool, int]] = deque()
        self._lock = threading.RLock()
        recorder.chores.append(self.work)

    def offer(
        self, attempt: Attempt, model: str | None, api: str, asked: bytes, answered: Sequence[bytes], *, streamed: bool
    ) -> None:
        """Hand over one call. The bytes are kept by reference until they are counted."""
        size = len(asked) + sum(map(len, answered))
        if self._pid != os.getpid():  # forked: the parent counts what it queued, and may have held the lock
            self._pid, self._room, self._lock = os.getpid(), self._most, threading.RLock()
            self._waiting.clear()
        with self._lock:
            fits = size <= self._room
            if fits:
                self._room -= size
                self._waiting.append((attempt, model, api, asked, answered, streamed, size))
        if not fits:
            self._recorder.losses.count(GapReason.BUFFER_FULL, attempts=0)

    def work(self, _: bool) -> None:
        """Count what waits."""
        if self._pid != os.getpid():
            return
        while self._waiting:
            attempt, model, api, asked, answered, streamed, size = self._waiting.popleft()
            with Guard("recount"):
                text = tuple(texts(answered, streamed=streamed))
                counted = self._recounter(Delivered(model, api, _object(asked), text))
                if counted is not None:
                    self._recorder.put_slot(_slot(attempt, counted))
            with self._lock:
                self._room += size


def _slot(attempt: Attempt, counted: Recounted) -> bytes:
    figures = (counted.input, counted.template, counted.special, counted.output)
    numbers = [-1 if figure is None else figure for figure in figures]
    flags = counted.has_template | counted.has_special << 1 if counted.input is not None else RECOUNT_NO_INPUT
    flags |= SCRIPTS.index(counted.script) << RECOUNT_SCRIPT_SHIFT
    return _SLOT.pack(Kind.RECOUNT, attempt.hi, attempt.lo, attempt.arrived_us, *numbers, flags)


def texts(answered: Sequence[bytes], *, streamed: bool) -> Iterator[str]:
    """The text of each choice, in order, from the events of a stream or the chunks of a body."""
    choices: dict[int, list[str]] = {}
    for raw in answered if streamed else [b"".join(answered)]:
        for index, piece in _pieces(_object(raw)):
            choices.setdefault(index, []).append(piece)
    return ("".join(choices[index]) for index in sorted(choices))


def _object(raw: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pieces(item: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    """(choice, text) of a body or event, in any of the APIs."""
    for index, choice in enumerate(_list(item.get("choices"))):
        at = choice.get("index")
        number = at if isinstance(at, int) else index
        yield from ((number, text) for text in _of_choice(choice))
    for index, candidate in enumerate(_list(item.get("candidates"))):
        inner = candidate.get("content")
        parts = _list(inner.get("parts")) if isinstance(inner, Mapping) else []
        yield from ((index, text) for text in _texts(parts))
    delta = item.get("delta")
    if isinstance(delta, Mapping):
        yield from ((0, text) for text in _texts([delta]))
    elif isinstance(delta, str) and item.get("type") == "response.output_text.delta":
        yield 0, delta
    blocks = [item.get("content"), *(output.get("content") for output in _list(item.get("output")))]
    for block in blocks:
        yield from ((0, text) for text in _texts(_list(block)))


def _of_choice(choice: Mapping[str, object]) -> Iterator[str]:
    for name in ("message", "delta"):
        inner = choice.get(name)
        if isinstance(inner, Mapping) and isinstance(inner.get("content"), str):
            yield str(inner["content"])
    yield from _texts([choice])


def _texts(items: Sequence[Mapping[str, object]]) -> Iterator[str]:
    return (str(item["text"]) for item in items if isinstance(item.get("text"), str))


def _list(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
