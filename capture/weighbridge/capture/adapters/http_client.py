"""Clients that speak to model APIs through httpx, the official SDKs of OpenAI and Anthropic among them.

    adapter = http_client.install(client, recorder, context=Context(tenant="acme"))     # any httpx.Client, AsyncClient
    openai.OpenAI(http_client=client)                                                   # unchanged
    adapter.remove()

Event hooks cannot see the body of a stream, so the client's transports are wrapped. Every HTTP attempt that goes to a
known path becomes one record; retries of an SDK are attempts of one request. The bytes pass unchanged, text is never
stored, and nothing is raised into the host.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._http_streams import Tap, streams
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.context import Context
from weighbridge.capture.guard import Guard
from weighbridge.capture.scope import current
from weighbridge.capture.wire.apis import ATTEMPT_HEADER, REQUEST_HEADER, api_of, provider_of
from weighbridge.capture.wire.call import call_of
from weighbridge.capture.wire.carried import Names, named
from weighbridge.capture.wire.exchange import Exchange, Exchanges
from weighbridge.capture.wire.recounts import Recounter, Recounts
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey, new_attempt_id

if TYPE_CHECKING:
    import httpx

    from weighbridge.capture.recorder import Recorder

_NOBODY: Final = Names()
_RETRY_HEADER: Final = "x-stainless-retry-count"  # sent by the SDKs of OpenAI and Anthropic with every attempt
_SEEN: Final = 4096
_SENT: Final = "weighbridge.attempt"
# Retries of an SDK come from the same task or thread, one after the other.
_request: ContextVar[AttemptKey | None] = ContextVar("weighbridge_request", default=None)


class Capture:
    """What the wrapped transports share: where records go, and how requests become attempts."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        context: Context | None = None,
        hosts: Mapping[str, str] | None = None,
        header: str | None = ATTEMPT_HEADER,
        request_header: str = REQUEST_HEADER,
        recounter: Recounter | None = None,
        counted: bool = True,
    ) -> None:
        """Prepare.

        Args:
            recorder: where the records go.
            context: tenant, task, route and provider of calls that do not say otherwise.
            hosts: `host` or `host:port` -> provider, before the table of known hosts.
            header: carries the attempt's id to the server; None sends none.
            request_header: where the caller may name the request, as 32 hexadecimal digits.
            recounter: counts delivered text again, off the request path; without one no text is kept even in memory.
            counted: false where the framework is of a version this was not run with: usage is left unread.
        """
        recounts = None if recounter is None else Recounts(recorder, recounter)
        self.exchanges = Exchanges(recorder, context or Context(), recounts)
        self._hosts = dict(hosts or {})
        self._header = header
        self._request_header = request_header
        self._counted = counted
        self._seen: OrderedDict[AttemptKey, int] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, request: httpx.Request) -> Exchange | None:
        """Start the attempt that `request` is; None where it speaks no API that is known. Never raises."""
        with Guard("http_client.begin"):
            path = request.url.path
            api = api_of(path) if request.method == "POST" else None
            if api is None:
                return None
            asked = _body(request)
            retries = _retries(request)
            key, number = self._key(request)
            around = current.get()
            of = self._request_of(request, retries) if around is None else around.key
            exchange = self.exchanges.begin(
                api,
                provider_of(request.url.host, request.url.port, self._hosts),
                call_of(api, path, asked),
                asked if self.exchanges.recounts is not None else b"",
                named.get() or _NOBODY,
                key=key,
                request=of,
                scope=0 if around is None else around.number,
                number=max(number, retries + 1),
            )
            if self._header is not None:
                request.headers[self._header] = exchange.attempt.key.to_hex()
            request.extensions = {**request.extensions, _SENT: exchange.attempt.key}
            return exchange
        return None

    def _key(self, request: httpx.Request) -> tuple[AttemptKey | None, int]:
        """The caller's own attempt id, once; a repetition of it is a further attempt and gets a key of its own."""
        carried = request.headers.get(self._header) if self._header is not None else None
        if carried is None:
            return None, 1
        try:
            key = AttemptKey.from_hex(carried)
        except ValueError:
            return None, 1
        if request.extensions.get(_SENT) == key:  # a redirect or an authentication round of ours
            return None, 2
        with self._lock:
            times = self._seen[key] = self._seen.pop(key, 0) + 1
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        return (key, 1) if times == 1 else (None, times)

    def _request_of(self, request: httpx.Request, retries: int) -> AttemptKey:
        told = request.headers.get(self._request_header)
        if told is not None:
            try:
                return AttemptKey.from_hex(told)
            except ValueError:
                pass
        known = _request.get()
        again = retries > 0 or _SENT in request.extensions
        if not again or known is None:
            known = new_attempt_id()
            _request.set(known)
        return known

    def read(self, exchange: Exchange, response: httpx.Response) -> Any:
        """The head of the answer: what decodes its body, None where the body is not looked at."""
        with Guard("http_client.read"):
            exchange.opened(response.status_code, response.headers.get("content-type", ""))
            return _decoder(response) if self._counted else None
        return None


