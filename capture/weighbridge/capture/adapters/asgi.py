"""Servers that speak the APIs, through ASGI: what was really delivered, and to whom.

    app = CaptureMiddleware(app, recorder, context=Context(provider="own"))

One record per call of a known path: the bytes the server handed to the socket, whether the answer came to its end, who
went away before. The attempt's id is taken from the header a watched client sends, so both sides meet. An engine's
adapter in the same process takes it from `carried.answering`. Its rows have to go to a recorder of their own name:
an installation has one row per attempt.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters.adapter import Adapter, Installed, put_attribute
from weighbridge.capture.context import Context
from weighbridge.capture.guard import Guard
from weighbridge.capture.wire.apis import ATTEMPT_HEADER, REQUEST_HEADER, Api, api_of
from weighbridge.capture.wire.call import call_of
from weighbridge.capture.wire.carried import Answering, Names, answering, named
from weighbridge.capture.wire.exchange import Exchange, Exchanges
from weighbridge.capture.wire.once import Once
from weighbridge.capture.wire.recounts import MOST_ONE, Recounter, Recounts
from weighbridge.capture.wire.sieve import Sieve
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey, framed, new_attempt_id

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
_NOBODY: Final = Names()


def key_name(key: bytes, api_key: str) -> str:
    """The name of a caller's API key in a table of tenants: a keyed hash, so that the table holds no API key."""
    return hmac.new(key, framed("api key", api_key), hashlib.sha256).hexdigest()[:32]


class CaptureMiddleware:
    """The middleware. Paths of other APIs, websockets and the lifespan pass untouched."""

    def __init__(
        self,
        app: App,
        recorder: Recorder,
        *,
        context: Context | None = None,
        header: str = ATTEMPT_HEADER,
        request_header: str = REQUEST_HEADER,
        tenant_header: str | None = None,
        api_keys: Mapping[str, str] | None = None,
        recounter: Recounter | None = None,
        usage: bool = True,
    ) -> None:
        """Prepare.

        Args:
            app: the server's application.
            recorder: where the records go.
            context: provider, framework, model and the like of calls that do not say otherwise.
            header: where a watched client sends the attempt's id.
            request_header: where it may name the request.
            tenant_header: names the tenant, where a gateway in front of the server sets such a header. It is believed.
            api_keys: `key_name(...)` of a caller's API key -> tenant.
            recounter: counts delivered text again, off the request path.
            usage: whether the usage the server sends is stored. Where the clients are watched too, they store it, and
                the same report from both sides would be one too many.
        """
        self.app = app
        self.exchanges = Exchanges(
            recorder,
            context or Context(),
            None if recounter is None else Recounts(recorder, recounter),
            serving=True,
            usage=usage,
        )
        self._once = Once()
        self._header = header.lower().encode()
        self._request_header = request_header.lower().encode()
        self._tenant_header = None if tenant_header is None else tenant_header.lower().encode()
        self._api_keys = dict(api_keys or {})

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        api = api_of(scope["path"]) if scope["type"] == "http" and scope.get("method") == "POST" else None
        if api is None:
            await self.app(scope, receive, send)
            return
        watch = _Watch(self, api, scope, receive, send)
        token = answering.set(watch.stated)
        try:
            await self.app(scope, watch.receive, watch.send)
        except BaseException as error:
            watch.end(error)
            raise
        finally:
            answering.reset(token)
            watch.end(None)

    def begin(self, api: Api, scope: Any, asked: bytes, headers: Mapping[bytes, bytes], key: AttemptKey) -> Exchange:
        """Start the attempt, once its body is here."""
        return self.exchanges.begin(
            api,
            None,
            call_of(api, scope["path"], asked),
            asked if self.exchanges.recounts is not None else b"",
            self._names(headers),
            key=key,
            request=_id(headers.get(self._request_header)),
        )

    def attempt_key(self, headers: Mapping[bytes, bytes]) -> AttemptKey:
        """The client's id for the attempt, or a fresh one: also where a proxy sends a call again as it was."""
        told = _id(headers.get(self._header))
        return (None if told is None else self._once.take(told)) or new_attempt_id()

    def _names(self, headers: Mapping[bytes, bytes]) -> Names:
        """Who calls: by the serving code's own word, a header, or the API key; else nobody is named."""
        own = named.get() or _NOBODY
        return Names(
            tenant=own.tenant or self._by_header(headers) or self._by_key(headers), task=own.task, route=own.route
        )

    def _by_header(self, headers: Mapping[bytes, bytes]) -> str | None:
        told = headers.get(self._tenant_header, b"") if self._tenant_header is not None else b""
        return told.decode("latin-1") or None

    def _by_key(self, headers: Mapping[bytes, bytes]) -> str | None:
        if not self._api_keys:
            return None
        told = headers.get(b"authorization", b"").removeprefix(b"Bearer ") or headers.get(b"x-api-key", b"")
        name = key_name(self.exchanges.recorder.key, told.decode("latin-1"))
        return self._api_keys.get(name) if told else None


