"""Token ids of what a vLLM server answers: asked of it, counted, and left out again where the client did not ask.

    client ---- CaptureMiddleware ---- TokenIds ---- server
                sees what the client    adds `return_token_ids` to the call, takes the ids out of the answer
                sends and gets

Neither call nor answer is parsed: inside a JSON string every quote is escaped, so the key with its quotes and colon
stands nowhere but where it is one. What was added is replaced by `null`, which is what vLLM writes where nobody asked:
the client gets byte for byte what it would have got. Ids become integers only for an attempt of level 2 and above.
"""

from __future__ import annotations

import array
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from weighbridge.capture.adapters._vllm_desk import Desk, ServedCall, Speculation
from weighbridge.capture.adapters.asgi import App, Message, Receive, Send
from weighbridge.capture.guard import Guard
from weighbridge.capture.wire.carried import Answering, answering
from weighbridge.schemas.identity import IDENTIFIER

MOST: Final = 64 << 20  # of a call's body; a longer one passes as it is
_ASKABLE: Final = re.compile(r"/(?:chat/)?completions/?$")
_ASKED: Final = re.compile(rb'"return_token_ids"\s*:\s*(true|false|null)')
_ADDED: Final = b',"return_token_ids":true}'
_IDS: Final = re.compile(rb'("(?:prompt_)?token_ids"\s*:\s*)\[[^\]"{]*\]')
_OUTPUT: Final = re.compile(rb'"token_ids"\s*:\s*\[([^\]"{]*)\]')
_PROMPT: Final = re.compile(rb'"prompt_token_ids"\s*:\s*\[([^\]"{]*)\]')
_INDEX: Final = re.compile(rb'"index"\s*:\s*(\d+)')
_API_ID: Final = re.compile(rb'"id"\s*:\s*"((?:chatcmpl-|cmpl-|resp_)[^"\\]{1,190})"')
_DRAFTS: Final = re.compile(rb'"speculative_decoding"\s*:\s*(\{[^{}]*\})')
_END: Final = b"\n\n"


class TokenIds:
    """The inner one of two middlewares; it works on calls the outer one records, and on no others."""

    def __init__(
        self, app: App, desk: Desk, *, ask: bool = True, clock: Callable[[], float], wall_us: Callable[[], int]
    ) -> None:
        """Prepare.

        Args:
            app: the server's application.
            desk: where the engine's side finds the call.
            ask: whether ids are asked for where the client did not ask.
            clock, wall_us: monotonic seconds, and microseconds since 1970.
        """
        self._app = app
        self.desk = desk
        self.ask = ask
        self.clock = clock
        self.wall_us = wall_us

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        stated = answering.get() if scope["type"] == "http" else None
        if stated is None:
            await self._app(scope, receive, send)
            return
        watch = _Passing(self, stated, scope, receive, send)
        try:
            await self._app(scope, watch.receive, watch.send)
        finally:
            watch.close()


