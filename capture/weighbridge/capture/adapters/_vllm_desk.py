"""Calls a vLLM server is answering: what its middleware knows of them, for the engine's records in the same process.

The engine knows a request by an id that is made of the API's, and the middleware learns the API's id from the answer,
or from the client's `X-Request-Id`. Clients may use one id twice. A call and the engine's requests are then told to be
one by time and by the limit that was asked for, where each fits exactly the other; else they are not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.capture.context import Context
from weighbridge.schemas.engine_ids import client_id
from weighbridge.schemas.identity import AttemptKey

MOST: Final = 4096
SLACK_US: Final = 1000  # between the middleware's clock and the engine's arrival, both the wall clock of one machine
_KEPT_S: Final = 30.0  # a call that is over is remembered for so long, and until the next sweep
_SWEEP_S: Final = 1.0


@dataclass(slots=True)
class Speculation:
    """What an answer says about the drafts of its call; `accepted[k]`: verify steps that accepted k of theirs."""

    drafted: int
    accepted_tokens: int
    accepted: Sequence[int]
    per_step: Sequence[tuple[int, int]] = ()  # drafted and accepted, where the server tells every step


@dataclass(slots=True)
class ServedCall:
    """One call under way, or just over.

    Attributes:
        key: its attempt.
        began_us, ended_us: wall clock; `ended_us` is None while it is under way, or where the clock went back.
        closed_at: monotonic seconds, None while it is under way.
        client: the id the client sent; api_id: the one the answer has, once it is known.
        max_tokens: the limit that was asked for, None without one.
    """

    key: AttemptKey
    began_us: int
    client: str | None = None
    context: Context | None = None
    level: int = 1
    max_tokens: int | None = None
    api_id: str | None = None
    ended_us: int | None = None
    closed_at: float | None = None
    speculation: Speculation | None = None

    def could_be(self, api_id: str, arrived_us: int) -> bool:
        """Whether requests of the engine under this id that arrived then may be of this call."""
        if not self.began_us - SLACK_US <= arrived_us <= (self.ended_us or arrived_us) + SLACK_US:
            return False
        if self.api_id is not None:
            return self.api_id == api_id
        return self.client is None or client_id(api_id) in (self.client, None)

    def known_as(self, api_id: str) -> bool:
        """Whether an id of its own says so, and not the time alone."""
        return api_id == self.api_id or (self.client is not None and client_id(api_id) == self.client)


class Desk:
    """The calls of one process. Middleware and engine may be on different threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._calls: list[ServedCall] = []
        self._pid = os.getpid()
        self._swept_at = -_SWEEP_S

    def here(self) -> None:
        """In a forked child: the calls are the parent's, and so is whoever holds the lock."""
        if self._pid != os.getpid():
            self._pid, self.lock, self._calls = os.getpid(), threading.RLock(), []

    def open(self, call: ServedCall) -> None:
        """A call has arrived. Where there are too many, the oldest of those that are over go first."""
        self.here()
        with self.lock:
            if len(self._calls) >= MOST:
                over = [held for held in self._calls if held.closed_at is not None]
                dropped = set(map(id, over[: MOST // 4] or self._calls[:1]))
                self._calls = [held for held in self._calls if id(held) not in dropped]
            self._calls.append(call)

    def close(self, call: ServedCall, ended_us: int, now: float) -> None:
        """A call is over."""
        self.here()
        with self.lock:
            call.ended_us, call.closed_at = ended_us if ended_us >= call.began_us else None, now
            if now - self._swept_at >= _SWEEP_S:  # not at every one: there may be thousands
                self._swept_at = now
                self._calls = [held for held in self._calls if held.closed_at is None or now - held.closed_at < _KEPT_S]

    def take(self, call: ServedCall) -> None:
        """The engine's requests of a call are found: it is no candidate any more."""
        with self.lock:
            self._calls = [held for held in self._calls if held is not call]

    def fitting(self, api_id: str, arrived_us: int, max_tokens: int | None) -> list[ServedCall]:
        """Calls that these requests of the engine are of by an id and by time; by the limit asked for, if any tells."""
        with self.lock:
            found = [call for call in self._calls if call.known_as(api_id) and call.could_be(api_id, arrived_us)]
        exact = [call for call in found if call.max_tokens is not None and call.max_tokens == max_tokens]
        return exact or found

    def knows(self, api_id: str) -> bool:
        """Whether a call has this id, whatever its time."""
        with self.lock:
            return any(call.known_as(api_id) for call in self._calls)

    def awaits(self, api_id: str, arrived_us: int) -> bool:
        """Whether a call is under way whose own id is not known yet and that these requests may be of."""
        with self.lock:
            return any(
                call.closed_at is None and call.api_id is None and call.could_be(api_id, arrived_us)
                for call in self._calls
            )