def _id(told: bytes | None) -> AttemptKey | None:
    if told is None:
        return None
    try:
        return AttemptKey.from_hex(told.decode("latin-1"))
    except ValueError:
        return None


class _Watch:
    """One call under way."""

    def __init__(self, middleware: CaptureMiddleware, api: Api, scope: Any, receive: Receive, send: Send) -> None:
        self._middleware = middleware
        self._api = api
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers: Mapping[bytes, bytes] = {}
        self._asked = bytearray()
        self._sieve = Sieve()
        self._exchange: Exchange | None = None
        self._plain = False
        self._whole = False
        self._gone = False
        self._left: OSError | None = None
        self.stated: Answering | None = None
        with Guard("asgi.begin"):
            self._headers = dict(scope["headers"])
            self.stated = Answering(middleware.attempt_key(self._headers))

    async def receive(self) -> Message:
        """What the client sends, and when it goes away."""
        message = await self._receive()
        with Guard("asgi.receive"):
            if message["type"] == "http.request" and self._exchange is None:
                body = message.get("body", b"")
                self._sieve.feed(body)
                if self._middleware.exchanges.recounts is not None and len(self._asked) < MOST_ONE:
                    self._asked += body
                if not message.get("more_body", False):
                    self._begin()
            elif message["type"] == "http.disconnect" and not self._whole:
                self._gone = True
        return message

    def _begin(self) -> None:
        if self.stated is not None and self._exchange is None:
            asked = bytes(self._asked) or self._sieve.take()
            self._exchange = self._middleware.begin(self._api, self._scope, asked, self._headers, self.stated.key)
            self._exchange.state(self.stated)

    async def send(self, message: Message) -> None:
        """What the server sends; counted once the socket has taken it."""
        try:
            await self._send(message)
        except OSError as error:
            self._left = error
            raise
        with Guard("asgi.send"):
            if message["type"] == "http.response.start":
                self._begin()  # a server that answers before it has read
                self._open(message)
            elif message["type"] == "http.response.body" and self._exchange is not None and not self._gone:
                body = message.get("body", b"")
                if body and self._plain:
                    self._exchange.feed(bytes(body))
                if not message.get("more_body", False):
                    self._whole = True
                    self._exchange.end(whole=True)

    def _open(self, message: Message) -> None:
        if self._exchange is not None:
            headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
            self._plain = headers.get(b"content-encoding", b"identity") == b"identity"
            self._exchange.opened(message["status"], headers.get(b"content-type", b"").decode("latin-1"))

    def end(self, error: BaseException | None) -> None:
        """The application is done, or gave up."""
        with Guard("asgi.end"):
            if self._exchange is None:
                self._begin()
            if self._exchange is not None:
                gone = self._gone or self._left is not None
                self._exchange.end(asyncio.CancelledError() if gone else error)


def install(app: Any, recorder: Recorder, **settings: Any) -> Installed:
    """Watch a Starlette or FastAPI application that is already built; other servers wrap themselves.

    Args:
        app: the application; its middleware stack is wrapped until the answer's `remove()`.
        settings: those of `CaptureMiddleware`.

    Raises:
        ConfigError: this recorder watches the application already.
    """
    if isinstance(app.middleware_stack, CaptureMiddleware) and app.middleware_stack.exchanges.recorder is recorder:
        raise ConfigError("this application is watched already by this recorder; remove that first")
    installed = Installed(supported=ADAPTER.admit(recorder))
    if app.middleware_stack is None:
        app.middleware_stack = app.build_middleware_stack()
    put_attribute(installed, app, "middleware_stack", CaptureMiddleware(app.middleware_stack, recorder, **settings))
    return installed


ADAPTER: Final = Adapter(name="asgi", framework="starlette", first="0.37.0", below="2.0.0", install=install)
