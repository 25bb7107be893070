"""JSON of any length in bounded memory: the content of long strings is left out on the way in.

A usage object holds no long strings, so what is left parses to the same usage. Up to `PLAIN` bytes nothing is touched.
"""

from __future__ import annotations

import re
from typing import Final

PLAIN: Final = 32 << 10
MOST: Final = 1 << 20
LONG: Final = 200
_STOP: Final = re.compile(rb'["\\]')
_REST: Final = re.compile(rb'(?:[^"\\]+|\\.)*+', re.DOTALL)


class Sieve:
    """Collects one JSON text. `overflow` is set, and everything let go, where even the sieved text is too long."""

    __slots__ = ("_escaped", "_kept", "_out", "_sieving", "_string", "overflow")

    def __init__(self) -> None:
        self._out = bytearray()
        self._sieving = False
        self._string = False
        self._escaped = False
        self._kept = 0
        self.overflow = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self.overflow:
            return
        if not self._sieving:
            if len(self._out) + len(data) <= PLAIN:
                self._out += data
                return
            self._sieving = True
            data, self._out = bytes(self._out) + data, bytearray()
        self._sift(data)
        if len(self._out) > MOST:
            self.overflow = True
            self._out = bytearray()

    def take(self) -> bytes:
        """What was collected; the sieve is empty afterwards."""
        taken = bytes(self._out)
        self._out = bytearray()
        self._sieving = self._string = self._escaped = self.overflow = False
        return taken

    def _sift(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if not self._string:
                quote = data.find(b'"', at)
                if quote < 0:
                    self._out += data[at:]
                    return
                self._out += data[at : quote + 1]
                at = quote + 1
                self._string, self._kept = True, len(self._out)
            elif self._escaped:
                self._keep(data[at : at + 1])
                self._escaped = False
                at += 1
            else:
                at = self._inside(data, at)

    def _inside(self, data: bytes, at: int) -> int:
        """Inside a string: on to its end, its next escape, or the end of `data`."""
        if len(self._out) - self._kept > LONG:
            rest = _REST.match(data, at)
            stop = at if rest is None else rest.end()
        else:
            found = _STOP.search(data, at)
            stop = len(data) if found is None else found.start()
            self._keep(data[at:stop])
        if stop < len(data):
            self._end_or_escape(data[stop])
        return stop + 1

    def _keep(self, content: bytes) -> None:
        """Content of a string: kept while it is short. One byte over `LONG` is enough to know it is not."""
        room = LONG + 1 - (len(self._out) - self._kept)
        if room > 0:
            self._out += content[:room]

    def _end_or_escape(self, byte: int) -> None:
        if byte == 0x5C:
            self._keep(b"\\")
            self._escaped = True
            return
        if len(self._out) - self._kept > LONG:
            del self._out[self._kept :]
        self._out += b'"'
        self._string = False
