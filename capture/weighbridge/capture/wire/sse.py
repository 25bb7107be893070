"""Server-sent events from raw bytes, whatever the chunks are cut at: inside a line, an event or a character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weighbridge.capture.wire.sieve import Sieve

MOST_LINES: Final = 4096


class EventStream:
    """Calls `on_data` with the data of every event. Memory is bounded by the sieve, not by the event."""

    __slots__ = ("_data", "_line", "_on_data", "_return", "lost")

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._on_data = on_data
        self._line = Sieve()
        self._data: list[bytes] = []
        self._return = False  # the last chunk ended in a carriage return; a newline next belongs to it
        self.lost = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        if self._return and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._return = chunk[-1:] == b"\r" if chunk else self._return
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._line.feed(line)
            self._end_line()
        if rest:
            self._line.feed(rest)

    def close(self) -> None:
        """The body is over: an event that lacks only its blank line is taken."""
        self._end_line()
        self._end_event()

    def _end_line(self) -> None:
        if self._line.overflow:
            self.lost += 1
        line = self._line.take()
        if not line:
            self._end_event()
        elif line.startswith(b"data:") and len(self._data) < MOST_LINES:
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])

    def _end_event(self) -> None:
        if self._data:
            data, self._data = b"\n".join(self._data), []
            self._on_data(data)