def _body(request: httpx.Request) -> bytes:
    """The request's body where it is in memory; a streamed upload is left alone."""
    import httpx  # noqa: PLC0415 - frameworks are imported when they are used

    try:
        return request.content
    except httpx.RequestNotRead:
        return b""


def _retries(request: httpx.Request) -> int:
    told = request.headers.get(_RETRY_HEADER, "")
    return int(told) if told.isdecimal() and len(told) < 4 else 0


def _decoder(response: httpx.Response) -> Any:
    """httpx's own decoder for the response's content encoding; a fresh one, so that the host's is not disturbed."""
    import httpx  # noqa: PLC0415 - as above

    twin = httpx.Response(200, headers={"content-encoding": response.headers.get("content-encoding", "identity")})
    return twin._get_content_decoder()  # noqa: SLF001 - the one place that knows gzip, deflate, br and zstd


def _watched(response: httpx.Response, exchange: Exchange, capture: Capture, stream: Any) -> httpx.Response:
    """The response with its stream watched. One that was read already (a transport of a test) is made anew."""
    import httpx  # noqa: PLC0415 - as above

    watched = stream(response.stream, Tap(exchange, capture.read(exchange, response)))
    if not response.is_closed:
        response.stream = watched
        return response
    return httpx.Response(
        response.status_code, headers=response.headers.raw, stream=watched, extensions=response.extensions
    )


class CaptureTransport:
    """An httpx transport around another one."""

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner = inner
        self.capture = capture

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request through the inner transport and watch its answer."""
        exchange = self.capture.begin(request)
        if exchange is None:
            response: httpx.Response = self.inner.handle_request(request)
            return response
        try:
            response = self.inner.handle_request(request)
        except BaseException as error:
            exchange.end(error)
            raise
        try:
            return _watched(response, exchange, self.capture, streams()[0])
        except Exception:  # noqa: BLE001 - the answer goes to the host, watched or not
            exchange.end()
            return response

    def close(self) -> None:
        """Close the inner transport."""
        self.inner.close()

    def __enter__(self) -> CaptureTransport:
        self.inner.__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        self.inner.__exit__(*about)


class AsyncCaptureTransport:
    """The same for `httpx.AsyncClient`."""

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner = inner
        self.capture = capture

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request through the inner transport and watch its answer."""
        exchange = self.capture.begin(request)
        if exchange is None:
            response: httpx.Response = await self.inner.handle_async_request(request)
            return response
        try:
            response = await self.inner.handle_async_request(request)
        except BaseException as error:
            exchange.end(error)
            raise
        try:
            return _watched(response, exchange, self.capture, streams()[1])
        except Exception:  # noqa: BLE001 - the answer goes to the host, watched or not
            exchange.end()
            return response

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self.inner.aclose()

    async def __aenter__(self) -> AsyncCaptureTransport:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *about: Any) -> None:
        await self.inner.__aexit__(*about)


def install(client: Any, recorder: Recorder, **settings: Any) -> Installed:
    """Watch every call of an `httpx.Client` or `httpx.AsyncClient`.

    Args:
        client: the client; its transport and mounts are wrapped until the answer's `remove()`.
        settings: those of `Capture`.

    Raises:
        ConfigError: this recorder watches the client already.
    """
    import httpx  # noqa: PLC0415 - as above

    own = client._transport  # noqa: SLF001 - httpx has no public way to wrap it
    watched = isinstance(own, (CaptureTransport, AsyncCaptureTransport))
    if watched and own.capture.exchanges.recorder is recorder:
        raise ConfigError("this client is watched already by this recorder; remove that first")
    supported = ADAPTER.admit(recorder, httpx.__version__)
    capture = Capture(recorder, counted=supported, **settings)
    installed = Installed(supported=supported)
    wrapper: Any = AsyncCaptureTransport if isinstance(client, httpx.AsyncClient) else CaptureTransport
    mounts = client._mounts  # noqa: SLF001 - as above

    def back() -> None:
        client._transport, client._mounts = own, mounts  # noqa: SLF001 - as above

    client._transport = wrapper(own, capture)  # noqa: SLF001 - as above
    client._mounts = {  # noqa: SLF001 - as above
        pattern: None if inner is None else wrapper(inner, capture) for pattern, inner in mounts.items()
    }
    installed.undo(back)
    return installed


ADAPTER: Final = Adapter(name="http_client", framework="httpx", first="0.27.0", below="0.29.0", install=install)
