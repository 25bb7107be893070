"""The bodies of httpx's answers, looked at as they pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from weighbridge.capture.guard import Guard
from weighbridge.capture.wire.exchange import Exchange
from weighbridge.schemas.enumerations import GapReason


class Tap:
    """Looks at the bytes of one body as they pass."""

    def __init__(self, exchange: Exchange, decoder: Any) -> None:
        self.exchange = exchange
        self._decoder = decoder

    def see(self, raw: bytes) -> None:
        """The next raw bytes."""
        if self._decoder is None:
            return
        try:
            data = self._decoder.decode(raw)
        except Exception as error:  # noqa: BLE001 - a damaged encoding is the host's to report
            self._decoder = None
            del error
            self.exchange.attempt.binding.recorder.losses.count(GapReason.NOT_SEEN, attempts=0)
            return
        if data:
            self.exchange.feed(data)

    def whole(self) -> None:
        """The body came to its end."""
        with Guard("http_client.whole"):
            rest = self._decoder.flush() if self._decoder is not None else b""
            if rest:
                self.exchange.feed(rest)
        self.exchange.end(whole=True)


@cache
def streams() -> tuple[Any, Any]:
    """The two stream classes. httpx insists on its own base classes, which are loaded only when a client is there."""
    return _stream(), _async_stream()


def _stream() -> Any:
    import httpx  # noqa: PLC0415 - frameworks are imported when they are used

    class CapturedStream(httpx.SyncByteStream):
        def __init__(self, inner: Any, tap: Tap) -> None:
            self._inner = inner
            self._tap = tap

        def __iter__(self) -> Iterator[bytes]:
            tap = self._tap
            try:
                for chunk in self._inner:
                    tap.see(chunk)
                    yield chunk
            except BaseException as error:
                tap.exchange.end(error)
                raise
            tap.whole()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._tap.exchange.end()

    return CapturedStream


def _async_stream() -> Any:
    import httpx  # noqa: PLC0415 - as above

    class AsyncCapturedStream(httpx.AsyncByteStream):
        def __init__(self, inner: Any, tap: Tap) -> None:
            self._inner = inner
            self._tap = tap

        async def __aiter__(self) -> AsyncIterator[bytes]:
            tap = self._tap
            try:
                async for chunk in self._inner:
                    tap.see(chunk)
                    yield chunk
            except BaseException as error:
                tap.exchange.end(error)
                raise
            tap.whole()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._tap.exchange.end()

    return AsyncCapturedStream