class _Passing:
    """One call under way."""

    def __init__(self, ids: TokenIds, stated: Answering, scope: Any, receive: Receive, send: Send) -> None:
        self._ids = ids
        self._stated = stated
        self._receive = receive
        self._send = send
        self._askable = _ASKABLE.search(scope["path"]) is not None
        self._whole = False  # the call's body has been passed on
        self._strip = False
        self._gone = False
        self._plain = False
        self._streamed = False
        self._head: Message | None = None
        self._rest = b""
        self._outputs: dict[int, array.array[int]] = {}
        self._call = ServedCall(stated.key, ids.wall_us())
        with Guard("token_ids.begin"):
            told = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
            self._call.client = told if IDENTIFIER.fullmatch(told) else None
            ids.desk.open(self._call)

    async def receive(self) -> Message:
        """The call, whole and with ids asked for; afterwards whatever comes."""
        if self._whole:
            message = await self._receive()
            self._gone = self._gone or message["type"] == "http.disconnect"
            return message
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._whole = self._gone = True
                return message
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if not more or len(body) > MOST:
                break
        self._whole = True
        asked = bytes(body)
        with Guard("token_ids.receive"):
            self._know()
            if self._askable and not more:
                asked = self._asking(asked)
        return {"type": "http.request", "body": asked, "more_body": more}

    def _know(self) -> None:
        """The outer middleware has read the call by now."""
        call, stated = self._call, self._stated
        call.context, call.level = stated.context, stated.level
        call.max_tokens = None if stated.parameters is None else stated.parameters.max_tokens

    def _asking(self, body: bytes) -> bytes:
        """The call with ids asked for. One that is no object of members is the server's to refuse."""
        asked = _ASKED.search(body)
        if asked is not None and asked[1] == b"true":
            return body
        if not self._ids.ask:
            return body
        if asked is not None:
            self._strip = True
            return body[: asked.start(1)] + b"true" + body[asked.end(1) :]
        stripped = body.rstrip()
        if not stripped.endswith(b"}") or stripped[:-1].rstrip().endswith((b"{", b",")):
            return body
        self._strip = True
        return stripped[:-1] + _ADDED

    async def send(self, message: Message) -> None:
        """The answer, without what the client did not ask for."""
        if message["type"] == "http.response.start":
            with Guard("token_ids.start"):
                self._open(message)
            if self._plain and self._strip and not self._streamed:
                self._head = message  # its length is known once its body is
                return
            await self._send(message)
        elif message["type"] == "http.response.body" and self._plain:
            await self._pass(message.get("body", b""), more=message.get("more_body", False))
        else:
            await self._send(message)

    def _open(self, message: Message) -> None:
        headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
        encoded = headers.get(b"content-encoding", b"identity") != b"identity"
        self._plain = message["status"] == 200 and not encoded
        self._streamed = headers.get(b"content-type", b"").startswith(b"text/event-stream")

    async def _pass(self, body: bytes, *, more: bool) -> None:
        """Read whole events, or a whole body, and pass them on; what needs nothing left out goes on as it comes."""
        held = self._rest + body
        cut = len(held) if not more else held.rfind(_END) + len(_END) if self._streamed and _END in held else 0
        whole, self._rest = held[:cut], held[cut:]
        if more and not whole and self._strip:
            return
        given = whole if self._strip else body
        count: int | None = None
        outputs: dict[int, list[int]] = {}
        with Guard("token_ids.pass"):
            count, outputs = self._read(whole)
            given = _IDS.sub(rb"\1null", whole) if self._strip else body
        before = self._stated.output_delivered
        if count is not None and not self._gone:
            # Before it is sent: with the last of it the outer middleware writes its record.
            self._state(count, outputs)
        try:
            if self._head is not None:
                head, self._head = self._head, None
                await self._send(_with_length(head, len(given)))
            await self._send({"type": "http.response.body", "body": given, "more_body": more})
        except OSError:
            self._stated.output_delivered = before
            raise

    def _state(self, count: int, outputs: dict[int, list[int]]) -> None:
        stated = self._stated
        stated.output_delivered = max(stated.output_delivered, 0) + count
        for child, ids in outputs.items():
            self._outputs.setdefault(child, array.array("I")).extend(ids)
        if self._outputs:
            # The only choice of an answer is the attempt itself; of several each is a child of its own.
            several = len(self._outputs) > 1
            stated.output_ids = {child + several: ids for child, ids in self._outputs.items()}

    def _read(self, body: bytes) -> tuple[int | None, dict[int, list[int]]]:
        """How many ids of output these bytes carry, None where they carry none at all; the ids themselves by choice."""
        call = self._call
        if call.api_id is None and (found := _API_ID.search(body)) is not None:
            call.api_id = found[1].decode("latin-1")
        if (drafts := _DRAFTS.search(body)) is not None:
            call.speculation = speculation(json.loads(drafts[1]))
        runs = list(_OUTPUT.finditer(body))
        deep = self._stated.level > 1
        if deep and self._stated.prompt_ids is None and (prompt := _PROMPT.search(body)) is not None:
            self._stated.prompt_ids = array.array("I", _numbers(prompt[1]))
        outputs: dict[int, list[int]] = {}
        for place, run in enumerate(runs if deep else ()):
            before = _INDEX.findall(body, runs[place - 1].end() if place else 0, run.start())
            outputs.setdefault(int(before[-1]) if before else place, []).extend(_numbers(run[1]))
        return (sum(_length(run[1]) for run in runs) if runs else None), outputs

    def close(self) -> None:
        """The application is done, or gave up."""
        with Guard("token_ids.close"):
            self._ids.desk.close(self._call, self._ids.wall_us(), self._ids.clock())


def speculation(told: Any) -> Speculation | None:
    """What `metrics.speculative_decoding` says; None where it is not of the form that is known."""
    try:
        drafted, accepted = told["num_draft_tokens"], told["num_accepted_draft_tokens"]
        histogram = told["acceptance_histogram"]
        steps = zip(told.get("per_step_drafted") or (), told.get("per_step_accepted") or (), strict=True)
        found = Speculation(int(drafted), int(accepted), [int(count) for count in histogram], list(steps))
    except (KeyError, TypeError, ValueError):
        return None
    total = sum(length * count for length, count in enumerate(found.accepted))
    if not 0 <= total == found.accepted_tokens <= found.drafted:
        return None
    return found if _possible(found) else replace(found, per_step=())


def _possible(told: Speculation) -> bool:
    """Whether its steps are numbers that come to its totals."""
    if not all(type(number) is int for step in told.per_step for number in step):
        return False
    drafted, accepted = (sum(step[part] for step in told.per_step) for part in (0, 1))
    fits = all(0 <= took <= given for given, took in told.per_step)
    return fits and (drafted, accepted) == (told.drafted, told.accepted_tokens)


def _length(numbers: bytes) -> int:
    return numbers.count(b",") + 1 if numbers.strip() else 0


def _numbers(raw: bytes) -> list[int]:
    return [int(number) for number in raw.split(b",")] if raw.strip() else []


def _with_length(head: Message, length: int) -> Message:
    headers = [
        (name, str(length).encode() if bytes(name).lower() == b"content-length" else value)
        for name, value in head.get("headers", ())
    ]
    return {**head, "headers": headers}


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000
